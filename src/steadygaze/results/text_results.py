"""TextResults: what the certificates of several texts share, as a sequence, a table and text in a terminal.

Does not import torch.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from steadygaze.core.errors import one_line
from steadygaze.core.output_paths import GENERATOR
from steadygaze.core.rounding import percent
from steadygaze.results.data_frame import data_frame
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.row import JsonResult

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pandas import DataFrame
    from rich.console import Group

Item = TypeVar("Item", bound="DataclassInstance")
"""The result of one text."""
LEAST = 5
"""Texts that the summary lists."""
LABEL_WIDTH = 24
"""Characters of a label in the list."""


@dataclass(frozen=True, repr=False)
class TextResults(JsonResult, Sequence[Item]):
    """One result per text, in the order of the texts."""

    rows: tuple[Item, ...]
    """The results."""
    health: Health = field(default=HEALTHY, kw_only=True)
    """Known-bad states of the model."""
    scope: ClassVar[str]
    """What the results are about, and what they are not about."""
    title: ClassVar[str] = "Certificate: about"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return replace(self, rows=self.rows[index]) if isinstance(index, slice) else self.rows[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.rows)

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """Counts and means over all texts."""

    @abstractmethod
    def lines(self) -> list[tuple[str, str]]:
        """The summary for a terminal: descriptions and values."""

    def to_dict(self) -> dict[str, Any]:
        head = {**GENERATOR, "health": self.health.to_list(), "sentence": self.scope}
        return {**head, **self._settings(), "summary": self.summary(), "rows": self._row_values()}

    def to_pandas(self) -> "DataFrame":
        """The results as a table.

        Returns
        -------
        pandas.DataFrame
            One row per text.
        """
        return data_frame(list(map(asdict, self.rows)))

    def warnings(self) -> list[str]:
        """Warnings that limit the meaning of the numbers.

        Returns
        -------
        list of str
            One sentence each.
        """
        return []

    def __str__(self) -> str:
        numbers = [f"{description}: {value}" for description, value in self.lines()]
        warnings = [*map(str, self.health.lines), *self.warnings()]
        return "\n".join([*warnings, f"{self.title} {self.scope}.", *numbers, *self._notes()])

    __repr__ = __str__

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, show_header=False)
        for description, value in self.lines():
            table.add_row(Text(description), Text(value))
        heading, listed = self._least()
        least = Table(*heading, box=None, pad_edge=False, header_style="bold")
        for *cells, text in listed if len(self) > 1 else []:
            cut = Text(one_line(text), no_wrap=True, overflow="ellipsis")
            least.add_row(*(Text(one_line(cell, LABEL_WIDTH)) for cell in cells), cut)
        warnings = [Text(f"! {warning}", style="bold yellow") for warning in self.warnings()]
        body = (table, Text(), least, Text()) if least.row_count else (table,)
        notes = [Text(note, style="dim") for note in (f"This is about {self.scope}.", *self._notes())]
        return Group(*self.health.lines, *warnings, *body, *notes)

    def _settings(self) -> dict[str, Any]:
        """The settings of `to_dict`."""
        return {}

    def _row_values(self) -> list[dict[str, Any]]:
        """The rows of `to_dict`."""
        return [asdict(row) for row in self.rows]

    def _notes(self) -> list[str]:
        """Sentences below the summary."""
        return []

    def _least(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Heading and rows of the list of the worst texts; the text comes last."""
        return (), []


def count_share(count: int, total: int) -> str:
    """
    >>> count_share(1, 8)
    '1 of 8 (12.5 %)'
    """
    return f"{count:,} of {total:,} ({percent(count / total, 1)})"
