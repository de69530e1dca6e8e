"""Security of the server: each promise of docs/how-to/workbench.md has a test here, or in test_server.py."""

import asyncio
import gzip
import hmac
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from estimator.tiny import PAIRS, fitted_pair, write_csv
from serve.serving import DATA, HOST, finished, live_server, request, run, served
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.cli.serve_command import check_exposure, free_socket, host_names
from steadygaze.core.errors import UserError
from steadygaze.serve import application, security, served_models
from steadygaze.serve.security import Access
from steadygaze.serve.served_models import ServedModel

TOKEN = "0123456789abcdef0123"
PATHS = [
    "../application.py",
    "..%2fapplication.py",
    "%2e%2e/application.py",
    "..%5capplication.py",
    "....//application.py",
    "%252e%252e/application.py",
    "/etc/passwd",
    "//etc/passwd",
    "workbench.js/../../application.py",
    "workbench.js%00.html",
    "file:///etc/passwd",
]


MODEL = """
def predict(texts):
    return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
"""


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("path", PATHS)
def test_no_file_outside_the_static_folder_is_readable(path):
    answer = request("GET", f"/static/{path}")
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text
    assert "ASGI" not in answer.text


def test_a_link_in_the_static_folder_is_not_followed_outside(tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "static"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    monkeypatch.setattr(application, "STATIC", folder)
    assert request("GET", "/static/link").status_code == 404


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    "name", ["../../../tmp/x.csv", "/etc/passwd.csv", "a/b.csv", "..\\x.csv", "\x00.csv", "x" * 250 + ".csv"]
)
def test_the_name_of_a_file_chooses_no_place_on_disk(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def work(client):
        headers = {"content-type": "application/octet-stream"}
        answer = await client.post("/v1/explain-file", params={"name": name}, content=b"text\ngood\n", headers=headers)
        await finished(client, answer.json())
        return sorted(path.name for path in tmp_path.glob("*/*/*"))

    assert run(work) == ["result.csv", "result.html", "result.parquet", "upload.csv"]


def test_the_token_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(token, other):
        compared.append((token, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    access = Access(frozenset([HOST]), TOKEN)
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert request("GET", "/v1/models", access=access, headers=headers).status_code == 401
    assert compared == [(TOKEN.encode(), TOKEN.encode())]


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"http://{HOST}.evil.example"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_requests_of_other_origins_are_refused_with_every_method(method, headers):
    content = {"content-type": "application/json"}
    for path in ("/v1/predict", "/v1/explain", "/v1/audit", "/v1/explain-file", "/v1/jobs/0123456789abcdef"):
        answer = request(method, path, headers={**content, **headers}, content=b"{}")
        assert answer.json()["error"]["code"] == "foreign-origin"


@pytest.mark.parametrize("name", ["host", "origin", "content-type", "authorization"])
def test_a_repeated_header_is_refused(name):
    own = {"host": HOST, "origin": f"http://{HOST}", "content-type": "application/json", "authorization": "Bearer x"}
    headers = [*own.items(), (name, own[name])]
    answer = request("POST", "/v1/predict", headers=headers, content=b'{"texts": ["a"]}')
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "repeated-header")


@pytest.mark.parametrize(
    "host", ["localhost.:8000", "127.0.0.1.:8000", "127.1:8000", "[::ffff:127.0.0.1]:8000", HOST + "@evil"]
)
def test_other_spellings_of_the_name_are_refused(host):
    assert request("GET", "/v1/models", headers={"host": host}).status_code == 421


def test_a_compressed_body_is_refused():
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = request("POST", "/v1/predict", headers=headers, content=gzip.compress(b'{"texts": ["a"]}'))
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "content-encoding")


def test_no_answer_allows_other_origins_to_read_it():
    answer = request("GET", "/v1/models", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    preflight = request("OPTIONS", "/v1/predict", headers={"origin": "https://evil.example"})
    assert preflight.status_code == 405


def test_the_names_of_the_server_are_those_that_browsers_send():
    assert "127.0.0.1" not in host_names("127.0.0.1", 8000, ())
    assert host_names("127.0.0.1", 80, ()) >= {"127.0.0.1", "localhost", "127.0.0.1:80"}
    assert host_names("2001:db8::1", 8000, ["a.example"]) >= {"[2001:db8::1]:8000", "a.example", "[::1]:8000"}


@pytest.mark.parametrize("token", ["ключ" * 5, "two words " * 3, "line\nbreak" * 3, "\x00" * 20])
def test_a_token_that_no_header_can_have_is_refused(token):
    with pytest.raises(UserError, match="characters that a header cannot have"):
        check_exposure("127.0.0.1", token)


def test_a_header_does_not_choose_the_client_whose_rate_is_limited():
    with live_server(served(), rate=1) as address:
        headers = [{"x-forwarded-for": f"10.0.0.{i}"} for i in range(4)]
        assert 429 in [httpx.get(f"{address}/healthz", headers=header).status_code for header in headers]


def test_bodies_of_all_requests_together_are_limited(monkeypatch):
    monkeypatch.setattr(security, "MOST_IN_FLIGHT", 100)
    app = application.application([served()], Access(frozenset([HOST])))

    async def work():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            bodies = {"texts": ["a" * 200]}, {"texts": ["a good film"]}
            return [await client.post(f"/v1/{path}", json=body) for path in ("predict", "certify") for body in bodies]

    answers = asyncio.run(work())
    assert [answer.status_code for answer in answers] == [503, 200, 503, 400]
    assert answers[0].json()["error"]["code"] == "busy"
    assert app.in_flight == 0
    app.app.app.state.jobs.close()


def test_an_update_of_the_package_is_seen_by_browsers():
    assert request("GET", "/static/workbench.js").headers["cache-control"] == "no-cache"
    assert request("GET", "/v1/models").headers["cache-control"] == "no-store"


def test_a_word_that_is_repeated_does_not_make_an_alignment_slow(monkeypatch):
    """The search is cubic in the worst case, and would stop all requests for minutes."""
    monkeypatch.setattr(served_models, "SequenceMatcher", None)
    before, after = ["x", *["a"] * 5000, "b"], ["x", "c", *["a"] * 5000]
    pairs = served_models.aligned(before, after)
    assert [i for i, _ in pairs if i is not None] == list(range(5002))
    assert [j for _, j in pairs if j is not None] == list(range(5002))
    assert pairs[0] == (0, 0)


def test_the_vocabulary_of_a_black_box_is_bounded(monkeypatch):
    monkeypatch.setattr(served_models, "MOST_PIECES", 50)
    model = served()

    async def work(client):
        for start in range(0, 400, 40):
            text = " ".join(f"word{i}" for i in range(start, start + 40))
            answer = await client.post("/v1/explain", json={"texts": [text]})
            assert len(answer.json()["explanations"][0]["tokens"]) == 40

    run(work, model)
    assert len(model.adapter.tokens) <= 50 + 41


def test_an_internal_error_is_answered_and_printed_without_escape_sequences(monkeypatch, capfd):
    def fail(*_, **__):
        raise RuntimeError("\x1b[2J\x9b31m secret of the server")

    monkeypatch.setattr(ServedModel, "predict", fail)
    monkeypatch.setattr("steadygaze.serve.job_api.run_audit_job", fail)
    with live_server(served(), data=DATA) as address:
        answer = httpx.post(f"{address}/v1/predict", json={"texts": ["a", "b"]})
        job = httpx.post(f"{address}/v1/audit", json={}).json()
        while job["state"] in ("waiting", "running"):
            job = httpx.get(f"{address}/v1/jobs/{job['id']}").json()
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert (job["state"], "failed with RuntimeError" in job["message"]) == ("failed", True)
    assert "secret" not in job["message"]
    printed = capfd.readouterr().err
    assert printed.count("secret of the server") >= 2
    assert "never retrieved" not in printed
    assert "\x1b" not in printed
    assert "\x9b" not in printed


def test_the_name_of_a_file_adds_no_header_to_a_download():
    async def work(client):
        headers = {"content-type": "application/octet-stream"}
        name = 'a\r\nSet-Cookie: a=1; filename="evil.exe".csv'
        options = {"params": {"name": name}, "content": b"text\ngood\n", "headers": headers}
        job = await finished(client, (await client.post("/v1/explain-file", **options)).json())
        return job, await client.get(f"/v1/jobs/{job['id']}/result", params={"format": "csv"})

    job, answer = run(work)
    assert "\n" not in job["name"]
    assert answer.headers["content-disposition"] == f'attachment; filename="explained-{job["id"]}.csv"'
    assert "set-cookie" not in answer.headers


def test_pairs_are_predicted_and_explained():
    model = ServedModel("pairs", as_adapter(fitted_pair()), {})

    async def work(client):
        pair = list(PAIRS[0])
        single = await client.post("/v1/predict", json={"texts": ["a text"]})
        return single, (await client.post("/v1/explain", json={"texts": [pair]})).json()

    single, explained = run(work, model)
    assert single.status_code == 422
    assert "send [text, question]" in single.json()["error"]["message"]
    assert explained["explanations"][0]["question"] == PAIRS[0][1]


def test_a_client_connects_before_the_server_has_started():
    with free_socket("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address, timeout=60) as client:
            assert client.getpeername() == address


@pytest.mark.slow
def test_the_command_serves_and_ends_without_leaving_files(tmp_path):
    """From the command line to SIGTERM."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "loud.py").write_text(MODEL)
    data = write_csv(tmp_path / "data.csv")
    command = [sys.executable, "-m", "steadygaze", "serve", "loud:predict", "--classes", "neg,pos", "--data", str(data)]
    source = str(Path(application.__file__).parents[2])
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": os.pathsep.join([source, str(tmp_path)]),
    }
    server = subprocess.Popen(
        [*command, "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    )
    try:
        address = server.stderr.readline().split()[0]
        assert httpx.get(f"{address}/healthz").json()["status"] == "ok"
        models = httpx.get(f"{address}/v1/models").json()
        assert models["data"] == {"name": "data.csv", "texts": 24}
        assert models["models"][0]["classes"] == ["neg", "pos"]
        assert list((tmp_path / "tmp").iterdir())
    finally:
        server.send_signal(signal.SIGTERM)
        server.stderr.close()
        assert server.wait(30) in (0, -signal.SIGTERM, 143)
    assert not [path for path in (tmp_path / "tmp").iterdir() if path.name.startswith("steadygaze-")]
