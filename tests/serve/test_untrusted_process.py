"""Processes that read untrusted input import nothing from the working directory."""

import pyarrow as pa
import pytest

from serve.serving import served  # noqa: F401  skips without the packages of the server
from serve.test_upload_size import as_parquet
from steadygaze.serve import json_bodies
from steadygaze.serve.upload_size import check_size

PLANTED = ("steadygaze/__init__.py", "steadygaze/serve/__init__.py", "orjson.py", "pyarrow.py", "json.py")


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A working directory with modules of these names; each that is imported leaves a file."""
    for name in PLANTED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"open('imported', 'a').write({name!r})")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_body_is_read_without_the_modules_of_the_working_directory(planted):
    assert json_bodies._read(b'{"texts": ["good"]}', 10) == {"texts": ["good"]}
    assert not (planted / "imported").exists()


def test_a_parquet_file_is_read_without_the_modules_of_the_working_directory(planted):
    (planted / "a.parquet").write_bytes(as_parquet(text=pa.array(["good"])))
    check_size(planted / "a.parquet")
    assert not (planted / "imported").exists()


def test_a_process_that_fails_for_another_reason_is_no_large_body(monkeypatch):
    monkeypatch.setattr(json_bodies, "__name__", "steadygaze.unknown")
    with pytest.raises(Exception, match="exit status 1"):
        json_bodies._read(b"{}", 10)
