"""The words of a vocabulary: which ids are whole words, and the ids of their synonyms.

In the vocabulary of a transformer only whole words are substituted, not subwords.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from steadygaze.data.synonym_groups import SynonymGroups

STARTS = ("Ġ", "▁")
"""Marks of the first subword of a word, in byte-level and SentencePiece vocabularies."""
SPECIAL = re.compile(r"<.+>|\[.+\]", re.DOTALL)
"""Special tokens.  In a word vocabulary, < and [ are separate words."""
CONTINUES = "##"
"""Mark of the other subwords, in WordPiece vocabularies."""


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
