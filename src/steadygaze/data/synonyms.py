"""Synonym tables: read, filter and map them to a vocabulary.

A table in memory is a mapping of words to lists of synonyms, the closest first.  synonym_formats.py reads files.
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
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import reason
from steadygaze.data.inflection import Form, clash, negates, word_form
from steadygaze.data.synonym_formats import read_rows
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


def substitutable_pairs(table: Mapping[str, Sequence[str]], *, classes: bool = True) -> dict[str, list[str]]:
    """The pairs that may be substituted; words that keep no synonym are left out.

    `classes`: whether suffixes are compared; False: function words, negations and numbers alone are dropped.

    >>> substitutable_pairs({"film": ["movie", "movies", "the"], "films": ["movies"], "never": ["rarely"]})
    {'film': ['movie'], 'films': ['movies']}
    """
    vocabulary = {name.lower() for word, synonyms in table.items() for name in (word, *synonyms)}
    bare = Form(frozenset(), frozenset())
    forms = {name: word_form(name, vocabulary) if classes else bare for name in vocabulary if _is_content(name)}

    def allowed(first: str, second: str) -> bool:
        if first not in forms or second not in forms or negates(first, second) or negates(second, first):
            return False
        return not (clash(forms[first], forms[second]) or clash(forms[second], forms[first]))

    allowed_pairs = {
        word: [o for o in synonyms if allowed(word.lower(), o.lower())] for word, synonyms in table.items()
    }
    return {word: synonyms for word, synonyms in allowed_pairs.items() if synonyms}


def _is_content(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS and not any(letter.isdigit() for letter in word)


STARTS = ("Ġ", "▁")
"""Marks of the first subword of a word, in byte-level and SentencePiece vocabularies."""
SPECIAL = re.compile(r"<.+>|\[.+\]", re.DOTALL)
"""Special tokens.  In a word vocabulary, < and [ are separate words."""
CONTINUES = "##"
"""Mark of the other subwords, in WordPiece vocabularies."""
FORM = (
    'use .parquet or .jsonl with rows of {"word": "good", "synonyms": ["fine", "nice"]}, .csv, .json, a MyThes '
    "thesaurus (.dat) or the folder of a WordNet database"
)


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
    return lower_case_table(table) if folded else {word: list(words) for word, words in table.items()}


def lower_case_table(table: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The table in lower case; rows of words that differ only in case become one row.

    >>> lower_case_table({"Film": ["Movie"], "film": ["picture", "movie"]})
    {'film': ['movie', 'picture']}
    """
    rows: dict[str, dict[str, None]] = {}
    for word, synonyms in table.items():
        rows.setdefault(word.lower(), {}).update(dict.fromkeys(map(str.lower, synonyms)))
    return {word: list(row) for word, row in rows.items()}


def read_synonyms(path: str | Path, *, folded: bool = False, words: Collection[str] = ()) -> dict[str, list[str]]:
    """word -> its synonyms, the closest first; `folded`: in lower case, as a word vocabulary has them.

    Several rows of a word are one row.  `words`: see synonym_formats.py.
    """
    file = Path(path)
    if not os.path.exists(file):
        raise UserError(f"the synonym file {file} does not exist")
    try:
        table: dict[str, list[str]] = {}
        for word, synonyms in read_rows(file, words):
            table[word] = list(dict.fromkeys([*table[word], *synonyms])) if word in table else synonyms
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is not a synonym table ({reason(error)}): {FORM}") from None
    if not all(isinstance(name, str) for word, synonyms in table.items() for name in (word, *synonyms)):
        raise UserError(f"{file} is not a synonym table: some word is not a string; {FORM}")
    if not table:
        raise UserError(f"{file} contains no synonyms; {FORM}")
    return lower_case_table(table) if folded else table
