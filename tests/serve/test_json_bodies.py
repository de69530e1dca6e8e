"""Large bodies are read outside of the thread that answers requests, and have few values."""

import asyncio
import json
import subprocess
import sys
import threading

import httpx
import orjson
import pytest
from pydantic import ValidationError

from serve.serving import HOST, request, run, served
from steadygaze.core.errors import UserError
from steadygaze.results.explanation import Explanation
from steadygaze.serve import job_api, json_bodies
from steadygaze.serve.api import MOST_TEXTS
from steadygaze.serve.application import application
from steadygaze.serve.job_api import AuditBody
from steadygaze.serve.json_bodies import (
    LARGEST_INLINE,
    MOST_AUDITED_VALUES,
    MOST_BRACKETS,
    MOST_COMMAS,
    MOST_VALUES,
    json_lines,
)
from steadygaze.serve.security import MOST_AUDITED, MOST_BYTES, Access

LONG = 'a good café, "dull" \\ film \U0001f3ac ' * 500
HEADERS = {"content-type": "application/json"}


def large_body() -> dict:
    return {"texts": [LONG] * 20, "model": "cheerful"}


def post(path: str, content: bytes) -> httpx.Response:
    return request("POST", path, content=content, headers=HEADERS)


LARGE = {
    "long": json.dumps({**large_body(), "unknown": 0}),
    "brackets": '{"unknown": 0, "texts": ["good"], "model": [' + "{}," * MOST_BRACKETS + "{}]}",
    "commas": '{"unknown": 0, "texts": ["good"], "model": [' + "0," * MOST_COMMAS + "0]}",
}


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("path", ["/v1/predict", "/v1/explain", "/v1/audit"])
def test_a_large_body_is_not_parsed_in_the_thread_of_the_server(path, kind, monkeypatch):
    threads = []
    parse, checked = json_bodies.parse, json_bodies._checked
    monkeypatch.setattr(json_bodies, "parse", lambda body: threads.append("parse") or parse(body))

    def check(*arguments):
        threads.append(threading.current_thread().name)
        return checked(*arguments)

    monkeypatch.setattr(json_bodies, "_checked", check)
    answer = post(path, LARGE[kind].encode())
    assert answer.json()["error"]["code"] == "wrong-input"
    (name,) = threads
    assert name.startswith("body")


def test_long_explanations_leave_turns_to_other_requests(monkeypatch):
    converted, turns, to_dict = [], [], Explanation.to_dict

    def convert(explanation):
        converted.append(explanation)
        asyncio.get_running_loop().call_soon(lambda: turns.append(len(converted)))
        return to_dict(explanation)

    monkeypatch.setattr(Explanation, "to_dict", convert)
    answer = post("/v1/explain", json.dumps({"texts": [LONG[:2500]] * 3}).encode())
    assert len(answer.json()["explanations"]) == 3
    assert turns == [1, 2, 3]


def test_the_texts_of_an_audit_are_checked_in_a_thread_of_their_own(monkeypatch):
    threads, examples = [], job_api._examples
    monkeypatch.setattr(job_api, "_examples", lambda *_: threads.append(threading.current_thread()) or examples(*_))
    assert post("/v1/audit", b'{"texts": ["good"], "labels": ["none"]}').status_code == 202
    assert threads != [threading.main_thread()]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    "value", [{"a": [1, [2, "\n\u2028"], {}], "b": [], "é": {"c": [3]}, "d": 0.5}, [1, [2]], {}, "x"]
)
def test_a_process_returns_the_same_value_in_lines(value):
    assert json_bodies._read(json.dumps(value).encode(), MOST_VALUES) == value


def test_no_part_of_a_large_body_is_parsed_at_once(monkeypatch):
    """The parser keeps the lock of the interpreter."""
    sizes, loads = [], orjson.loads
    monkeypatch.setattr(orjson, "loads", lambda line: sizes.append(len(line)) or loads(line))
    body = json.dumps({"texts": [LONG] * 400, "labels": ["no"] * 400}).encode()
    assert json_bodies._read(body, MOST_AUDITED_VALUES) == {"texts": [LONG] * 400, "labels": ["no"] * 400}
    assert len(body) > 1 << 22
    assert max(sizes) < 1 << 16


def test_the_largest_requests_have_few_enough_values():
    pairs = {"model": "a", "texts": [["a", "b"]] * MOST_TEXTS, "explainer": "a", "target": "a", "granularity": "word"}
    assert next(json_lines(json.dumps(pairs).encode(), MOST_VALUES))
    audit = dict.fromkeys(AuditBody.model_fields, "a") | {"explainers": ["a"] * 10}
    audit |= {"texts": [["a", "b"]] * job_api.MOST_AUDITED, "labels": ["a"] * job_api.MOST_AUDITED}
    assert next(json_lines(json.dumps(audit).encode(), MOST_AUDITED_VALUES))


def test_an_audit_with_many_wrong_values_is_refused_for_the_first_one():
    """A sentence for each of them takes seconds."""
    with pytest.raises(ValidationError) as refused:
        AuditBody.model_validate({"texts": [0] * 5000, "labels": [[]] * 5000})
    assert refused.value.error_count() < 10


def test_a_large_body_is_answered_as_a_small_one():
    answer = post("/v1/predict", json.dumps(large_body()).encode())
    assert answer.json()["predictions"] == [pytest.approx({"no": 0.1, "yes": 0.9})] * 20


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"texts": [' + "0," * MOST_VALUES + "0]}", f"more than {MOST_VALUES:,} values"),
        ("[" * 5000, "nested too deeply"),
        ('{"texts": "' + "a" * LARGEST_INLINE, "is not JSON"),
        ('{"a": {' + ",".join(f'"{i}": 0' for i in range(101)) + "}}", "has 101 keys"),
        ('{"texts": ["\\ud800"]}', "is not standard JSON"),
    ],
)
def test_a_wrong_body_is_refused_by_the_process_with_a_sentence(body, message):
    with pytest.raises(UserError, match=message):
        list(json_lines(body.encode(), MOST_VALUES))
    command = [sys.executable, "-m", "steadygaze.serve.json_bodies", str(MOST_VALUES)]
    process = subprocess.run(command, input=body.encode(), capture_output=True, check=False)
    assert (process.returncode, process.stdout) == (json_bodies.WRONG, b"")
    assert message in process.stderr.decode()


@pytest.mark.slow
def test_a_large_wrong_body_is_answered_with_the_sentence_of_the_process():
    for path, most in [("/v1/predict", MOST_VALUES), ("/v1/explain", MOST_VALUES), ("/v1/audit", MOST_AUDITED_VALUES)]:
        answer = post(path, b'{"texts": [' + b"0," * MOST_AUDITED_VALUES + b"0]}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "wrong-input")
        assert f"more than {most:,} values" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("path", "most"), [("/v1/predict", MOST_BYTES), ("/v1/audit", MOST_AUDITED)])
def test_the_largest_body_depends_on_the_address(path, most):
    async def statuses(client):
        sizes = [{**HEADERS, "content-length": str(size)} for size in (most, most + 1)]
        return [(await client.post(path, content=b"{}", headers=headers)).status_code for headers in sizes]

    assert run(statuses) == [400 if path == "/v1/predict" else 422, 413]


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/audit"])
def test_a_body_that_is_too_slow_is_waited_for_once(path, monkeypatch):
    monkeypatch.setattr("steadygaze.serve.security.PAUSE", 0.05)
    app, waits, sent = application([served()], Access(frozenset([HOST]))), [], []

    async def receive():
        waits.append(path)
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    headers = [(b"host", HOST.encode()), (b"content-type", b"application/json"), (b"content-length", b"100")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "client": None}
    asyncio.run(app({**scope, "raw_path": path.encode(), "root_path": "", "scheme": "http"}, receive, send))
    app.app.app.state.jobs.close()
    assert sent[0]["status"] == 408
    assert len(waits) == 1
