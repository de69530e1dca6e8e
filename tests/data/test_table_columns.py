"""Columns that a table cannot store are found without Python objects in the threads of Arrow."""

import pyarrow as pa
from pyarrow import parquet

from steadygaze.data.table_writers import fits_parquet


def test_arrow_reads_no_file_of_python(monkeypatch) -> None:
    """A thread that still has one when the interpreter ends aborts the process."""
    files, read = [], parquet.read_table
    monkeypatch.setattr(parquet, "read_table", lambda file: files.append(file) or read(file))
    assert fits_parquet({"text": pa.string()})
    assert [type(file) for file in files] == [pa.BufferReader]
