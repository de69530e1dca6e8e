"""English function words and negations: words that no synonym substitution may touch, on either side of a pair."""

_NEGATIONS = """no not n't nt never none nobody nothing neither nor nowhere without hardly barely scarcely rarely
seldom nope nah nos cannot cant ca wo dont doesnt didnt isnt arent wasnt werent wont wouldnt couldnt shouldnt hasnt
havent hadnt aint"""
_CLOSED_CLASS = """a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself
yourselves he him his himself she her hers herself it its itself they them their theirs themselves who whom whose
which what whatever whichever whoever one ones another other others each every either both all any some few many much
more most less least several such same own enough something anything everything someone anyone everyone somebody
anybody everybody and or but if because as while whereas although though unless until since whether than then so yet
of at by for with about against between among into through during before after above below to from up down in out on
off over under again further within upon onto toward towards across along around behind beyond beside besides despite
except near per via am is are was were be been being have has had having do does did doing done will would shall
should can could may might must ought need let s t d ll m re ve here there where when why how ever also too very just
only even still rather quite almost perhaps maybe however therefore thus hence indeed instead else otherwise once
twice already always often sometimes soon now first last next like unlike two three four five six seven eight nine ten
get gets got go goes went gone"""

NEGATIONS = frozenset(_NEGATIONS.split())
FUNCTION_WORDS = NEGATIONS | frozenset(_CLOSED_CLASS.split())
"""Negations, pronouns, determiners, prepositions, conjunctions, auxiliaries, numbers, adverbs of degree and time."""
