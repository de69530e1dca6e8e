"""Table: some rows of a user's file as columns of cells, each row knowing what the user's editor calls it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from steadygaze.errors import UserError, unknown


@dataclass(frozen=True)
class Table:
    """Columns of equal length."""

    file: str
    columns: dict[str, list[Any]]
    rows: Sequence[int]
    """As a spreadsheet counts: the header of a csv is row 1.  In jsonl and txt: the line."""
    unit: str = "row"

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, column: str) -> Callable[[int], str]:
        """How a complaint names the i-th cell of a column."""
        return lambda i: f"{self.file}, {self.unit} {self.rows[i]}, column {column!r}"

    def take(self, kept: Sequence[int]) -> "Table":
        """Only these rows."""
        columns = {name: [cells[i] for i in kept] for name, cells in self.columns.items()}
        return Table(self.file, columns, [self.rows[i] for i in kept], self.unit)


def concatenate(tables: Iterable[Table]) -> Table:
    """The tables of one file below each other."""
    first, *rest = tables
    columns = {name: list(cells) for name, cells in first.columns.items()}
    rows = list(first.rows)
    for table in rest:
        rows.extend(table.rows)
        for name, cells in columns.items():
            cells.extend(table.columns[name])
    return Table(first.file, columns, rows, first.unit)


def require(names: Iterable[str], found: Sequence[str], file: str) -> None:
    """Refuse a file that lacks one of the columns, or has it twice."""
    for name in names:
        if name not in found:
            raise UserError(f"{file}: {unknown('column', name, found)}")
        if found.count(name) > 1:
            raise UserError(f"{file} has {found.count(name)} columns called {name!r}; rename all but one.")
