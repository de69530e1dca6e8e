"""Select rows: the split and columns that a command reads, held-out rows, and random samples.

The seed is not that of a training run: models that differ only in their seed have the same training texts.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Interval

from steadygaze.core.arguments import Option
from steadygaze.core.types import Label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HELD_OUT = 0.1
"""Default share of the rows that `hold_out` holds out."""


def hold_out(
    n: int,
    labels: Sequence[Label | None] | None = None,
    *,
    share: float = HELD_OUT,
    interval: int | None = None,
    seed: int = 0,
) -> tuple[list[int], list[int]]:
    """Return training rows and held-out rows, both in random order.

    Without labels, the function holds out a rounded share of the rows, at least one.  With labels, it holds out the
    same share of each class, in all rounded up; the first row of each class is for training.  With `interval`,
    it holds out every row of a class whose rank is a multiple of `interval`.
    """
    import numpy as np

    order: list[int] = np.random.default_rng(seed).permutation(n).tolist()
    if labels is None:
        size = max(1, round(n * share))
        return order[size:], order[:size]
    total, ranks = Counter(labels), Counter[Label | None]()
    rank: dict[int, float] = {}  # share of the class's rows before this one; only of rows that may be held out
    for row in order:
        label = labels[row]
        if ranks[label] and (interval is None or (ranks[label] + 1) % interval == 0):
            rank[row] = ranks[label] / total[label]
        ranks[label] += 1
    limit = math.ceil(n * share) if interval is None else None
    held_out = dict.fromkeys(sorted(rank, key=rank.__getitem__)[:limit])
    return [row for row in order if row not in held_out], list(held_out)


def sample_rows(n: int, size: int, seed: int | tuple[int, ...]) -> "NDArray[np.int64]":
    """Return at most `size` random rows, sorted."""
    import numpy as np

    return np.sort(np.random.default_rng(seed).permutation(n)[:size])


COUNT = Interval(ge=1, le=(1 << 31) - 1)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Build it with `core.settings.build`, which validates the fields."""

    data: str
    split: Annotated[str | None, Option("Data", "Split to read.", default="test, or the only one")] = None
    limit: Annotated[
        int | None, Interval(ge=0, le=COUNT.le), Option("Data", "Texts, sampled at random; 0: all.", "N", "all")
    ] = None
    text: Annotated[tuple[str, ...], Option("Data", "Text column; repeat for pairs.", "COL", "text")] = ("text",)
    label: Annotated[str | None, Option("Data", "Label column.", "COL", "label, if there is one")] = None
    rationales: Annotated[str | None, Option("Data", "Column of human rationales.", "COL")] = None
    sentences: Annotated[str | None, Option("Data", "Column of sentences; else a splitter finds them.", "COL")] = None
    drop_empty: Annotated[bool, Option("Data", "Skip rows without text or label instead of stopping.")] = False

    @property
    def columns(self) -> dict[str, Any]:
        """Arguments of `load_corpus`, besides the data and their folder."""
        return {name: getattr(self, name) for name in ("text", "label", "rationales", "sentences", "drop_empty")}

    @property
    def labeled_columns(self) -> dict[str, Any]:
        """The same for training texts, which need labels."""
        return {**self.columns, "label": "label" if self.label is None else self.label}
