"""Tokens against the characters of their text: which of them a rationale covers, and which make up one word."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadygaze.types import Span


def mark(spans: Sequence[Span], evidence: Sequence[Span]) -> NDArray[np.bool_]:
    """Which tokens share a character with any evidence span.  (T,)

    >>> mark([(0, 2), (3, 7), (8, 9)], [(4, 5)]).tolist()
    [False, True, False]
    """
    marked = sorted(span for span in evidence if span[0] < span[1])
    if not len(spans) or not marked:
        return np.zeros(len(spans), np.bool_)
    start, end = np.asarray(spans, np.int64).T
    first, last = np.asarray(marked, np.int64).T
    before = np.searchsorted(first, end)  # evidence that begins before the token ends
    reach = np.concatenate([[-1], np.maximum.accumulate(last)])[before]  # and how far any of it goes
    return np.asarray((reach > start) & (start < end), np.bool_)


def merge_words(
    text: str, spans: Sequence[Span], groups: Sequence[int], weights: ArrayLike
) -> tuple[list[str], list[Span], NDArray[np.floating]]:
    """Pieces -> the user's words, a word weighing what its pieces weigh together.

    >>> merge_words("unbelievable!", [(0, 2), (2, 12), (12, 13)], [0, 0, 1], [0.25, 0.5, 0.25])
    (['unbelievable', '!'], [(0, 12), (12, 13)], array([0.75, 0.25]))
    """
    values = np.asarray(weights)
    if not len(spans) == len(groups) == len(values):
        raise ValueError(f"merge_words: {len(spans)} spans, {len(groups)} groups and {len(values)} weights")
    if not len(spans):
        return [], [], values
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    last = [*(first[1:] - 1).tolist(), len(spans) - 1]
    merged = [(spans[a][0], spans[b][1]) for a, b in zip(first.tolist(), last, strict=True)]
    return [text[start:end] for start, end in merged], merged, np.add.reduceat(values, first)


def mean_of_words(groups: Sequence[int], values: ArrayLike) -> list[float]:
    """Pieces -> the mean of each word.

    >>> mean_of_words([0, 0, 1], [0.25, 0.75, 1.0])
    [0.5, 1.0]
    """
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    if not len(first):
        return []
    total, many = (np.add.reduceat(one, first) for one in (np.asarray(values), np.ones(len(groups))))
    means: list[float] = (total / many).tolist()
    return means
