"""Align tokens with characters: rationales, words and coverage of the vocabulary."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadygaze.core.errors import CoverageWarning
from steadygaze.core.ragged import TokenArray
from steadygaze.core.rounding import percent
from steadygaze.core.types import Picked, Span


def mark_tokens(spans: Sequence[Span], rationales: Sequence[Span]) -> NDArray[np.bool_]:
    """Tokens that overlap a rationale.  (T,)

    >>> mark_tokens([(0, 2), (3, 7), (8, 9)], [(4, 5)]).tolist()
    [False, True, False]
    """
    marked = sorted(span for span in rationales if span[0] < span[1])
    if not len(spans) or not marked:
        return np.zeros(len(spans), np.bool_)
    start, end = np.asarray(spans, np.int64).T
    first, last = np.asarray(marked, np.int64).T
    before = np.searchsorted(first, end)  # rationales that begin before the token ends
    reach = np.concatenate([[-1], np.maximum.accumulate(last)])[before]  # and where they end
    return np.asarray((reach > start) & (start < end), np.bool_)


def sentence_tokens(spans: Sequence[Span], sentences: Sequence[Span]) -> NDArray[np.int64]:
    """The sentence in which each token ends, from 0; −1 without sentences.  (T,)

    A token between two sentences belongs to the first.  Sentences without tokens are not counted.

    >>> sentence_tokens([(0, 2), (3, 5), (6, 8)], [(0, 4), (4, 5), (6, 8)]).tolist()
    [0, 1, 2]
    """
    if not len(spans) or not sentences:
        return np.full(len(spans), -1)
    starts = np.sort(np.array([start for start, _ in sentences]))
    numbers = np.searchsorted(starts, np.array([end - 1 for _, end in spans]), side="right").clip(1)
    return np.cumsum(np.diff(numbers, prepend=numbers[0]) > 0)


def grade_tokens(spans: Sequence[Span], graded: Sequence[Picked]) -> NDArray[np.float64]:
    """The mark of each token: that of the last marked word that it overlaps, or 0.  Words do not overlap.  (T,)

    >>> grade_tokens([(0, 2), (3, 5), (5, 7), (8, 9)], [(3, 7, 0.4), (8, 9, 1.0)]).tolist()
    [0.0, 0.4, 0.4, 1.0]
    """
    if not len(spans) or not graded:
        return np.zeros(len(spans))
    start, end = np.asarray(spans, np.int64).T
    first, last, marks = np.asarray(sorted(graded), np.float64).T
    word = np.searchsorted(first, end) - 1
    return np.where((word >= 0) & (last[word] > start) & (start < end), marks[word], 0.0)


def merge_words(
    text: str, spans: Sequence[Span], groups: Sequence[int], weights: ArrayLike
) -> tuple[list[str], list[Span], NDArray[np.floating]]:
    """Merge pieces to words; the weight of a word is the sum of its pieces.

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
    """The mean over the pieces of each word.

    >>> mean_of_words([0, 0, 1], [0.25, 0.75, 1.0])
    [0.5, 1.0]
    """
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    if not len(first):
        return []
    total, counts = (np.add.reduceat(column, first) for column in (np.asarray(values), np.ones(len(groups))))
    means: list[float] = (total / counts).tolist()
    return means


UNRELIABLE = "Its predictions for these texts are not reliable. Check the language and the text column"
MOSTLY = 0.5
"""Share of unknown tokens that causes a warning."""
ADVICE = {
    "words": "train with a larger max_length= (--max-length)",
    "pieces": "train a TextClassifier with the setting window=256 (--set window=256) and without max_length",
}
"""How whole texts are read, by the kind of the tokens."""


@dataclass(frozen=True, slots=True)
class Coverage:
    texts: int = 0
    truncated: int = 0
    """Texts that are longer than the model reads."""
    tokens: int = 0
    unknown: int = 0
    """Tokens that are not in the vocabulary: the model reads the same placeholder for all of them."""
    max_length: int = 0
    advice: str = field(default="", compare=False)

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage(
            self.texts + other.texts,
            self.truncated + other.truncated,
            self.tokens + other.tokens,
            self.unknown + other.unknown,
            max(self.max_length, other.max_length),
            self.advice or other.advice,
        )

    @property
    def unknown_share(self) -> float:
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of texts and tokens."""
        names = ("texts", "truncated", "tokens", "unknown", "max_length")
        return {name: getattr(self, name) for name in names}

    @property
    def facts(self) -> dict[str, str]:
        """For a report."""
        return {
            "truncated texts": f"{self.truncated:,} of {self.texts:,}",
            "unknown tokens": f"{percent(self.unknown_share, 1)} of {self.tokens:,}",
        }

    @property
    def unknown_note(self) -> str:
        """A sentence about unknown tokens in explained texts; empty if there are none."""
        if not self.unknown:
            return ""
        return (
            f"unknown tokens: {self.unknown:,} of {self.tokens:,} are not in the model's vocabulary.  It reads the "
            "same placeholder for all of them, so that their weights say nothing about these words"
            f"{f'.  {UNRELIABLE}' if self.unknown_share > MOSTLY else ''}"
        )

    def warnings(self) -> Iterator[CoverageWarning]:
        if self.truncated:
            limit = self.max_length
            yield CoverageWarning(
                f"{self.truncated:,} of {self.texts:,} texts were truncated at {limit:,} tokens: the model reads only "
                f"their first {limit:,} tokens{self.advice and f'.  To read whole texts, {self.advice}'}"
            )
        if self.unknown_share > MOSTLY:
            yield CoverageWarning(
                f"{percent(self.unknown_share)} of the tokens are not in the model's vocabulary: "
                f"{UNRELIABLE[:1].lower()}{UNRELIABLE[1:]}"
            )


def coverage(tokens: Any, read: TokenArray) -> Coverage:
    """The coverage of tokenized texts."""
    unknown = getattr(tokens, "unknown_id", None)
    words = read.ids[read.words]
    return Coverage(
        len(read),
        int(read.cut.sum()),
        len(words),
        0 if unknown is None else int(np.count_nonzero(words == unknown)),
        int(getattr(tokens, "max_length", 0)),
        ADVICE[tokens.kind],
    )


def truncation(tokens: Any, ends: Sequence[int | None]) -> Coverage:
    """Coverage with the number of truncated texts alone, from the `read_to` of their explanations."""
    truncated = sum(end is not None for end in ends)
    return Coverage(len(ends), truncated, max_length=int(getattr(tokens, "max_length", 0)), advice=ADVICE[tokens.kind])
