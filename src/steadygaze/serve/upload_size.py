"""Refuse uploaded files that need much more memory than their size: many columns, many values, long lines, compression.

A parquet file of a few kilobytes can have gigabytes of values, and its metadata can deny it.  A process with limited
memory therefore reads it first: `python -m steadygaze.serve.upload_size FILE BYTES`.
"""

import csv
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from steadygaze.core.errors import UserError, one_line
from steadygaze.core.untrusted_files import limit_memory, open_file
from steadygaze.data.tables import BLOCK, json_rows
from steadygaze.data.user_files import CHUNK
from steadygaze.serve.untrusted_process import run_module

MOST_COLUMNS = 1000
MOST_VALUES = 20_000_000
"""Commas, brackets and line ends of a file: an upper bound of its values."""
MOST_EXPANDED = 1 << 30
"""Bytes of the values of a parquet file."""
MOST_EXPANDED_CHUNK = 128 << 20
"""Bytes of the values of the rows that are read at a time, with 8 bytes for each value."""
MOST_MEMORY = 3 << 30
"""Address space of the process that reads a parquet file first."""
SECONDS = 120
UNREADABLE, TOO_LARGE = 1, 3
"""Exit statuses of that process."""
SEPARATORS = {".csv": b",\n", ".tsv": b"\t\n", ".jsonl": b",[{\n", ".txt": b""}
PART = 1 << 20


def check_size(path: Path) -> None:
    if path.suffix == ".parquet":
        _check_parquet(path)
        return
    _count_values(path)
    if path.suffix == ".jsonl":
        names: set[str] = set()
        for _, row in json_rows(path):
            names.update(row)
            _check_columns(len(names))
    elif path.suffix != ".txt":
        _check_columns(_header_cells(path))


def _check_columns(count: int) -> None:
    if count > MOST_COLUMNS:
        raise UserError(f"the file has more than {MOST_COLUMNS:,} columns: leave out those that are not texts")


def _header_cells(path: Path) -> int:
    """Cells of the first row; broken files are refused by their reader."""
    delimiter = SEPARATORS[path.suffix][:1].decode()
    with open_file(path) as file:
        start = file.read(BLOCK).decode("utf-8", "replace")
    try:
        return len(next(csv.reader(StringIO(start, newline=""), delimiter=delimiter), []))
    except csv.Error as error:
        raise UserError(f"the header cannot be read: {error}") from None


def _count_values(path: Path) -> None:
    """Lines are limited as rows of a csv file are."""
    values, line = 0, 0
    with open_file(path) as file:
        while part := file.read(PART):
            values += sum(part.count(separator) for separator in SEPARATORS[path.suffix])
            first, last = part.find(b"\n"), part.rfind(b"\n")
            line = line + len(part) if last < 0 else max(line + first, len(part) - last - 1)
            if line > BLOCK and path.suffix in (".jsonl", ".txt"):
                raise UserError(f"the file has a line longer than {BLOCK >> 20} MiB")
            line = line if last < 0 else len(part) - last - 1
    if values > MOST_VALUES:
        raise UserError(f"the file has more than {MOST_VALUES:,} values: split it, or leave out columns")


def _check_parquet(path: Path) -> None:
    try:
        run = run_module(__name__, str(path), str(MOST_MEMORY), seconds=SECONDS, ARROW_DEFAULT_MEMORY_POOL="system")
    except subprocess.TimeoutExpired:
        raise UserError(f"reading the file takes longer than {SECONDS} seconds: split it") from None
    if run.returncode == UNREADABLE:
        reason = run.stderr.decode(errors="replace").strip()
        raise UserError(f"the file cannot be read as parquet: {reason:.200}")
    if run.returncode:  # also a signal: the process had too little memory
        raise UserError(
            f"the file is too large without compression: at most {MOST_EXPANDED >> 20:,} MiB in all, "
            f"{MOST_EXPANDED_CHUNK >> 20} MiB in {CHUNK:,} rows and {MOST_COLUMNS:,} columns are read"
        )


def expanded_bytes(values: Any) -> int:
    """Bytes of Arrow values as Python objects, roughly: 8 for each of them, nested ones included."""
    size = int(values.nbytes) + 8 * len(values)
    kind = values.type
    if pa.types.is_dictionary(kind):
        return size + expanded_bytes(values.dictionary_decode())
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        return size + sum(expanded_bytes(values.field(i)) for i in range(kind.num_fields))
    if pa.types.is_nested(kind):
        return size + expanded_bytes(values.values)
    return size


def _is_small(path: Path) -> bool:
    with parquet.ParquetFile(path) as file:
        if len(file.schema_arrow.names) > MOST_COLUMNS:
            return False
        size = 0
        for batch in file.iter_batches(CHUNK, use_threads=False):
            part = sum(map(expanded_bytes, batch.columns))
            size += part
            if part > MOST_EXPANDED_CHUNK or size > MOST_EXPANDED:
                return False
    return True


if __name__ == "__main__":
    limit_memory(int(sys.argv[2]))
    try:
        sys.exit(0 if _is_small(Path(sys.argv[1])) else TOO_LARGE)
    except MemoryError:  # also that of Arrow
        sys.exit(TOO_LARGE)
    except Exception as error:
        print(one_line(error), file=sys.stderr)
        sys.exit(UNREADABLE)
