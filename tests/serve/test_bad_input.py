"""Wrong requests of every kind are answered with 4xx and a sentence, and the server goes on."""

import json

import httpx
import pytest

from serve.serving import DATA, HOST, in_process, served
from steadygaze.serve.application import application
from steadygaze.serve.security import Access

LONG = "a" * 20_001
NO_JOB = "0123456789abcdef"
BODIES = {
    "predict": [
        None,
        True,
        0,
        -1.5,
        "text",
        [],
        {},
        {"texts": None},
        {"texts": 1},
        {"texts": "a"},
        {"texts": {}},
        {"texts": []},
        {"texts": [True]},
        {"texts": [0.5]},
        {"texts": [{}]},
        {"texts": [[]]},
        {"texts": [["a"]]},
        {"texts": [["a", "b", "c"]]},
        {"texts": [["a", 1]]},
        {"texts": [LONG]},
        {"texts": ["a"] * 257},
        {"texts": ["a"], "model": 1},
        {"texts": ["a"], "model": ""},
        {"texts": ["a"], "model": "../model"},
        {"texts": ["a"], "model": "m" * 201},
        {"texts": ["a"], "modle": "x"},
        {"text": "a"},
        {"texts": [[["a"], "b"]]},
    ],
    "explain": [
        {"texts": ["a"], "explainer": 1},
        {"texts": ["a"], "explainer": "attention"},
        {"texts": ["a"], "explainer": ""},
        {"texts": ["a"], "explainer": "__import__('os')"},
        {"texts": ["a"], "explainer": "e" * 201},
        {"texts": ["a"], "target": "maybe"},
        {"texts": ["a"], "target": 1},
        {"texts": ["a"], "granularity": "letter"},
        {"texts": ["a"], "granularity": None},
        {"texts": ["a"], "settings": {"samples": 10**9}},
    ],
    "shift": [
        {"before": "a"},
        {"after": "a"},
        {"before": "a", "after": ""},
        {"before": ["a"], "after": "a"},
        {"before": "a", "after": LONG},
        {"before": "a", "after": ["a", "b"]},
    ],
    "synonyms": [{}, {"word": ""}, {"word": "w" * 101}, {"word": ["a"]}, {"word": 1}, {"word": "a", "model": "x"}],
    "compare": [
        {"text": "a"},
        {"text": "a", "choices": []},
        {"text": "a", "choices": [{}]},
        {"text": "a", "choices": [{"model": "x"}]},
        {"text": "a", "choices": [{"model": "cheerful"}] * 21},
    ],
    "certify": [{}, {"text": ""}, {"text": LONG}, {"text": "a", "model": "x"}],
    "audit": [
        {"texts": []},
        {"texts": ["a"], "labels": []},
        {"labels": ["yes"]},
        {"limit": -1},
        {"limit": 1.5},
        {"k": 0},
        {"k": "7"},
        {"radius": -1},
        {"radius": 11},
        {"removal": "burn"},
        {"seed": -1},
        {"sample": 0},
        {"explainers": "lime"},
        {"explainers": ["x"]},
        {"threshold": "high"},
        {"texts": ["a"], "labels": [[1]]},
        {"texts": ["a"] * 5001},
        {"limit": 10**30},
    ],
}
JSON_BODIES = [(f"/v1/{path}", body) for path, bodies in BODIES.items() for body in bodies]
RAW = [
    b"",
    b" ",
    b"{",
    b"}",
    b"[",
    b"nul",
    b"NaN",
    b"\xff\xfe",
    b"\x00",
    b"[" * 5000,
    b'{"texts": ["a"]',
    b'{"texts": ["a"],}',
    b"{'texts': ['a']}",
    b'{"texts": ["\x01"]}',
    b'{"texts": [Infinity]}',
    b"texts=a",
    b"<texts>a</texts>",
    b'{"a":' * 5000,
]
GETS = [
    "/v1",
    "/v1/",
    "/v1/nothing",
    "/v1/predict",
    "/v1/models/x",
    "/v1/data?offset=-1",
    "/v1/data?limit=0",
    "/v1/data?limit=201",
    "/v1/data?limit=x",
    "/v1/data?offset=1e9",
    "/v1/data?offset=99999999999999999999",
    "/v1/jobs/x",
    "/v1/jobs/..%2f..%2fetc",
    f"/v1/jobs/{NO_JOB}",
    f"/v1/jobs/{NO_JOB}/report",
    f"/v1/jobs/{NO_JOB}/texts",
    f"/v1/jobs/{NO_JOB}/result",
    f"/v1/jobs/{NO_JOB}/result?format=exe",
    f"/v1/jobs/{NO_JOB}/result?format=csv",
    f"/v1/jobs/{NO_JOB}/texts?limit=0",
    "/static/",
    "/static/nothing",
    "/static/%00",
    "/static/..%5c",
    "/%2e%2e/etc/passwd",
    "/v1/models%00",
    "/robots.txt",
]
OTHERS = [
    ("PUT", "/v1/predict"),
    ("PATCH", "/v1/models"),
    ("DELETE", "/v1/models"),
    ("DELETE", f"/v1/jobs/{NO_JOB}"),
    ("TRACE", "/"),
    ("POST", "/"),
    ("POST", "/static/workbench.js"),
    ("POST", f"/v1/jobs/{NO_JOB}/cancel"),
    ("POST", "/v1/explain-file"),
    ("POST", "/v1/explain-file?name="),
    ("POST", "/v1/explain-file?name=a.csv&text=a&text=b&text=c"),
    ("POST", "/v1/explain-file?name=a.csv&drop_empty=perhaps"),
    ("BREW", "/v1/models"),
]


@pytest.fixture(scope="module")
def app():
    app = application([served()], Access(frozenset([HOST]), rate=1e9, burst=1e9), DATA)
    yield app
    app.app.app.state.jobs.close()


@pytest.fixture(scope="module")
def send(app):
    def send(method: str, path: str, **options) -> httpx.Response:
        return in_process(app, lambda client: client.request(method, path, **options))

    return send


def check(answer: httpx.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text
    error = answer.json()["error"]
    assert error["code"]
    assert len(error["message"].split()) > 2
    assert "Traceback" not in answer.text


def name(value: object) -> str:
    return str(value)[:40]


@pytest.mark.parametrize(("path", "body"), JSON_BODIES, ids=name)
def test_a_wrong_json_body_is_refused(send, path, body):
    check(send("POST", path, json=body))


@pytest.mark.parametrize("content", RAW, ids=name)
def test_a_body_that_is_not_json_is_refused(send, content):
    check(send("POST", "/v1/predict", content=content, headers={"content-type": "application/json"}))


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/audit"])
def test_an_object_with_many_keys_is_refused_before_each_of_them_is(send, path):
    """A million messages would take a minute, and the server would not answer."""
    content = json.dumps({f"key{i}": 1 for i in range(1000)}).encode()
    answer = send("POST", path, content=content, headers={"content-type": "application/json"})
    check(answer)
    assert "has 1,000 keys" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "the body is not JSON: Expecting property name"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"k": ' + b"9" * 5000 + b"}", "the body is not JSON: "),
        (b'{"texts": ["\\ud800"]}', "texts.0: Input should be a valid string"),
    ],
)
def test_an_error_of_json_is_a_sentence_without_names_of_the_parser(send, content, message):
    answer = send("POST", "/v1/audit", content=content, headers={"content-type": "application/json"})
    check(answer)
    assert answer.json()["error"]["code"] == "wrong-input"
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", GETS)
def test_a_wrong_address_is_refused(send, path):
    check(send("GET", path))


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_a_wrong_method_or_upload_is_refused(send, method, path):
    check(send(method, path, headers={"content-type": "application/octet-stream"}, content=b"text\na\n"))


STRANGE = [
    "\ud800",
    "\x00",
    "\u202e",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿" * 10,
    "a\u0300" * 500,
    " ",
    "\n\t",
    "." * 100,
    "é" * 5000,
    "{{7*7}}",
    "%s%n",
    "\ufeffa",
]


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
def test_a_strange_text_is_explained_or_refused(send, text):
    for path, body in (
        ("explain", {"texts": [text]}),
        ("certify", {"text": text}),
        ("shift", {"before": text, "after": "a"}),
    ):
        content = json.dumps(body).encode()
        answer = send("POST", f"/v1/{path}", content=content, headers={"content-type": "application/json"})
        if answer.status_code != 200:
            check(answer)


def test_there_are_at_least_sixty_wrong_requests_and_the_server_still_answers(send):
    assert len(JSON_BODIES) + len(RAW) + len(GETS) + len(OTHERS) >= 60
    assert send("POST", "/v1/predict", json={"texts": ["a good film"]}).status_code == 200
