"""Jobs: files and audits in the background, their progress, results and limits."""

import asyncio
import errno
import io
import os
import shlex
import shutil
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import httpx
import pandas as pd
import pytest

import steadygaze as sg
from estimator.tiny import fitted
from serve.serving import DATA, SYNONYMS, cheerful, finished, run, served
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.results.report import Report
from steadygaze.serve import jobs as jobs_module
from steadygaze.serve.jobs import Jobs
from steadygaze.serve.served_models import ServedModel

CSV = b'id,text\n1,a good film\n2,a dull film\n3,"a good, long film"\n'


async def upload(client: httpx.AsyncClient, content: bytes = CSV, name: str = "reviews.csv", **options):
    headers = {"content-type": "application/octet-stream"}
    return await client.post("/v1/explain-file", params={"name": name, **options}, content=content, headers=headers)


def test_a_file_is_explained_and_downloaded_in_every_format():
    async def work(client):
        answer = await upload(client)
        assert answer.status_code == 202
        job = await finished(client, answer.json())
        address = f"/v1/jobs/{job['id']}/result"
        return job, {form: await client.get(address, params={"format": form}) for form in job["formats"]}

    job, results = run(work)
    assert (job["done"], job["total"], job["name"], job["formats"]) == (3, 3, "reviews.csv", ["csv", "html", "parquet"])
    table = pd.read_parquet(io.BytesIO(results["parquet"].content))
    expected = served().adapter.explain("a good film", "leave-one-out")
    assert table["id"].tolist() == ["1", "2", "3"]
    assert table["predicted_label"].tolist() == ["yes", "no", "yes"]
    assert list(table["words"][0]) == list(expected.tokens)
    assert table["weights"][0] == pytest.approx(expected.weights)
    assert pd.read_csv(io.BytesIO(results["csv"].content))["predicted_label"].tolist() == ["yes", "no", "yes"]
    assert "<script" not in results["html"].text
    assert all("attachment" in result.headers["content-disposition"] for result in results.values())


def test_the_requests_of_the_page_about_the_workbench_are_accepted():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "workbench.md").read_text(encoding="utf-8")
    requests = [shlex.split(line) for line in page.splitlines() if line.startswith("curl ")]
    file = b"review\na good film\n"

    async def work(client):
        answers = []
        for _, header, content_type, option, body, url in requests:
            assert (header, option) in (("-H", "-d"), ("-H", "--data-binary"))
            content = file if body == "@reviews.csv" else body.encode()
            headers = dict([content_type.split(": ")])
            answers.append(await client.post(url, headers=headers, content=content))
        return answers, await finished(client, answers[1].json())

    answers, job = run(work)
    assert [answer.status_code for answer in answers] == [200, 202]
    assert job["done"] == 1


def test_a_jsonl_file_with_cells_of_several_types_has_no_parquet_result():
    content = b'{"text": "a good film", "x": 1}\n{"text": "a dull film", "x": "one"}\n'

    async def work(client):
        job = await finished(client, (await upload(client, content, "rows.jsonl")).json())
        return job, await client.get(f"/v1/jobs/{job['id']}/result", params={"format": "parquet"})

    job, refused = run(work)
    assert job["formats"] == ["csv", "html"]
    assert refused.status_code == 422
    assert "formats: csv, html" in refused.json()["error"]["message"]


def test_a_job_is_canceled_and_its_files_are_deleted():
    started, go = threading.Event(), threading.Event()
    go.set()

    def slow(texts):
        started.set()
        go.wait(10)
        return cheerful(texts)

    async def work(client):
        go.clear()
        started.clear()  # loading the model has called it
        job, waiting = [(await upload(client)).json() for _ in range(2)]
        await asyncio.to_thread(started.wait, 10)
        states = [entry["state"] for entry in (await client.get("/v1/jobs")).json()["jobs"]]
        for canceled in (job, waiting):
            await client.post(f"/v1/jobs/{canceled['id']}/cancel", json={})
        go.set()
        await finished(client, job, state="canceled")
        await finished(client, waiting, state="canceled")
        refused = await client.get(f"/v1/jobs/{job['id']}/result", params={"format": "csv"})
        deleted = await client.delete(f"/v1/jobs/{job['id']}")
        gone = await client.get(f"/v1/jobs/{job['id']}")
        return states, refused, deleted, gone

    states, refused, deleted, gone = run(work, served(function=slow))
    assert states == ["running", "waiting"]
    assert (refused.status_code, deleted.status_code, gone.status_code) == (422, 204, 404)


def test_files_of_jobs_are_private_and_removed_at_shutdown(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jobs = Jobs()
    job = jobs.create("explain", "../../etc/passwd\n<script>", "model")
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert job.folder.parent == folder
    assert job.name == r"../../etc/passwd\n<script>"
    jobs.close()
    assert list(tmp_path.iterdir()) == []


def test_the_number_and_the_size_of_jobs_are_limited():
    jobs = Jobs(most=1)
    jobs.create("explain", "a.csv", "model")
    with pytest.raises(jobs_module.TooManyJobs, match="delete one of them first"):
        jobs.create("explain", "b.csv", "model")
    jobs.close()
    jobs = Jobs(most_stored=3)
    (jobs.create("explain", "a.csv", "model").folder / "file").write_bytes(b"1234")
    with pytest.raises(jobs_module.TooManyJobs, match="exceed"):
        jobs.create("explain", "b.csv", "model")
    jobs.close()


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        (CSV, "reviews.exe", {}, "the file name must end with"),
        (CSV, "csv", {}, "no suffix"),
        (CSV, "reviews.csv", {"text": "review"}, "no column 'review'; its columns: id, text"),
        (CSV, "reviews.csv", {"model": "x"}, "there is no model"),
        (CSV, "reviews.csv", {"explainer": "attention"}, "does not support the explainer"),
        (b"", "reviews.csv", {}, "empty"),
        (b"not parquet", "reviews.parquet", {}, "parquet"),
        (b"{", "reviews.jsonl", {}, "line 1"),
        (b'{"text": "a", "other": "\\ud800"}', "reviews.jsonl", {}, "line 1, column 'other' contains '\\ud800'"),
    ],
)
def test_a_wrong_upload_is_refused_and_leaves_no_job(content, name, options, message):
    async def work(client):
        return await upload(client, content, name, **options), await client.get("/v1/jobs")

    answer, left = run(work)
    assert answer.status_code in (400, 422)
    assert message in answer.json()["error"]["message"]
    assert left.json() == {"jobs": []}


@pytest.mark.slow
def test_the_number_of_text_columns_is_that_of_the_model():
    """A black box reads texts and pairs."""
    words = ServedModel("words", as_adapter(fitted()), {})

    async def work(client):
        refused = await upload(client, text=["id", "text"], model="words")
        return refused, await finished(client, (await upload(client, text=["text", "id"])).json())

    refused, job = run(work, served(function=lambda pairs: [[0.1, 0.9]] * len(pairs)), words)
    assert "the model needs one text column; found 2" in refused.json()["error"]["message"]
    assert job["total"] == 3


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text\n\n", "row 2"),
        (b"id,text\n1,good\n2,\n", "row 3"),
        (b"text\n" + b"a " * 10_001 + b"\n", "text 1 has more than 20,000 characters"),
        (b"text,words\na,b\n", "a column 'words'"),
    ],
)
def test_a_file_that_cannot_be_explained_fails_with_a_sentence(content, message):
    async def work(client):
        answer = await upload(client, content)
        if answer.status_code == 422:
            return answer.json()["error"]["message"]
        return (await finished(client, answer.json(), state="failed"))["message"]

    assert message in run(work)


def test_a_file_with_cells_that_parquet_cannot_nest_has_the_other_results():
    deep = "[" * 55 + "1" + "]" * 55

    async def work(client):
        content = b'{"text": "a good film", "x": ' + deep.encode() + b"}\n"
        return await finished(client, (await upload(client, content, "a.jsonl")).json())

    assert run(work)["formats"] == ["csv", "html"]


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b'text\na\n" "\n', None, "reviews.csv: row 3 (the header is row 1), column 'text' is empty; fill it in, or"),
        (b"text\na\n", OSError("schema too deep"), "could not finish the job: schema too deep"),
        (b"text\na\n", MemoryError(), "could not finish the job: MemoryError"),
        (b"text\na\n", KeyError("secret"), "failed with KeyError; its operator sees the details"),
    ],
)
def test_a_failed_job_names_its_cause_in_terms_of_the_page(content, error, message, monkeypatch):
    def fail(*_):
        raise error

    if error is not None:
        monkeypatch.setattr("steadygaze.serve.file_job.write_explanations", fail)

    async def work(client):
        return await finished(client, (await upload(client, content)).json(), state="failed")

    shown = run(work)["message"]
    assert message in shown
    assert "--" not in shown
    assert "secret" not in shown


def test_formulas_and_templates_in_a_file_are_text():
    hostile = "{{7*7}} ${7*7} =cmd|'/c calc' <script>alert(1)</script>"
    content = ('text\n"' + hostile + '"\n').encode()

    async def work(client):
        job = await finished(client, (await upload(client, content)).json())
        return [
            (await client.get(f"/v1/jobs/{job['id']}/result", params={"format": form})).content
            for form in ("csv", "html")
        ]

    table, page = run(work)
    assert pd.read_csv(io.BytesIO(table))["text"][0] == hostile
    assert b"<script>alert" not in page
    assert b"49" not in page


def test_requests_are_answered_while_a_job_runs():
    """A job sends small batches: a request waits for at most one of them."""
    sizes, last = [], []

    def counted(texts):
        sizes.append(len(texts))
        return cheerful(texts)

    async def work(client):
        content = "\n".join(["text", *(f"a good film {i}" for i in range(400))]).encode()
        job = (await upload(client, content)).json()
        await client.post("/v1/predict", json={"texts": ["another text"]})
        last.append((await client.get(f"/v1/jobs/{job['id']}")).json()["state"])
        await finished(client, job)

    run(work, served(function=counted))
    assert last != ["done"]
    assert max(sizes) <= 256


def test_an_audit_has_the_numbers_of_sg_audit_and_the_texts_behind_them():
    texts, labels = [e.text for e in DATA.examples], [e.label for e in DATA.examples]

    async def work(client):
        job = await finished(client, (await client.post("/v1/audit", json={"texts": texts, "labels": labels})).json())
        address = f"/v1/jobs/{job['id']}"
        report = (await client.get(f"{address}/result", params={"format": "json"})).json()
        view = (await client.get(f"{address}/report")).json()
        orders = ["order", "errors", "comprehensiveness", "jensen-shannon/1-synonym"]
        sorted_texts = [(await client.get(f"{address}/texts", params={"order": order})).json() for order in orders]
        filters = [{"label": "no"}, {"wrong": True}, {"word": "WASTE"}, {"limit": 1, "offset": 2}]
        result = [(await client.get(f"{address}/texts", params=query)).json() for query in filters]
        return job, report, view, sorted_texts, result

    job, report, view, sorted_texts, result = run(work)
    expected = sg.audit(cheerful, texts, labels, classes=["no", "yes"], synonyms=SYNONYMS)
    assert [row.to_dict() for row in Report.from_dict(report).rows] == [row.to_dict() for row in expected.rows]
    assert [row["value"] for row in view["rows"]] == [row["value"] for row in report["rows"]]
    assert (job["formats"], job["texts"]) == (["html", "json"], 4)
    assert [row["row"] for row in sorted_texts[0]["texts"]] == [0, 1, 2, 3]
    assert [row["wrong"] for row in sorted_texts[1]["texts"]] == [True, True, False, False]
    values = [row["values"]["comprehensiveness"] for row in sorted_texts[2]["texts"]]
    assert values == sorted(values)  # higher is better: the worst first
    mean = next(row["value"] for row in view["rows"] if row["measure"] == "comprehensiveness" and row["sortable"])
    assert sum(values) / len(values) == pytest.approx(mean)
    shifts = [row["values"]["jensen-shannon/1-synonym"] for row in sorted_texts[3]["texts"]]
    assert shifts == sorted(shifts, reverse=True)
    assert [(answer["total"], len(answer["texts"])) for answer in result] == [(3, 3), (2, 2), (1, 1), (4, 1)]


@pytest.mark.slow
def test_an_audit_has_the_batch_size_of_the_server():
    sizes = []

    def counted(texts):
        sizes.append(len(texts))
        return cheerful(texts)

    async def work(client):
        await finished(client, (await client.post("/v1/audit", json={})).json())

    for size in (None, 1):
        sizes.clear()
        run(work, replace(served(function=counted), batch_size=size), data=DATA)
        assert sizes[:2] == [len(DATA.examples)] * 2  # asked twice, which shows noise
        assert (1 in sizes[2:10]) == (size == 1)


@pytest.mark.slow
def test_the_data_of_the_server_are_audited_with_their_rationales():
    async def work(client):
        job = await finished(client, (await client.post("/v1/audit", json={"limit": 3})).json())
        report = (await client.get(f"/v1/jobs/{job['id']}/report")).json()
        first = (await client.get("/v1/data", params={"limit": 1})).json()
        facts = (await client.get("/v1/models")).json()["data"]
        return job, report, first, facts

    job, report, first, facts = run(work, served(), data=DATA)
    assert (job["name"], report["texts"], facts) == ("reviews.csv", 3, {"name": "reviews.csv", "texts": 4})
    assert first["texts"] == [{"text": "a good film", "question": None, "label": "yes"}]
    agreement = [row for row in report["rows"] if row["section"] == "Plausibility" and row["n"]]
    assert any(row["sortable"] for row in agreement)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "the server was started without data"),
        ({"texts": ["a"], "labels": ["yes", "no"]}, "1 texts and 2 labels"),
        ({"texts": ["a"], "explainers": ["attention"]}, "does not support"),
        ({"texts": ["a"], "radius": 11}, "radius"),
        ({"texts": ["a"], "k": 0}, "k: "),
    ],
)
def test_a_wrong_audit_is_refused(body, message):
    async def work(client):
        return await client.post("/v1/audit", json=body)

    answer = run(work)
    assert answer.status_code in (400, 422)
    assert message in answer.json()["error"]["message"]


def test_an_unknown_label_fails_the_audit_with_a_sentence():
    async def work(client):
        answer = await client.post("/v1/audit", json={"texts": ["a", "b"], "labels": ["yes", "maybe"]})
        return await finished(client, answer.json(), state="failed")

    assert "'maybe'" in run(work)["message"]


def test_files_that_disappear_while_their_size_is_counted_are_left_out(tmp_path, monkeypatch):
    for name in ("stays", "goes"):
        (tmp_path / name).write_bytes(b"1234")

    def walk(folder):
        yield folder, [], ["stays", "goes", "gone"]

    monkeypatch.setattr(jobs_module.os, "walk", walk)
    assert jobs_module.stored_bytes(tmp_path) == 8


def test_a_deleted_folder_of_jobs_is_created_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    jobs = Jobs()
    jobs.create("explain", "a.csv", "model")
    shutil.rmtree(next(tmp_path.iterdir()))
    assert jobs.create("explain", "b.csv", "model").folder.is_dir()
    jobs.close()
    assert list(tmp_path.iterdir()) == []


HOLDER = """
import os, sys
from steadygaze.serve.job_folder import JobFolder
(JobFolder().path / "upload.csv").write_text("a text of a user")
print(flush=True)
sys.stdin.read()
"""
"""A server that keeps its folder until it is killed."""


def test_the_folder_of_a_killed_server_is_removed_at_the_next_start_and_that_of_a_living_one_stays(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    (tmp_path / "steadygaze-of-another-program").mkdir()
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    with subprocess.Popen([sys.executable, "-c", HOLDER], **options) as server:
        server.stdout.readline()
        Jobs().close()
        assert [path.read_text() for path in tmp_path.glob("*/upload.csv")] == ["a text of a user"]
        server.kill()
    assert len(list(tmp_path.iterdir())) == 2
    Jobs().close()
    assert [path.name for path in tmp_path.iterdir()] == ["steadygaze-of-another-program"]


def test_two_servers_of_a_process_keep_their_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first, second = Jobs(), Jobs()
    assert len(list(tmp_path.iterdir())) == 2
    first.close()
    assert second.create("explain", "a.csv", "model").folder.is_dir()
    second.close()


def run_job(work, *, canceled: bool = False):
    """A job that does this work, and is canceled meanwhile."""
    jobs = Jobs()
    job = jobs.create("explain", "a.csv", "model")

    def call(job):
        if canceled:
            jobs.cancel(job)
        work()

    job.run(call)
    jobs.close()
    return job


def fail(error):
    raise error


def test_a_full_disk_fails_the_job_with_a_sentence():
    job = run_job(lambda: fail(OSError(errno.ENOSPC, "No space left on device")))
    assert (job.state, job.message) == ("failed", jobs_module.FULL)


def test_a_job_whose_files_were_deleted_is_canceled_without_a_message_of_the_server(monkeypatch):
    messages = []
    monkeypatch.setattr(jobs_module.LOGGER, "error", lambda *values, **_: messages.append(values))
    job = run_job(lambda: fail(FileNotFoundError("upload.csv")), canceled=True)
    assert (job.state, job.message, messages) == ("canceled", "", [])
    job = run_job(lambda: fail(FileNotFoundError("upload.csv")))
    assert (job.state, job.message, len(messages)) == ("failed", "the server could not finish the job: upload.csv", 1)


def test_the_files_of_a_canceled_job_that_waits_are_deleted_at_once():
    jobs = Jobs()
    job = jobs.create("explain", "a.csv", "model")
    (job.folder / "upload.csv").write_bytes(CSV)
    jobs.cancel(job)
    assert list(job.folder.iterdir()) == []
    jobs.close()


@pytest.mark.parametrize("method", ["cancel", "delete"])
def test_a_job_that_is_deleted_during_its_upload_is_unknown(method):
    async def work(client):

        async def parts():
            yield CSV
            (job,) = (await client.get("/v1/jobs")).json()["jobs"]
            address = f"/v1/jobs/{job['id']}"
            await (client.delete(address) if method == "delete" else client.post(f"{address}/cancel", json={}))
            yield b"4,a film\n"

        return await upload(client, parts()), await client.get("/v1/jobs")

    answer, left = run(work)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown-job")
    assert left.json() == {"jobs": []}
