"""Uploads that would need much more memory or disk than their size are refused with a sentence."""

import asyncio
import io
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from serve.serving import finished, run
from serve.test_jobs import CSV, upload
from steadygaze.serve import file_job, upload_size
from steadygaze.serve.upload_size import expanded_bytes

LONG = "a" * (1 << 17)


def as_parquet(**columns) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, compression="zstd")
    return file.getvalue()


def dictionary_bomb() -> bytes:
    """One text of 128 KiB, 2000 times: the values need 1000 times the size of the file."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array([LONG]))
    return as_parquet(text=text)


def null_bomb() -> bytes:
    """Lists of nothing, which Python objects would be for each entry."""
    offsets = pa.array([0, 1 << 25], pa.int32())
    return as_parquet(text=["a"], other=pa.ListArray.from_arrays(offsets, pa.nulls(1 << 25)))


FILES = {
    "columns.csv": ("text," + "," * 1001 + "\n" + "a," + "," * 1001 + "\n").encode(),
    "hidden-columns.csv": ('"\n",text' + "," * 1001 + "\n").encode(),
    "columns.tsv": ("text\t" + "\t" * 1001 + "\n").encode(),
    "columns.jsonl": b"".join(b'{"text": "a", "k%d": 1}\n' % i for i in range(1001)),
    "header.csv": b'"' + b"a" * 200_000 + b'",text\n1,a\n',
    "line.jsonl": b'{"text": "' + b"a" * (5 << 20) + b'"}\n',
    "line.txt": b"a film\n" + b"a" * (5 << 20),
    "dictionary.parquet": dictionary_bomb(),
    "columns.parquet": as_parquet(text=["a"], **{f"k{i}": [1] for i in range(1001)}),
}
REASONS = {
    "columns": "1,000 columns",
    "hidden-columns": "1,000 columns",
    "header": "the header cannot be read",
    "line": "a line longer than 4 MiB",
    "dictionary": "too large without compression",
}


def refused(content: bytes, name: str) -> tuple[int, str, list]:
    async def work(client):
        answer = await upload(client, content, name)
        return answer.status_code, answer.json()["error"]["message"], (await client.get("/v1/jobs")).json()["jobs"]

    return run(work)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_expands_is_refused_and_leaves_no_job(name):
    status, message, jobs = refused(FILES[name], name)
    reason = "1,000 columns" if name.startswith("columns") else REASONS[name.partition(".")[0]]
    assert (status, jobs) == (422, [])
    assert reason in message


def test_a_file_with_too_many_values_is_refused(monkeypatch):
    monkeypatch.setattr(upload_size, "MOST_VALUES", 5)
    assert "more than 5 values" in refused(CSV, "reviews.csv")[1]
    content = b'{"text": "a", "other": [[], [], []]}\n'
    assert "more than 5 values" in refused(content, "rows.jsonl")[1]


def test_values_count_as_python_objects():
    nested = pa.array([[None] * 1000], pa.list_(pa.null()))
    assert expanded_bytes(nested) >= 8000
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int8()), pa.array([LONG]))
    assert expanded_bytes(repeated) >= 100 * len(LONG)
    rows = pa.array([{"a": [1, 2], "b": {"c": "text"}}] * 3)
    assert expanded_bytes(rows) >= 8 * (3 + 3 + 6 + 3 + 3)
    pairs = pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64()))
    assert expanded_bytes(pairs) >= 8 * 5


def test_usual_files_pass():
    content = as_parquet(text=["a good film", "a dull film"], tags=[["x"], []], score=[{"a": 1.0}, None])

    async def work(client):
        return await finished(client, (await upload(client, content, "rows.parquet")).json())

    assert run(work)["total"] == 2


@pytest.mark.slow
def test_lists_without_content_count():
    status, message, _ = refused(null_bomb(), "nulls.parquet")
    assert (status, "too large without compression" in message) == (422, True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the address space")
def test_the_memory_of_the_process_that_reads_a_parquet_file_first_is_limited(monkeypatch):
    """A usual file, and less memory than Python needs."""
    monkeypatch.setattr(upload_size, "MOST_MEMORY", 50 << 20)
    status, message, _ = refused(as_parquet(text=["a good film"]), "rows.parquet")
    assert status == 422
    assert "too large without compression" in message or "cannot be read as parquet" in message


def test_results_that_fill_the_disk_fail_the_job_and_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(file_job, "MOST_WRITTEN", 10)

    async def work(client):
        job = await finished(client, (await upload(client)).json(), state="failed")
        return job["message"], list(tmp_path.glob("*/*/*"))

    message, files = run(work)
    assert message.endswith("split the file")
    assert files == []


def test_a_full_disk_refuses_the_upload_with_a_sentence(monkeypatch):
    async def full(request, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steadygaze.serve.job_api._write", full)

    async def work(client):
        return await upload(client), (await client.get("/v1/jobs")).json()["jobs"]

    answer, jobs = run(work)
    assert (answer.status_code, jobs) == (409, [])
    assert "No space left on device; delete a job" in answer.json()["error"]["message"]


def test_the_files_of_a_canceled_job_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def stopped(job, **_):
        job.stop.set()
        job.on_progress("explaining", 0, 1)

    monkeypatch.setattr("steadygaze.serve.job_api.explain_file", stopped)

    async def work(client):
        job = await finished(client, (await upload(client)).json(), state="canceled")
        await asyncio.sleep(0)
        return job["state"], list(tmp_path.glob("*/*/*"))

    assert run(work) == ("canceled", [])
