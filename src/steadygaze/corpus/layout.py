"""Layout: which columns of a published table hold what, and what becomes of a row."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from steadygaze.corpus import rows
from steadygaze.corpus.check import is_empty
from steadygaze.types import Example


@dataclass(frozen=True)
class Layout:
    """The columns, the function that reads a row of them, and the names of the labels."""

    columns: tuple[str, ...]
    examples: Callable[..., rows.Made]
    """Called with the cells of a row, in the order of `columns`."""
    labels: Mapping[Any, str] | None = None
    """What the last column says -> the label's name; other rows are left out.  None: it says the name."""

    def read(self, table: Mapping[str, list[Any]], dropped: Counter[str]) -> list[Example]:
        """Every example of the table; what is left out is counted in `dropped`."""
        kept = []
        for cells in zip(*(table[name] for name in self.columns), strict=True):
            for item in self._row(cells):
                if isinstance(item, str):
                    dropped[item] += 1
                elif is_empty(item.text) or (item.question is not None and is_empty(item.question)):
                    dropped[rows.EMPTY] += 1
                else:
                    kept.append(item)
        return kept

    def _row(self, cells: tuple[Any, ...]) -> rows.Made:
        *content, label = cells
        if any(cell is None for cell in content):
            return iter([rows.EMPTY])
        if self.labels is None:
            return self.examples(*cells)
        if label not in self.labels:
            return iter([rows.NO_LABEL if label in (None, -1) else rows.OTHER_LABEL])
        return self.examples(*content, self.labels[label])
