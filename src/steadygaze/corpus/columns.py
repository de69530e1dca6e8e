"""The columns of a user's file, a chunk of rows at a time: memory does not grow with the file.

jsonl goes through the standard library: Arrow would guess the type of a column from its first block, and lose the line
of an error.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pyarrow import parquet

from steadygaze.corpus.delimited import read_delimited
from steadygaze.corpus.table import Table, read_lines, require
from steadygaze.errors import UserError
from steadygaze.foreign_files import arrow_path, parse_json, third_party

Reader = Callable[[Path, Sequence[str], int], Iterator[Table]]


def read_columns(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    """Tables of at most `chunk` rows.  What is wrong with the path itself is said at once, the rest while reading."""
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
    with third_party(f"{path.name} cannot be read as parquet"), parquet.ParquetFile(path) as file:
        require(names, file.schema_arrow.names, path.name)
        for batch in file.iter_batches(chunk, columns=list(dict.fromkeys(names))):
            yield Table(path.name, _cells(batch, names, path.name, row), range(row, row + len(batch)))
            row += len(batch)


def _cells(batch: Any, names: Sequence[str], file: str, row: int) -> dict[str, list[Any]]:
    try:
        return {name: batch.column(name).to_pylist() for name in names}
    except UnicodeDecodeError:
        raise UserError(f"{file} is not UTF-8: a string in the {len(batch)} rows from {row} on is invalid.") from None


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every line that holds something, with its number."""
    return ((number, _object(line, number, path.name)) for number, line in read_lines(path) if line.strip())


def read_jsonl(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    numbered = json_rows(path)
    seen: set[str] = set()
    while part := list(islice(numbered, chunk)):
        objects = [row for _, row in part]
        if not seen:  # a key may be absent from some rows, but not from all of the first chunk
            seen = set().union(*objects)
            require(names, sorted(seen), path.name)
        columns = {name: [row.get(name) for row in objects] for name in names}
        yield Table(path.name, columns, [number for number, _ in part], unit="line")


def _object(line: str, number: int, file: str) -> dict[str, Any]:
    value = parse_json(line, f"{file}, line {number}")
    if not isinstance(value, dict):
        raise UserError(f'{file}, line {number} is {value!r:.40}; a line must be an object: {{"text": …, "label": …}}.')
    return value


def read_txt(path: Path, names: Sequence[str], chunk: int) -> Iterator[Table]:
    """One text a line, whatever the column is called."""
    if len(names) > 1:
        raise UserError(
            f"{path.name} holds one text a line and no other column; {names[1]!r} needs a csv or jsonl file."
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
