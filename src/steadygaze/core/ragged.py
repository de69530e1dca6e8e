"""Ragged: many token sequences in one array, without padding.  Placed: the same, with the characters they stand on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.types import Span


@dataclass(frozen=True, slots=True)
class TokenArray:
    """Many token sequences end to end."""

    ids: NDArray[np.int32]  # (N,)
    words: NDArray[np.bool_]  # (N,) True on tokens attention may look at, False on specials
    starts: NDArray[np.int64]  # (n+1,) sequence i is ids[starts[i]:starts[i+1]]
    cut: NDArray[np.bool_]  # (n,) the text was longer than max_length and lost its end

    def __post_init__(self) -> None:
        if self.ids.shape != self.words.shape or self.starts.shape != (len(self.cut) + 1,):
            shapes = {name: getattr(self, name).shape for name in self.__slots__}
            raise ValueError(f"Ragged: shapes do not fit together: {shapes}")

    def __len__(self) -> int:
        return len(self.cut)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) tokens of each sequence, specials included."""
        return np.diff(self.starts)

    def select(self, rows: NDArray[np.integer[Any]] | Sequence[int]) -> "TokenArray":
        """These sequences, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        starts = row_starts(self.lengths[rows])
        source = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], np.diff(starts))
        return TokenArray(self.ids[source], self.words[source], starts, self.cut[rows])


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Ragged plus where each token stands in its text.  Specials stand nowhere and are left out of both lists."""

    ragged: TokenArray
    spans: list[list[Span]]
    """Per text, per token that is a word or a piece of one: characters [start, end) of the text as the user gave it."""
    groups: list[Sequence[int]]
    """Per text, per such token: the index of the word it belongs to; never falls."""

    def __post_init__(self) -> None:
        if not len(self.ragged) == len(self.spans) == len(self.groups):
            raise ValueError(f"Placed: {len(self.ragged)} texts, {len(self.spans)} spans, {len(self.groups)} groups")

    @property
    def word_starts(self) -> NDArray[np.bool_]:
        """(N,) True on the first token of each word."""
        found = np.zeros(len(self.ragged.ids), np.bool_)
        firsts = [np.diff(np.asarray(one, np.int64), prepend=-1) != 0 for one in self.groups]
        found[self.ragged.words] = np.concatenate([np.zeros(0, np.bool_), *firsts])
        return found


def row_starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where sequences of these lengths begin when laid end to end, and where the last ends.  (n,) -> (n+1,)

    >>> row_starts(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
