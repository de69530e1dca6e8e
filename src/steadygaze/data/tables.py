"""Table: rows of a user's file as columns of cells, with the row numbers that an editor or spreadsheet shows.

The readers of all formats share the check of required columns and the numbering of lines.

Comma- and tab-separated files, streamed.

Cells are read as strings: "007", "NA" and "true" do not change.  A quoted cell may contain line breaks.
In a file of several columns, a row of empty cells is skipped but counted in the row numbers, as in a spreadsheet.

Files are read in chunks of rows: memory does not grow with the file.

The standard library reads jsonl: Arrow would infer the type of a column from its first block and lose line numbers.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import csv, parquet

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.untrusted_files import arrow_path, foreign_error, open_file, parse_json
from steadygaze.data.text_checks import HEADER, strip_label

SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "vertical bars"}


class NoColumn(UserError):
    """A file lacks a column."""

    def __init__(self, column: str, sentence: str, known: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.column, self.known = column, known


@dataclass(frozen=True)
class Table:
    """Columns of equal length."""

    file: str
    columns: dict[str, list[Any]]
    rows: Sequence[int]
    """As a spreadsheet counts: the header of a csv is row 1, and a row may have several lines.  In jsonl and txt: the
    line.  In parquet: from 1."""
    unit: str = "row"
    has_header: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, column: str) -> Callable[[int], str]:
        """The location of the i-th cell of a column, for error messages."""
        return lambda i: f"{self.row(i)}, column {column!r}"

    def row(self, i: int) -> str:
        """The location of the i-th row."""
        header = HEADER if self.has_header else ""
        return f"{self.file}, {self.unit} {self.rows[i]}{header}"

    def take(self, indices: Sequence[int]) -> "Table":
        """Only these rows."""
        columns = {name: [cells[i] for i in indices] for name, cells in self.columns.items()}
        return replace(self, columns=columns, rows=[self.rows[i] for i in indices])


def concatenate(tables: Iterable[Table]) -> Table:
    parts = list(tables)
    columns = {name: list(chain.from_iterable(part.columns[name] for part in parts)) for name in parts[0].columns}
    return replace(parts[0], columns=columns, rows=list(chain.from_iterable(part.rows for part in parts)))


def require(names: Iterable[str], columns: Sequence[str], file: str) -> None:
    """Refuse a file that lacks one of the columns, or has it twice."""
    counts = Counter(columns)
    for name in names:
        if name not in counts:
            advice = _other_separator(columns[0]) if len(columns) == 1 else ""
            raise NoColumn(name, f"{file}: {advice}{unknown('column', name, columns)}", columns)
        if counts[name] > 1:
            raise UserError(f"{file} has {counts[name]} columns called {name!r}; rename all but one.")


EXCERPT = 60
"""Characters of a row that an error shows."""
BLOCK = 1 << 22  # bytes; a row must fit in one block, and Arrow reads up to 32 blocks ahead


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (1, first line), (2, second line) …, without line ends.

    Raise an error at the first invalid byte, or at a line longer than BLOCK: a file may have no end of line at all.
    """
    with open_file(path) as file:
        offset = 0
        for number, raw in enumerate(iter(lambda: file.readline(BLOCK + 1), b""), start=1):
            if len(raw) > BLOCK:
                raise UserError(f"{path.name}, line {number} is longer than {BLOCK >> 20} MiB: divide it.")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = offset + error.start
                raise UserError(
                    f"{path.name} is not UTF-8: line {number} contains an invalid byte (offset {byte}); "
                    "save it as UTF-8."
                ) from None
            offset += len(raw)
            yield number, line.rstrip("\r\n")


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
    """The first row that does not fit the header, if there is one.

    Called only after reading has failed: an Arrow thread with a Python function crashes the process at exit.
    """
    rows: list[Any] = []

    def remember(row: Any) -> Literal["error"]:
        rows.append(row)
        return "error"

    with suppress(pa.ArrowInvalid, UnicodeDecodeError):
        for _ in _open(path, delimiter, ask=remember):
            pass
    return rows


def _table(file: str, part: Any, names: Sequence[str], first: int) -> Table:
    columns = {name: part.column(name).to_pylist() for name in names}
    table = Table(file, columns, range(first, first + len(part)), has_header=True)
    if part.num_columns == 1:
        return table  # an empty line is an empty cell
    bare = [i for i, cells in enumerate(zip(*table.columns.values(), strict=True)) if not any(cells)]
    blank = {i for i in bare if not any(column[i].as_py() for column in part.columns)}
    return table.take([i for i in range(len(table)) if i not in blank]) if blank else table


def typed(columns: dict[str, list[str]]) -> dict[str, list[str | int | float | None]]:
    """Label columns, as numbers if all cells of all columns are numbers; an empty cell and "nan" become None."""
    stripped = {name: list(map(strip_label, cells)) for name, cells in columns.items()}
    words = {cell for cells in stripped.values() for cell in cells if cell.lower() not in {"", "nan"}}
    values: dict[str, str | int | float] = {word: word for word in words}
    if all(map(_NUMBER.fullmatch, words)):
        values = {word: int(word) if word.lstrip("-").isdigit() else float(word) for word in words}
    return {name: list(map(values.get, cells)) for name, cells in stripped.items()}


@contextmanager
def _explained(path: Path, delimiter: str) -> Iterator[None]:
    """Arrow's complaints as sentences."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        for _ in read_lines(path):  # raises an error with the position of an invalid byte
            pass
        if malformed := _malformed(path, delimiter):
            raise UserError(_unfitting(path, malformed[0])) from None
        if "straddling" in str(error):
            raise UserError(
                f"{path.name} has a row longer than {BLOCK >> 20} MiB: check for an unclosed double quote"
            ) from None
        if "Empty CSV file" not in str(error):  # a header without an end of line is a file without rows
            raise UserError(f"{path.name} cannot be read as a table: {error}.") from None


def _unfitting(path: Path, row: Any) -> str:
    cells = "1 cell" if row.actual_columns == 1 else f"{row.actual_columns} cells"
    advice, text = "", row.text if len(row.text) <= EXCERPT else f"{row.text[:EXCERPT]}…"
    if row.expected_columns == 1:
        with open_file(path) as file:
            advice = _other_separator(file.readline(BLOCK).decode("utf-8-sig", errors="replace"))
    return (
        f"{path.name}, row {row.number} has {cells} where the header has {row.expected_columns}: {text!r}; "
        f"{advice}a cell with the separator must be in double quotes."
    )


def _other_separator(header: str) -> str:
    """Advice for a file whose header of one column has the separators of another format; else empty."""
    names = [name for separator, name in SEPARATORS.items() if separator in header]
    return f"its header is separated by {names[0]}, save it with commas (.csv) or tabs (.tsv); " if names else ""


Reader = Callable[[Path, Sequence[str], int], Iterator[Table]]


def read_columns(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    """Yield tables of at most `chunk` rows.  Errors of the path are raised at once, others while reading."""
    arrow_path(path)
    if path.suffix.lower() not in READERS:
        raise UserError(f"{path.name} has an unknown format {path.suffix!r}; known: {', '.join(READERS)}.")
    if path.stat().st_size == 0:
        raise UserError(f"{path.name} is empty.")
    return _with_rows(READERS[path.suffix.lower()](path, names, chunk), path.name)


def _with_rows(tables: Iterator[Table], file: str) -> Iterator[Table]:
    count = 0
    for table in tables:
        count += len(table)
        if len(table):
            yield table
    if not count:
        raise UserError(f"{file} has no rows.")


def read_parquet(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    row = 1
    with foreign_error(f"{path.name} cannot be read as parquet"), parquet.ParquetFile(path) as file:
        require(names, file.schema_arrow.names, path.name)
        for batch in file.iter_batches(chunk, columns=list(dict.fromkeys(names))):
            yield Table(path.name, _cells(batch, names, path.name, row), range(row, row + len(batch)))
            row += len(batch)


def _cells(batch: Any, names: Sequence[str], file: str, row: int) -> dict[str, list[Any]]:
    try:
        return {name: _values(batch.column(name)) for name in names}
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8: a string in the {len(batch)} rows from {row} on is invalid.") from None


def _values(cells: Any) -> Any:
    """The cells of a column; a time that Python cannot hold is its number."""
    try:
        return cells.to_pylist()
    except UnicodeDecodeError:
        raise
    except (OverflowError, ValueError):
        return list(map(_value, cells))


def _value(cell: Any) -> Any:
    if not cell.is_valid:
        return None
    if isinstance(cell, pa.StructScalar):
        return {name: _value(part) for name, part in cell.items()}
    if isinstance(cell, pa.ListScalar):
        return list(map(_value, cell.values))
    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        return cell.value


def json_rows(path: Path, *, all_encodable: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield nonempty lines with their numbers; `all_encodable`: all columns will be written to another file."""
    for number, line in read_lines(path):
        if line.strip():
            row = parse_json(line, f"{path.name}, line {number}")
            if not isinstance(row, dict):
                expected = 'a line must be an object: {"text": …, "label": …}'
                raise UserError(f"{path.name}, line {number} is {row!r:.40}; {expected}.")
            if all_encodable and "\\ud" in line.lower():
                _check_characters(row, f"{path.name}, line {number}")
            yield number, row


def _check_characters(row: dict[str, Any], line: str) -> None:
    for name, cell in row.items():
        try:
            json.dumps([name, cell], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            raise UserError(
                f"{line}, column {name!r} contains {half!r}, half of a surrogate pair, which is not a character."
            ) from None


def read_jsonl(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    numbered = json_rows(path)
    keys: set[str] = set()
    while part := list(islice(numbered, chunk)):
        objects = [row for _, row in part]
        if not keys:  # a key may be absent from some rows, but not from all of the first chunk
            keys = set().union(*objects)
            require(names, sorted(keys), path.name)
        columns = {name: [row.get(name) for row in objects] for name in names}
        yield Table(path.name, columns, [number for number, _ in part], unit="line")


def read_txt(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    """Read one text per line, with any column name."""
    if len(names) > 1:
        raise UserError(
            f"{path.name} has one text per line and no other columns; {names[1]!r} needs a csv or jsonl file."
        )
    numbered = read_lines(path)
    while part := list(islice(numbered, chunk)):
        yield Table(path.name, {names[0]: [line for _, line in part]}, [number for number, _ in part], unit="line")


READERS: dict[str, Reader] = {
    ".csv": read_delimited,
    ".tsv": partial(read_delimited, delimiter="\t"),
    ".jsonl": read_jsonl,
    ".parquet": read_parquet,
    ".txt": read_txt,
}


def column_types(path: Path, chunk: int) -> dict[str, Any]:
    """The Arrow type of each column; None: cells of several types."""
    suffix = path.suffix.lower()
    types: dict[str, Any] = {}
    if suffix == ".jsonl":
        numbered = json_rows(path, all_encodable=True)
        while part := [row for _, row in islice(numbered, chunk)]:
            for name in dict.fromkeys(key for row in part for key in row):
                types[name] = _common_type(types.get(name, pa.null()), [row.get(name) for row in part])
    elif suffix == ".parquet":
        with foreign_error(f"{path.name} cannot be read as parquet"):
            schema = parquet.read_schema(path)
        require(schema.names, schema.names, path.name)
        types = dict(zip(schema.names, schema.types, strict=True))
    elif suffix != ".txt":
        delimiter = "\t" if suffix == ".tsv" else ","
        with _explained(path, delimiter):
            types = dict.fromkeys(_open(path, delimiter).schema.names, pa.string())
    return types


def _common_type(kind: Any, cells: list[Any]) -> Any:
    """A type for these cells and those of `kind`; None if there is none."""
    if kind is None:
        return None
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
        schemas = [pa.schema([("", part)]) for part in (kind, pa.array(cells).type)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    return None
