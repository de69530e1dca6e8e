"""Which words of a vocabulary may stand for each other, from a file that says so.

A file (.parquet or .jsonl) has a row for each word: `word`, a string, and `synonyms`, a list, the closest first.
Of a transformer's vocabulary only whole words count: a piece that continues a word is neither exchanged nor put in.

English function words and negations: words that no synonym substitution may touch, on either side of a pair.

Which pairs of a synonym table may be substituted for each other.

A table is filtered once, when it is read.  A pair is dropped where

    closed class   either word is a function word or a negation (data/synonyms.py)
    spelling       either word holds a digit, or is a single letter
    negation       one word is the other with a negative affix: happy, unhappy; hopeful, hopeless
    suffix         one word carries a suffix, and the other is a base that takes the same one: films → movie, loved →
                   adore, quickly → rapid, happiness → glad; -ed and -ing count as one here: thwarting → abort
    inflection     both carry an inflection, but not the same: motivated → motivating, misused → abuses
    adverb         one carries -ly, and the other is a base that takes -s, -ed or -ing: blankly → stare

Suffixes are recognized by the table's own words: "loved" carries -ed because "love" is in the table, "adore" takes -ed
because "adored" is.  So a small table loses nothing for lack of evidence.

Not covered: words of different classes without such evidence (film, shoot), irregular forms (went, children), other
languages than English, and names, which a vocabulary in lower case does not show.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import MissingFile, arrow_path, parse_json, read_text, reason

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


@dataclass(frozen=True, slots=True)
class Form:
    """What a table's words show of one of them."""

    carried: frozenset[str]
    """Suffixes with which another word of the table makes this one."""
    taken: frozenset[str]
    """Suffixes with which this one makes another."""


def substitutable_pairs(table: Mapping[str, Sequence[str]], *, classes: bool = True) -> dict[str, list[str]]:
    """The pairs that may be substituted; words that keep no synonym are left out.

    `classes`: whether suffixes are compared; False: function words, negations and numbers alone are dropped.

    >>> substitutable_pairs({"film": ["movie", "movies", "the"], "films": ["movies"], "never": ["rarely"]})
    {'film': ['movie'], 'films': ['movies']}
    """
    known = {name.lower() for word, others in table.items() for name in (word, *others)}
    bare = Form(frozenset(), frozenset())
    forms = {
        name: Form(_carried(name, known), _taken(name, known)) if classes else bare
        for name in known
        if _is_content(name)
    }

    def allowed(one: str, other: str) -> bool:
        if one not in forms or other not in forms or _negates(one, other) or _negates(other, one):
            return False
        return not (_clash(forms[one], forms[other]) or _clash(forms[other], forms[one]))

    found = {word: [o for o in others if allowed(word.lower(), o.lower())] for word, others in table.items()}
    return {word: others for word, others in found.items() if others}


def _clash(one: Form, other: Form) -> bool:
    """Whether `one` is known to be of another class, or another inflection, than `other`."""
    only = one.carried - other.carried
    inflected = one.carried & INFLECTIONS, other.carried & INFLECTIONS
    return bool(
        only & other.taken
        or (all(inflected) and not inflected[0] & inflected[1])
        or (only & PARTICIPLES and other.taken & PARTICIPLES and not other.carried & PARTICIPLES)
        or ("ly" in only and other.taken & OPEN)
    )


def _is_content(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS and not any(letter.isdigit() for letter in word)


def _negates(one: str, other: str) -> bool:
    """Whether `one` is `other` with a negative affix."""
    if any(one == prefix + other for prefix in NEGATIVE):
        return True
    return one.endswith("less") and one.removesuffix("less") in (other, other.removesuffix("ful"))


def _carried(word: str, known: Collection[str]) -> frozenset[str]:
    """The suffixes with which a known word makes this one."""
    return frozenset(
        suffix
        for suffix in SUFFIXES
        if word.endswith(suffix) and any(base in known for base in _bases(word.removesuffix(suffix), suffix))
    )


def _taken(word: str, known: Collection[str]) -> frozenset[str]:
    """The suffixes with which this word makes a known one."""
    return frozenset(suffix for suffix in SUFFIXES if any(form in known for form in _forms(word, suffix)))


def _forms(word: str, suffix: str) -> Iterator[str]:
    """How a word may be written with a suffix: lov-ed, stop-ped, happ-ier, box-es, simp-ly, tru-ly."""
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
    """What a word without its suffix may have been; at least two letters."""
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


STARTS = ("Ġ", "▁")
"""What byte-level and sentence-piece vocabularies write before the first piece of a word."""
SPECIAL = re.compile(r"<.+>|\[.+\]", re.DOTALL)
"""How vocabularies write special tokens.  No word of a word vocabulary looks so: < and [ are words of their own."""
GOES_ON = "##"
"""What WordPiece writes before every other."""
FORM = 'rows of {"word": "good", "synonyms": ["fine", "nice"]}'


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What is known of the ids of a vocabulary."""

    names: list[str]
    """The word each id is, without the mark of a first piece."""
    continues: NDArray[np.bool_]  # (V,)
    words: NDArray[np.bool_]  # (V,) written with letters only
    special: NDArray[np.bool_]  # (V,) <unk>, <s>, [CLS], [unused1] …

    def table(self, synonyms: Mapping[str, Sequence[str]], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(V,most) ids of synonyms, the closest first, and (V,) how many there are."""
        ids = {name: i for i, name in enumerate(self.names) if not self.continues[i]}
        table, count = np.zeros((len(self.names), most), np.int64), np.zeros(len(self.names), np.int64)
        for name, i in ids.items():
            found = [ids[other] for other in synonyms.get(name, ()) if other in ids and other != name][:most]
            table[i, : len(found)], count[i] = found, len(found)
        return table, count


def vocabulary_lexicon(vocabulary: Sequence[str], kind: Literal["words", "pieces"]) -> Lexicon:
    """How a vocabulary of pieces marks them is read off the vocabulary itself: a mark is on a tenth of it at least."""
    tenth = len(vocabulary) / 10 if kind == "pieces" else math.inf  # words are whole, whatever they look like
    start = next((mark for mark in STARTS if sum(token.startswith(mark) for token in vocabulary) > tenth), "")
    goes_on = sum(token.startswith(GOES_ON) for token in vocabulary) > tenth
    if start:
        continues = [not token.startswith(start) for token in vocabulary]
    else:
        continues = [goes_on and token.startswith(GOES_ON) for token in vocabulary]
    names = [token.removeprefix(start) for token in vocabulary]
    words = np.array([name.isalpha() for name in names], np.bool_)
    special = np.array([SPECIAL.fullmatch(token) is not None for token in vocabulary], np.bool_)
    return Lexicon(names, np.array(continues, np.bool_), words, special)


def read_synonyms(path: str | Path, *, folded: bool = False) -> dict[str, list[str]]:
    """word -> its synonyms, the closest first; `folded`: in lower case, as a word vocabulary has them."""
    file = Path(path)
    try:
        rows = _parquet(file) if file.suffix == ".parquet" else _lines(file)
        found = {word: _several(others) for word, others in rows}
    except MissingFile:
        raise UserError(f"there is no file of synonyms {file}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is no table of synonyms ({reason(error)}): .parquet or .jsonl with {FORM}") from None
    if not all(isinstance(name, str) for word, others in found.items() for name in (word, *others)):
        raise UserError(f"{file} is no table of synonyms: some word is no string; it needs {FORM}")
    if not found:
        raise UserError(f"{file} holds no synonyms; it needs {FORM}")
    return {word.lower(): [other.lower() for other in others] for word, others in found.items()} if folded else found


def _several(others: object) -> list[str]:
    if not isinstance(others, list):
        raise TypeError("synonyms must be a list")  # of a string, list() would make its letters
    return others


def _parquet(file: Path) -> list[tuple[str, list[str]]]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(arrow_path(file), columns=["word", "synonyms"])
    return [(row["word"], row["synonyms"]) for row in table.to_pylist()]


def _lines(file: Path) -> list[tuple[str, list[str]]]:
    rows = [parse_json(line, "a line") for line in read_text(file).split("\n") if line.strip()]
    return [(row["word"], row["synonyms"]) for row in rows]
