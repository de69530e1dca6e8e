"""Rewrites of a text: choices of one word for each of its positions, enumerated or sampled.

text      A fine film, with a fine cast.         parts     "A " | " " | ", with a " | " cast."
options   fine, good | film, movie | fine, good  choices   0 1 0   ->   A fine movie, with a fine cast.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.types import Span
from steadygaze.data.synonym_groups import fold_word
from steadygaze.data.word_segmentation import LETTER

Choices = NDArray[np.int64]


@dataclass(frozen=True)
class TextPositions:
    """A text around the words that may be substituted."""

    words: tuple[str, ...]
    """The words as written."""
    parts: tuple[str, ...]
    """The text before, between and after them."""

    @property
    def beside_unspaced(self) -> list[bool]:
        """True for a word beside a letter of a script without spaces, as good in 这good片."""
        edges = zip(self.parts[:-1], self.parts[1:], strict=True)
        return [bool(LETTER.match(before[-1:]) or LETTER.match(after[:1])) for before, after in edges]

    @property
    def starts(self) -> list[int]:
        """The position of the first letter of each word in the text."""
        steps = [len(word) + len(part) for word, part in zip(("", *self.words), self.parts, strict=True)]
        return list(accumulate(steps))[:-1]

    def rewrites(self, options: Sequence[Sequence[str]], choices: Choices) -> list[str]:
        """The text of each row of choices.  (M,P)"""
        columns: list[Sequence[str]] = [[self.parts[0]] * len(choices)]
        for words, part, column in zip(options, self.parts[1:], choices.T, strict=True):
            columns.append(np.array([word + part for word in words], object)[column].tolist())
        return ["".join(row) for row in zip(*columns, strict=True)]


def text_positions(text: str, spans: Sequence[Span], words: frozenset[str]) -> TextPositions:
    """The positions with one of these words in lower case; a word beside a letter or digit is a part of a word.

    Letters of scripts without spaces are not parts of the word beside them: good in 这good片 is a position.

    >>> text_positions("Fine film!", [(0, 4), (5, 9), (9, 10)], frozenset(["film"]))
    TextPositions(words=('film',), parts=('Fine ', '!'))
    """
    chosen = [
        (start, end)
        for start, end in spans
        if fold_word(text[start:end]) in words
        and not _continues(text[start - 1 : start])
        and not _continues(text[end : end + 1])
    ]
    edges = [0, *(edge for span in chosen for edge in span), len(text)]
    parts = tuple(text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2))
    return TextPositions(tuple(text[start:end] for start, end in chosen), parts)


def _continues(neighbor: str) -> bool:
    """True if a word extends over the character beside it."""
    return neighbor.isalnum() and not LETTER.match(neighbor)


def count_rewrites(sizes: Sequence[int], changes: int | None = None) -> int:
    """Number of rewrites with at most this many changes, the text itself included.

    >>> count_rewrites([3, 2]), count_rewrites([3, 2], 1)
    (6, 4)
    """
    by_changes = [1]
    for size in sizes:
        more = [0, *((size - 1) * count for count in by_changes)]
        by_changes = [a + b for a, b in zip([*by_changes, 0], more, strict=True)]
        by_changes = by_changes if changes is None else by_changes[: changes + 1]
    return sum(by_changes)


def enumerate_choices(sizes: Sequence[int], changes: int | None = None) -> Choices:
    """All choices with at most this many changes; the first row is the text itself.  (M,P)

    >>> enumerate_choices([3, 2], 1).tolist()
    [[0, 0], [1, 0], [2, 0], [0, 1]]
    """
    choices = np.zeros((1, len(sizes)), np.int64)
    for position, size in enumerate(sizes):
        source = choices if changes is None else choices[(choices > 0).sum(1) < changes]
        added = np.repeat(source, size - 1, axis=0)
        added[:, position] = np.tile(np.arange(1, size), len(source))
        choices = np.concatenate([choices, added])
    return choices
