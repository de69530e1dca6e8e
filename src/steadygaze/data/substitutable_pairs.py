"""The pairs of a synonym table that may be substituted, by English function words, suffixes and negative affixes.

A pair of the table is dropped if

    closed class   either word is a function word or a negation
    spelling       either word contains a digit, or is a single letter
    negation       one word is the other with a negative affix: happy, unhappy; hopeful, hopeless
    suffix         one word carries a suffix, and the other is a base that takes the same one: films → movie, loved →
                   adore, quickly → rapid, happiness → glad; -ed and -ing count as one here: thwarting → abort
    inflection     both carry an inflection, but not the same: motivated → motivating, misused → abuses
    adverb         one carries -ly, and the other is a base that takes -s, -ed or -ing: blankly → stare

Suffixes are recognized by the table's own words: "loved" carries -ed because "love" is in the table, "adore" takes -ed
because "adored" is.  So a small table loses few pairs.

Not covered: words of different classes without such evidence (film, shoot), irregular forms (went, children), other
languages than English, and names, which a vocabulary in lower case does not show.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
SUFFIXES = ("s", "ed", "ing", "ly", "er", "est", "ness", "ment", "ful", "less", "able", "ity", "ion")
INFLECTIONS = frozenset(("s", "ed", "ing", "ly", "er", "est"))
PARTICIPLES = frozenset(("ed", "ing"))
OPEN = frozenset(("s", "ed", "ing"))
"""Suffixes of nouns and verbs."""
NEGATIVE = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
VOWELS = "aeiou"


def substitutable_pairs(table: Mapping[str, Sequence[str]], *, classes: bool = True) -> dict[str, list[str]]:
    """The pairs that may be substituted; words that keep no synonym are left out.

    `classes`: whether suffixes are compared; False: function words, negations and numbers alone are dropped.

    >>> substitutable_pairs({"film": ["movie", "movies", "the"], "films": ["movies"], "never": ["rarely"]})
    {'film': ['movie'], 'films': ['movies']}
    """
    vocabulary = {name.lower() for word, synonyms in table.items() for name in (word, *synonyms)}
    beginnings = {name[:-cut] for name in vocabulary for cut in range(1, LONGEST_ENDING + 1)} if classes else set()
    forms = {
        name: word_form(name, vocabulary, beginnings) if classes else BARE for name in vocabulary if _is_content(name)
    }

    def allowed(first: str, second: str) -> bool:
        if first not in forms or second not in forms or negates(first, second) or negates(second, first):
            return False
        return not (clash(forms[first], forms[second]) or clash(forms[second], forms[first]))

    allowed_pairs = {
        word: [o for o in synonyms if allowed(word.lower(), o.lower())] for word, synonyms in table.items()
    }
    return {word: synonyms for word, synonyms in allowed_pairs.items() if synonyms}


def _is_content(word: str) -> bool:
    has_digit = not word.isalpha() and any(letter.isdigit() for letter in word)
    return len(word) > 1 and word not in FUNCTION_WORDS and not has_digit


@dataclass(frozen=True, slots=True)
class Form:
    """Suffixes of a word, according to the table."""

    carried: frozenset[str]
    """Suffixes that form this word from another word of the table."""
    taken: frozenset[str]
    """Suffixes that form another word of the table from this word."""


BARE = Form(frozenset(), frozenset())
LONGEST_ENDING = 1 + max(map(len, SUFFIXES))
"""Letters that a spelling adds to a word: those of a suffix, and a doubled one."""
RESPELLED = ("y", "e")
"""Last letters that a spelling may replace."""


def word_form(word: str, vocabulary: Collection[str], beginnings: Collection[str]) -> Form:
    """The suffixes of a word, according to the vocabulary.

    `beginnings`: of its words, without the last letters, to see quickly that no other word begins with this one.
    """
    carried: Iterable[str] = ()
    if word.endswith(SUFFIXES):
        carried = (
            suffix
            for suffix in SUFFIXES
            if word.endswith(suffix) and any(base in vocabulary for base in _bases(word.removesuffix(suffix), suffix))
        )
    taken: Iterable[str] = ()
    if word.endswith(RESPELLED) or word in beginnings:
        taken = (suffix for suffix in SUFFIXES if any(form in vocabulary for form in spelled_forms(word, suffix)))
    form = Form(frozenset(carried), frozenset(taken))
    return form if form.carried or form.taken else BARE


def clash(first: Form, second: Form) -> bool:
    """Return whether two words have different classes or inflections."""
    if not first.carried:
        return False
    only = first.carried - second.carried
    inflected = first.carried & INFLECTIONS, second.carried & INFLECTIONS
    return bool(
        only & second.taken
        or (all(inflected) and not inflected[0] & inflected[1])
        or (only & PARTICIPLES and second.taken & PARTICIPLES and not second.carried & PARTICIPLES)
        or ("ly" in only and second.taken & OPEN)
    )


def negates(word: str, base: str) -> bool:
    """Return whether `word` is `base` with a negative affix."""
    if word.endswith(base) and word.removesuffix(base) in NEGATIVE:
        return True
    return word.endswith("less") and word.removesuffix("less") in (base, base.removesuffix("ful"))


def spelled_forms(word: str, suffix: str) -> Iterator[str]:
    """Possible spellings of a word with a suffix: lov-ed, stop-ped, happ-ier, box-es, simp-ly, tru-ly."""
    yield word + suffix
    if suffix == "s":
        yield word + "es"
    if word.endswith("y"):
        yield word[:-1] + ("ies" if suffix == "s" else "i" + suffix)
    if word.endswith("le") and suffix == "ly":
        yield word[:-1] + "y"
    if word.endswith("e") and (suffix == "ly" or suffix[0] in VOWELS):
        yield word[:-1] + suffix
    if suffix[0] in VOWELS and len(word) > 2 and word[-1] not in VOWELS and word[-2] in VOWELS:
        yield word + word[-1] + suffix


def _bases(stem: str, suffix: str) -> Iterator[str]:
    """Possible bases of a word without its suffix."""
    candidates = [stem, stem + "e"]
    if stem.endswith("i"):
        candidates.append(stem[:-1] + "y")
    if suffix == "ly":
        candidates.append(stem + "le")
    if suffix == "s" and stem.endswith("ie"):
        candidates.append(stem[:-2] + "y")
    if suffix == "s" and stem.endswith("e"):
        candidates.append(stem[:-1])
    if len(stem) > 2 and stem[-1] == stem[-2]:
        candidates.append(stem[:-1])
    return (base for base in candidates if len(base) > 2)
