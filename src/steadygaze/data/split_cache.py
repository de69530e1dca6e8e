"""Cache of split stretches: whitespace-separated parts of texts with their tokens.

Most stretches repeat, so that only new ones are split by the library.  No token contains white space or depends on
text beyond it.

    text      "It's a film, isn't it?"     stretches   It's  a  film,  isn't  it?
    "film,"   -> ids of film and ","       at (0, 4) and (4, 5) of the stretch

Only ASCII stretches are cached, and only texts with single spaces use the cache.  All other texts give None and are
split whole.
"""

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.ragged import row_starts
from steadygaze.core.types import Span

Spot = tuple[list[int], list[Span], Sequence[int]]
"""Ids, spans and groups of one text."""

LONGEST = 32
"""Letters of a stretch that is worth keeping."""
MOST = 200_000
"""Stretches kept, some 30 MB; what comes later is split each time."""


class Table(NamedTuple):
    """Row c tells the tokens of stretch c: they are first[c] .. first[c+1] - 1 of the other three.  Row 0 has none."""

    first: NDArray[np.int64]
    ids: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


class SplitCache:
    """Calls `split` only for stretches never seen before.  Threads may share it."""

    def __init__(self, split: Callable[[list[str]], list[Spot]]) -> None:
        self._split = split
        self._row: dict[str, int] = {}
        none = np.zeros(0, np.int64)
        self._table = Table(np.zeros(2, np.int64), none, none, none)
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["SplitCache"], tuple[Callable[[list[str]], list[Spot]]]]:
        return SplitCache, (self._split,)  # a copy begins empty, with a lock of its own

    def __call__(self, texts: list[str]) -> list[Spot | None]:
        """The spots of every text that is single-spaced ASCII of ordinary words."""
        stretches = [text.split() if text.isascii() else [] for text in texts]
        flat = list(chain.from_iterable(stretches))
        rows = self._look_up(flat)
        table = self._table  # at least as new as the rows
        edges = row_starts(np.fromiter(map(len, stretches), np.int64, len(stretches)))
        size = np.fromiter(map(len, flat), np.int64, len(flat))
        place = row_starts(size + 1)  # where each stretch would begin if all texts were one
        whole = np.fromiter(map(len, texts), np.int64, len(texts)) + 1 == np.diff(place[edges])
        whole[np.repeat(np.arange(len(texts)), np.diff(edges))[rows == 0]] = False
        count = table.first[rows + 1] - table.first[rows]
        token = row_starts(count)
        source = np.arange(token[-1]) + np.repeat(table.first[rows] - token[:-1], count)
        shift = np.repeat(place[:-1] - np.repeat(place[edges[:-1]], np.diff(edges)), count)
        ids = table.ids[source].tolist()
        spans = list(zip((table.start[source] + shift).tolist(), (table.end[source] + shift).tolist(), strict=True))
        bounds = token[edges].tolist()
        return [
            (ids[a:b], spans[a:b], range(b - a)) if complete else None
            for a, b, complete in zip(bounds[:-1], bounds[1:], whole.tolist(), strict=True)
        ]

    def _look_up(self, flat: list[str]) -> NDArray[np.int64]:
        """The row of each stretch, 0 where it is not kept."""
        cached = np.fromiter(map(self._row.get, flat, repeat(0)), np.int64, len(flat))
        new = {flat[i] for i in np.flatnonzero(cached == 0).tolist() if len(flat[i]) <= LONGEST}
        if not new or len(self._row) >= MOST:
            return cached
        self._learn(sorted(new))
        return np.fromiter(map(self._row.get, flat, repeat(0)), np.int64, len(flat))

    def _learn(self, new: list[str]) -> None:
        spots = self._split(new)
        with self._lock:
            old = self._table
            counts = np.array([len(ids) for ids, _, _ in spots], np.int64)
            spans = np.array([span for _, spans, _ in spots for span in spans], np.int64).reshape(-1, 2)
            flat = np.array([index for ids, _, _ in spots for index in ids], np.int64)
            self._table = Table(
                np.concatenate([old.first, old.first[-1] + np.cumsum(counts)]),
                np.concatenate([old.ids, flat]),
                np.concatenate([old.start, spans[:, 0]]),
                np.concatenate([old.end, spans[:, 1]]),
            )
            # Rows last, so that a row always has its tokens.  Another thread may have added the same stretch.
            self._row.update(zip(new, range(len(old.first) - 1, len(old.first) - 1 + len(new)), strict=True))
