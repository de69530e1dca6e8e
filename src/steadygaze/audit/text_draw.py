"""TextDraw: the texts that an audit reads, all of them or a random sample.

An audit of a model that steadygaze did not train takes seconds per text on a CPU.  Without a limit, it reads
DEFAULT_LIMIT texts.  The limit 0 reads all texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.data.splits import sample_rows
from steadygaze.results.formatting import count_text

DEFAULT_LIMIT = 100
STREAM = 0xA0D1
"""Separates the audit's random stream from that of training with the same seed."""
T = TypeVar("T")


@dataclass(frozen=True)
class TextDraw:
    total: int
    size: int
    """Number of audited texts."""
    seed: int
    by_default: bool = False
    """Whether the size is DEFAULT_LIMIT, because no limit was set."""

    def select(self, items: Sequence[T]) -> list[T]:
        """The drawn items, in their order."""
        if self.size == self.total:
            return list(items)
        return [items[row] for row in sample_rows(self.total, self.size, (self.seed, STREAM))]

    def __str__(self) -> str:
        """
        >>> str(TextDraw(400, 100, 0)), str(TextDraw(1, 1, 0))
        ('100 of 400 texts, drawn with seed 0', '1 text')
        """
        if self.size == self.total:
            return count_text(self.total, "text")
        return f"{self.size:,} of {count_text(self.total, 'text')}, drawn with seed {self.seed}"


def draw_texts(total: int, limit: int | None, seed: int, adapter: ModelAdapter | None = None) -> TextDraw:
    """Draw at most `limit` texts; None: all, or DEFAULT_LIMIT for a model that is not a TextClassifier."""
    by_default = limit is None and adapter is not None and not adapter.is_classifier and total > DEFAULT_LIMIT
    size = min(DEFAULT_LIMIT if by_default else limit or total, total)
    return TextDraw(total, size, seed, by_default)
