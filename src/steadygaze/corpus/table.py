"""Table: some rows of a user's file as columns of cells, each row knowing what the user's editor calls it.

Also what every reader of such files needs: the columns that must be there, and lines with their numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadygaze.errors import UserError, unknown
from steadygaze.foreign_files import open_file


class NoColumn(UserError):
    """A file lacks a column."""

    def __init__(self, column: str, sentence: str) -> None:
        super().__init__(sentence)
        self.column = column


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
            raise NoColumn(name, f"{file}: {unknown('column', name, found)}")
        if found.count(name) > 1:
            raise UserError(f"{file} has {found.count(name)} columns called {name!r}; rename all but one.")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(1, first line), (2, second line) …, without their ends; a byte that is not UTF-8 is named."""
    with open_file(path) as file:
        offset = 0
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = offset + error.start
                raise UserError(
                    f"{path.name} is not UTF-8: line {number} holds an invalid byte (offset {byte}); save it as UTF-8."
                ) from None
            offset += len(raw)
            yield number, line.rstrip("\r\n")


def refuse_invalid_utf8(path: Path) -> None:
    """Read the file through, for the complaint that names the byte."""
    for _ in read_lines(path):
        pass
