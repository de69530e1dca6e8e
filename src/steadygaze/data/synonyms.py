"""Synonym tables: read, filter and map them to a vocabulary.

A file (.parquet or .jsonl) has a row for each word: `word`, a string, and `synonyms`, a list, the closest first.
In the vocabulary of a transformer only whole words are substituted, not subwords.

A pair of the table is dropped if

    closed class   either word is a function word or a negation (data/synonyms.py)
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

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import MissingFile, arrow_path, parse_json, read_text, reason
from steadygaze.data.synonym_groups import SynonymGroups

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
    """Suffixes of a word, according to the table."""

    carried: frozenset[str]
    """Suffixes that form this word from another word of the table."""
    taken: frozenset[str]
    """Suffixes that form another word of the table from this word."""


def substitutable_pairs(table: Mapping[str, Sequence[str]], *, classes: bool = True) -> dict[str, list[str]]:
    """The pairs that may be substituted; words that keep no synonym are left out.

    `classes`: whether suffixes are compared; False: function words, negations and numbers alone are dropped.

    >>> substitutable_pairs({"film": ["movie", "movies", "the"], "films": ["movies"], "never": ["rarely"]})
    {'film': ['movie'], 'films': ['movies']}
    """
    vocabulary = {name.lower() for word, synonyms in table.items() for name in (word, *synonyms)}
    bare = Form(frozenset(), frozenset())
    forms = {
        name: Form(_carried(name, vocabulary), _taken(name, vocabulary)) if classes else bare
        for name in vocabulary
        if _is_content(name)
    }

    def allowed(first: str, second: str) -> bool:
        if first not in forms or second not in forms or _negates(first, second) or _negates(second, first):
            return False
        return not (_clash(forms[first], forms[second]) or _clash(forms[second], forms[first]))

    allowed_pairs = {
        word: [o for o in synonyms if allowed(word.lower(), o.lower())] for word, synonyms in table.items()
    }
    return {word: synonyms for word, synonyms in allowed_pairs.items() if synonyms}


def _clash(first: Form, second: Form) -> bool:
    """Return whether two words have different classes or inflections."""
    only = first.carried - second.carried
    inflected = first.carried & INFLECTIONS, second.carried & INFLECTIONS
    return bool(
        only & second.taken
        or (all(inflected) and not inflected[0] & inflected[1])
        or (only & PARTICIPLES and second.taken & PARTICIPLES and not second.carried & PARTICIPLES)
        or ("ly" in only and second.taken & OPEN)
    )


def _is_content(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS and not any(letter.isdigit() for letter in word)


def _negates(word: str, base: str) -> bool:
    """Return whether `word` is `base` with a negative affix."""
    if any(word == prefix + base for prefix in NEGATIVE):
        return True
    return word.endswith("less") and word.removesuffix("less") in (base, base.removesuffix("ful"))


def _carried(word: str, vocabulary: Collection[str]) -> frozenset[str]:
    """Suffixes that form this word from another word of the table."""
    return frozenset(
        suffix
        for suffix in SUFFIXES
        if word.endswith(suffix) and any(base in vocabulary for base in _bases(word.removesuffix(suffix), suffix))
    )


def _taken(word: str, vocabulary: Collection[str]) -> frozenset[str]:
    """Suffixes that form another word of the table from this word."""
    return frozenset(suffix for suffix in SUFFIXES if any(form in vocabulary for form in _forms(word, suffix)))


def _forms(word: str, suffix: str) -> Iterator[str]:
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


STARTS = ("Ġ", "▁")
"""Marks of the first subword of a word, in byte-level and SentencePiece vocabularies."""
SPECIAL = re.compile(r"<.+>|\[.+\]", re.DOTALL)
"""Special tokens.  In a word vocabulary, < and [ are separate words."""
CONTINUES = "##"
"""Mark of the other subwords, in WordPiece vocabularies."""
FORM = 'rows of {"word": "good", "synonyms": ["fine", "nice"]}'


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Properties of the ids of a vocabulary."""

    names: list[str]
    """The word of each id, without the mark of a first subword."""
    continues: NDArray[np.bool_]  # (V,)
    words: NDArray[np.bool_]  # (V,) written with letters only
    special: NDArray[np.bool_]  # (V,) <unk>, <s>, [CLS], [unused1] …

    def table(
        self, synonyms: Mapping[str, Sequence[str]], max_synonyms: int, *, same_group: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(V,max_synonyms) ids of synonyms, the closest first, and (V,) their number.

        `same_group`: whether a name can be its own synonym, as `representative_table` writes words of one group.
        """
        ids = {name: i for i, name in enumerate(self.names) if not self.continues[i]}
        table, count = np.zeros((len(self.names), max_synonyms), np.int64), np.zeros(len(self.names), np.int64)
        for name, i in ids.items():
            rows = [
                ids[synonym] for synonym in synonyms.get(name, ()) if synonym in ids and (same_group or synonym != name)
            ][:max_synonyms]
            table[i, : len(rows)], count[i] = rows, len(rows)
        return table, count


def vocabulary_lexicon(vocabulary: Sequence[str], kind: Literal["words", "pieces"]) -> Lexicon:
    """The marks of a subword vocabulary are those on at least a tenth of its tokens."""
    tenth = len(vocabulary) / 10 if kind == "pieces" else math.inf  # words have no marks
    start = next((mark for mark in STARTS if sum(token.startswith(mark) for token in vocabulary) > tenth), "")
    marked = sum(token.startswith(CONTINUES) for token in vocabulary) > tenth
    if start:
        continues = [not token.startswith(start) for token in vocabulary]
    else:
        continues = [marked and token.startswith(CONTINUES) for token in vocabulary]
    names = [token.removeprefix(start) for token in vocabulary]
    words = np.array([name.isalpha() for name in names], np.bool_)
    special = np.array([SPECIAL.fullmatch(token) is not None for token in vocabulary], np.bool_)
    return Lexicon(names, np.array(continues, np.bool_), words, special)


def representative_table(
    table: Mapping[str, Sequence[str]], groups: SynonymGroups | None
) -> Mapping[str, Sequence[str]]:
    """The table of a vocabulary of representatives.

    The row of a representative has its own synonyms, then those of its group; each is replaced by its representative.

    >>> groups = SynonymGroups((("movie", "film"),))
    >>> representative_table({"film": ["movie", "footage"], "movie": ["film"], "clip": ["film"]}, groups)
    {'movie': ['movie', 'footage'], 'clip': ['movie']}
    """
    if groups is None:
        return {word: [synonym for synonym in row if synonym != word] for word, row in table.items()}
    rows: dict[str, dict[str, None]] = {}
    for word in sorted(table, key=lambda word: groups.representative(word) != word):  # representatives first
        row = rows.setdefault(groups.representative(word), {})
        row.update(dict.fromkeys(groups.representative(synonym) for synonym in table[word] if synonym != word))
    return {word: list(row) for word, row in rows.items()}


def check_table(table: Any, *, folded: bool = False) -> dict[str, list[str]]:
    """A user's mapping of words to synonyms; `folded`: in lower case."""
    if not isinstance(table, Mapping):
        raise UserError(f"synonyms must be a file or a mapping of a word to a list of words, found {table!r:.80}")
    for word, words in table.items():
        if not isinstance(words, list | tuple) or not all(isinstance(entry, str) for entry in (word, *words)):
            raise UserError(f"synonyms of {word!r:.40} must be a list of words, found {words!r:.80}")
    if not folded:
        return {word: list(words) for word, words in table.items()}
    return {word.lower(): [synonym.lower() for synonym in words] for word, words in table.items()}


def read_synonyms(path: str | Path, *, folded: bool = False) -> dict[str, list[str]]:
    """word -> its synonyms, the closest first; `folded`: in lower case, as a word vocabulary has them."""
    file = Path(path)
    try:
        rows = _parquet(file) if file.suffix == ".parquet" else _lines(file)
        table = {word: _several(synonyms) for word, synonyms in rows}
    except MissingFile:
        raise UserError(f"the synonym file {file} does not exist") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is not a synonym table ({reason(error)}): .parquet or .jsonl with {FORM}") from None
    if not all(isinstance(name, str) for word, synonyms in table.items() for name in (word, *synonyms)):
        raise UserError(f"{file} is not a synonym table: some word is not a string; it needs {FORM}")
    if not table:
        raise UserError(f"{file} contains no synonyms; it needs {FORM}")
    return (
        {word.lower(): [synonym.lower() for synonym in synonyms] for word, synonyms in table.items()}
        if folded
        else table
    )


def _several(synonyms: object) -> list[str]:
    if not isinstance(synonyms, list):
        raise TypeError("synonyms must be a list")  # list() would split a string into letters
    return synonyms


def _parquet(file: Path) -> list[tuple[str, list[str]]]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(arrow_path(file), columns=["word", "synonyms"])
    return [(row["word"], row["synonyms"]) for row in table.to_pylist()]


def _lines(file: Path) -> list[tuple[str, list[str]]]:
    rows = [parse_json(line, "a line") for line in read_text(file).split("\n") if line.strip()]
    return [(row["word"], row["synonyms"]) for row in rows]
