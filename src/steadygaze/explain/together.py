"""Many texts with words taken out, read with little padding: those of like length together, so many at once."""

from bisect import bisect_right
from collections.abc import Iterator
from operator import neg

from torch import Tensor

from steadygaze.types import Batch

NEAR = 0.75
"""A text is read beside one no longer than 1 / this of its length: what is longer would make it mostly padding."""


def together(
    lengths: Tensor, batch: Batch, most_tokens: int, most_texts: int | None = None
) -> Iterator[tuple[Tensor, int]]:
    """Which of K texts to read at once, and how wide the longest is, until each was named.  (K,) -> (k,), number

    `batch` has their questions, if any: they count among the tokens.
    """
    asked = 0 if batch.question_ids is None else batch.question_ids.shape[1]
    for some, width in grouped(lengths.clamp_min(1) + asked, most_tokens, most_texts):
        yield some, width - asked


def grouped(
    lengths: Tensor, most_tokens: int, most_texts: int | None = None, near: float = NEAR
) -> Iterator[tuple[Tensor, int]]:
    """The same of texts of these lengths in all, questions included.  (K,) -> (k,), number"""
    lengths, order = lengths.clamp_min(1).sort(descending=True, stable=True)
    widths = lengths.tolist()
    for start, end in passes(widths, most_tokens, most_texts, near):
        yield order[start:end], widths[start]


def passes(
    lengths: list[int], most_tokens: int, most_texts: int | None = None, near: float = NEAR
) -> Iterator[tuple[int, int]]:
    """Where to cut texts, longest first, into forward passes: [start, end) each.  A longer text is read alone."""
    start = 0
    while start < len(lengths):
        longest = lengths[start]
        like = bisect_right(lengths, -near * longest, lo=start, key=neg)
        end = min(like, start + max(1, most_tokens // longest), start + (most_texts or len(lengths)))
        yield start, end
        start = end
