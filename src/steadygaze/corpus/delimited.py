"""Comma- and tab-separated files, streamed.

Every cell is read as the string that it is: "007", "NA" and "true" stay so.  A quoted cell may hold line breaks.
A row with nothing in any of several cells is blank: skipped, and counted in the row numbers, as in a spreadsheet.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import csv

from steadygaze.corpus.table import Table, refuse_invalid_utf8, require
from steadygaze.errors import UserError

BLOCK = 1 << 22  # bytes; a row must fit in one block, and Arrow reads up to 32 blocks ahead
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]+)?([eE][-+]?[0-9]+)?")  # 007 is a name, twenty digits too


def read_delimited(path: Path, names: Sequence[str], chunk: int, delimiter: str = ",") -> Iterator[Table]:
    """At most `chunk` rows at a time; nothing for a file without rows."""
    row = 2
    with _explained(path, delimiter):
        header = _open(path, delimiter).schema.names
        require(names, header, path.name)
        for batch in _open(path, delimiter, dict.fromkeys(header, pa.string())):
            for start in range(0, len(batch), chunk):
                part = batch.slice(start, chunk)
                yield _table(path.name, part, names, row)
                row += len(part)


def _open(path: Path, delimiter: str, types: dict[str, Any] | None = None, ask: Any = None) -> Any:
    return csv.open_csv(
        path,
        csv.ReadOptions(use_threads=False, block_size=BLOCK),  # threads would lose the row numbers
        csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=ask
        ),
        csv.ConvertOptions(column_types=types or {}),
    )


def _malformed(path: Path, delimiter: str) -> list[Any]:
    """The first row that does not fit the header, where there is one.

    Asked only once reading has failed: a thread of Arrow's that still holds a Python function when the interpreter ends
    takes the whole process down with it.
    """
    found: list[Any] = []

    def remember(row: Any) -> Literal["error"]:
        found.append(row)
        return "error"

    with suppress(pa.ArrowInvalid, UnicodeDecodeError):
        for _ in _open(path, delimiter, ask=remember):
            pass
    return found


def _table(file: str, part: Any, names: Sequence[str], first: int) -> Table:
    table = Table(file, {name: part.column(name).to_pylist() for name in names}, range(first, first + len(part)))
    if part.num_columns == 1:
        return table  # an empty line is an empty cell
    bare = [i for i, cells in enumerate(zip(*table.columns.values(), strict=True)) if not any(cells)]
    blank = {i for i in bare if not any(column[i].as_py() for column in part.columns)}
    return table.take([i for i in range(len(table)) if i not in blank]) if blank else table


def typed(columns: dict[str, list[str]]) -> dict[str, list[str | int | float | None]]:
    """Columns of labels, as numbers if every cell of every column is one; an empty cell and "nan" as nothing."""
    known: dict[str, list[str | int | float | None]] = {
        name: [None if cell.strip().lower() in {"", "nan"} else cell for cell in cells]
        for name, cells in columns.items()
    }
    if not all(_NUMBER.fullmatch(str(cell)) for cells in known.values() for cell in cells if cell is not None):
        return known
    return {name: [None if cell is None else _number(str(cell)) for cell in cells] for name, cells in known.items()}


def _number(cell: str) -> int | float:
    return int(cell) if cell.lstrip("-").isdigit() else float(cell)


@contextmanager
def _explained(path: Path, delimiter: str) -> Iterator[None]:
    """Arrow's complaints as sentences."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        refuse_invalid_utf8(path)
        if malformed := _malformed(path, delimiter):
            raise UserError(_unfitting(path, malformed[0])) from None
        if "straddling" in str(error):
            raise UserError(
                f"{path.name} has a row longer than {BLOCK >> 20} MiB: is a double quote left open?"
            ) from None
        if "Empty CSV file" not in str(error):  # a header without an end of line is a file without rows
            raise UserError(f"{path.name} cannot be read as a table: {error}.") from None


def _unfitting(path: Path, row: Any) -> str:
    cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
    return (
        f"{path.name}, row {row.number} has {cells} where the header has {row.expected_columns}: {row.text!r:.60}; "
        "a cell that holds the separator must be in double quotes."
    )
