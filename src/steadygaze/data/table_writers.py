"""Write rows to a .csv, .tsv, .jsonl or .parquet file, in chunks: memory does not grow with the file.

A csv file has text only: a missing cell is empty; lists, mappings and booleans are JSON.

A spreadsheet runs a cell that starts with = + - @, also in full width, a tab or the end of a line as a formula.  It
skips invisible characters, as a byte order mark, before them.  With `spreadsheet_safe`, such a cell of a .csv or .tsv
file, or one that has apostrophes in front, gets a further apostrophe.  Numbers stay.  To undo, delete the first
apostrophe of the cells that match UNSAFE.  Cells with a semicolon are safe only if commas or tabs separate the columns.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
from pyarrow import parquet

from steadygaze.core.atomic_files import new_file
from steadygaze.core.errors import UserError

Types = Mapping[str, pa.DataType | None]
"""Column -> its Arrow type; None: its cells have several types, which parquet cannot store."""
Rows = Iterator[Mapping[str, Any]]
CHUNK = 1024  # rows per group of a parquet file
INVISIBLE = (
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Control and format characters: a class of a regular expression."""
UNSAFE = re.compile(rf"'*[{INVISIBLE}]*[=+\-@\t\r\n＝＋－＠]")
"""The beginning of a cell that a spreadsheet can run, or of one that was escaped."""
NUMBER = re.compile(r"[+-]?(\d++\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_format(path: Path) -> None:
    """Raise an error if the suffix is not that of a table."""
    if path.suffix.lower() not in WRITERS:
        raise UserError(f"{path.name} has an unknown format {path.suffix!r}; known: {', '.join(WRITERS)}")


def check_spreadsheet(path: Path | None, spreadsheet_safe: bool, option: str = "--out") -> None:
    """Refuse to escape formulas without a file that a spreadsheet reads as text."""
    if spreadsheet_safe and (path is None or path.suffix.lower() not in DELIMITERS):
        raise UserError(f"--spreadsheet-safe escapes the formulas of a .csv or .tsv file: name one with {option}")


def check_columns(path: Path, types: Types) -> None:
    """Raise an error if the suffix is not that of a table, or if the format cannot store a column."""
    check_format(path)
    if path.suffix.lower() != ".parquet" or fits_parquet(types):
        return
    name, kind = next((name, kind) for name, kind in types.items() if not fits_parquet({name: kind}))
    reason = f"the type {kind!s:.80}" if kind is not None else "cells of several types"
    raise UserError(f"column {name!r:.80} has {reason}, which parquet cannot store; write .jsonl")


def fits_parquet(types: Types) -> bool:
    """True if a parquet file of these columns can be written and read again; some types are too deep."""
    if any(kind is None for kind in types.values()):
        return False
    file, schema = pa.BufferOutputStream(), pa.schema(list(types.items()))
    try:
        parquet.write_table(schema.empty_table(), file)
        # A thread of Arrow that still has an object of Python when the command ends aborts it.
        parquet.read_table(pa.BufferReader(file.getvalue()))
    except (pa.ArrowException, OSError):
        return False
    return True


def write_rows(path: Path, types: Types, rows: Iterable[Mapping[str, Any]], *, spreadsheet_safe: bool = False) -> int:
    """Write the file completely or not at all; return the number of rows."""
    check_columns(path, types)
    if spreadsheet_safe:
        types, rows = _escape_names(types), map(_escape, rows)
    with new_file(path) as new:
        return WRITERS[path.suffix.lower()](new, types, iter(rows))


def escape_formula(cell: Any) -> Any:
    """Return the cell with an apostrophe in front if a spreadsheet would run it.

    >>> [escape_formula(cell) for cell in ("=1+1", "-5.2", "- no", "'tis", "'=x", -5, None)]
    ["'=1+1", '-5.2', "'- no", "'tis", "''=x", -5, None]
    """
    unsafe = isinstance(cell, str) and UNSAFE.match(cell) and not NUMBER.fullmatch(cell)
    return f"'{cell}" if unsafe else cell


def _escape(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {escape_formula(name): escape_formula(cell) for name, cell in row.items()}


def _escape_names(types: Types) -> Types:
    return {escape_formula(name): kind for name, kind in types.items()}


def _write_delimited(path: Path, types: Types, rows: Rows, delimiter: str) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        writer = csv.writer(_Lines(file), delimiter=delimiter)
        writer.writerow(types)
        for row in rows:
            writer.writerow(_cell(row.get(name)) for name in types)
            count += 1
    return count


class _Lines:
    r"""End rows with "\n".  A csv writer quotes only the line ends that it writes itself, in Python 3.11: "\r\n"."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix("\r\n") + "\n")


def header(path: Path, types: Types, *, spreadsheet_safe: bool = False) -> bytes:
    """The bytes before the first row of a .csv, .tsv or .jsonl file; a column name can contain line breaks."""
    text = io.StringIO()
    types = _escape_names(types) if spreadsheet_safe else types
    if (delimiter := DELIMITERS.get(path.suffix.lower())) is not None:
        csv.writer(_Lines(text), delimiter=delimiter).writerow(types)
    return text.getvalue().encode(errors="replace")


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, list | dict | bool) else value


def _write_jsonl(path: Path, types: Types, rows: Rows) -> int:
    count = 0
    with path.open("wb") as file:
        for row in rows:
            line = json.dumps({name: row.get(name) for name in types}, ensure_ascii=False, default=str)
            file.write(line.encode(errors="replace") + b"\n")
            count += 1
    return count


def _write_parquet(path: Path, types: Types, rows: Rows) -> int:
    count, schema = 0, pa.schema(list(types.items()))
    with parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(islice(rows, CHUNK)):
            writer.write_table(pa.Table.from_pylist(chunk, schema))
            count += len(chunk)
    return count


DELIMITERS = {".csv": ",", ".tsv": "\t"}
WRITERS: dict[str, Callable[[Path, Types, Rows], int]] = {
    **{suffix: partial(_write_delimited, delimiter=delimiter) for suffix, delimiter in DELIMITERS.items()},
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}
