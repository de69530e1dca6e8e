"""Token sequences in one array without padding, and their character spans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.types import Span


@dataclass(frozen=True, slots=True)
class TokenArray:
    """Concatenated token sequences."""

    ids: NDArray[np.int32]  # (N,)
    words: NDArray[np.bool_]  # (N,) True on tokens that attention may weight, False on special tokens
    starts: NDArray[np.int64]  # (n+1,) sequence i is ids[starts[i]:starts[i+1]]
    cut: NDArray[np.bool_]  # (n,) True if the text was truncated to max_length

    def __post_init__(self) -> None:
        if self.ids.shape != self.words.shape or self.starts.shape != (len(self.cut) + 1,):
            shapes = {name: getattr(self, name).shape for name in self.__slots__}
            raise ValueError(f"TokenArray: inconsistent shapes: {shapes}")

    def __len__(self) -> int:
        return len(self.cut)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) number of tokens of each sequence, with special tokens."""
        return np.diff(self.starts)

    def select(self, rows: NDArray[np.integer[Any]] | Sequence[int]) -> "TokenArray":
        """Return these sequences, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        starts = row_starts(self.lengths[rows])
        source = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], np.diff(starts))
        return TokenArray(self.ids[source], self.words[source], starts, self.cut[rows])


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Token sequences with the position of each token in its text; special tokens have none."""

    ragged: TokenArray
    spans: list[list[Span]]
    """Per text, per word token: characters [start, end) of the original text."""
    groups: list[Sequence[int]]
    """Per text, per word token: the index of its word; non-decreasing."""

    def __post_init__(self) -> None:
        if not len(self.ragged) == len(self.spans) == len(self.groups):
            raise ValueError(
                f"TokenizedTexts: {len(self.ragged)} texts, {len(self.spans)} spans, {len(self.groups)} groups"
            )

    @property
    def word_starts(self) -> NDArray[np.bool_]:
        """(N,) True on the first token of each word."""
        begins = np.zeros(len(self.ragged.ids), np.bool_)
        firsts = [np.diff(np.asarray(group, np.int64), prepend=-1) != 0 for group in self.groups]
        begins[self.ragged.words] = np.concatenate([np.zeros(0, np.bool_), *firsts])
        return begins


def row_starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of concatenated sequences of these lengths, and the end of the last.  (n,) -> (n+1,)

    >>> row_starts(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
