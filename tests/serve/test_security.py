"""Security of the server: each promise of docs/how-to/workbench.md has a test here, or in test_server.py."""

import asyncio
import hmac
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from estimator.tiny import PAIRS, fitted_pair, write_csv
from serve.serving import DATA, HOST, client_of, finished, served
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.serve import application
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

predict.classes_ = ["neg", "pos"]
"""


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


async def request(method: str, path: str, access: Access | None = None, **options) -> httpx.Response:
    async with client_of(served(), access=access, data=DATA) as client:
        return await client.request(method, path, **options)


@pytest.mark.parametrize("path", PATHS)
def test_no_file_outside_the_static_folder_is_readable(path):
    answer = run(request("GET", f"/static/{path}"))
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
    assert run(request("GET", "/static/link")).status_code == 404


@pytest.mark.parametrize(
    "name", ["../../../tmp/x.csv", "/etc/passwd.csv", "a/b.csv", "..\\x.csv", "\x00.csv", "x" * 250 + ".csv"]
)
def test_the_name_of_a_file_chooses_no_place_on_disk(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def work():
        async with client_of(served()) as client:
            headers = {"content-type": "application/octet-stream"}
            answer = await client.post(
                "/v1/explain-file", params={"name": name}, content=b"text\ngood\n", headers=headers
            )
            await finished(client, answer.json())
            return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())

    assert run(work()) == ["result.csv", "result.html", "result.parquet", "upload.csv"]


def test_the_token_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    access = Access(frozenset([HOST]), TOKEN)
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert run(request("GET", "/v1/models", access, headers=headers)).status_code == 401
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
        answer = run(request(method, path, headers={**content, **headers}, content=b"{}"))
        assert answer.json()["error"]["code"] == "foreign-origin"


def test_no_answer_allows_other_origins_to_read_it():
    answer = run(request("GET", "/v1/models", headers={"origin": "https://evil.example"}))
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    preflight = run(request("OPTIONS", "/v1/predict", headers={"origin": "https://evil.example"}))
    assert preflight.status_code == 405


def test_pairs_are_predicted_and_explained():
    model = ServedModel("pairs", as_adapter(fitted_pair()), {})

    async def work():
        async with client_of(model) as client:
            pair = list(PAIRS[0])
            single = await client.post("/v1/predict", json={"texts": ["a text"]})
            return single, (await client.post("/v1/explain", json={"texts": [pair]})).json()

    single, explained = run(work())
    assert single.status_code == 422
    assert "send [text, question]" in single.json()["error"]["message"]
    assert explained["explanations"][0]["question"] == PAIRS[0][1]


@pytest.mark.slow
def test_the_command_serves_and_ends_without_leaving_files(tmp_path):
    """From the command line to SIGTERM."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "loud.py").write_text(MODEL)
    data = write_csv(tmp_path / "data.csv")
    command = [sys.executable, "-m", "steadygaze", "serve", "loud:predict", "--data", str(data), "--port", "0"]
    source = str(Path(application.__file__).parents[2])
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": os.pathsep.join([source, str(tmp_path)]),
    }
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    try:
        address = server.stderr.readline().split()[0]
        assert httpx.get(f"{address}/healthz").json()["status"] == "ok"
        assert httpx.get(f"{address}/v1/models").json()["data"] == {"name": "data.csv", "texts": 24}
        assert list((tmp_path / "tmp").iterdir())
    finally:
        server.send_signal(signal.SIGTERM)
        server.stderr.close()
        assert server.wait(30) in (0, -signal.SIGTERM, 143)
    assert not [path for path in (tmp_path / "tmp").iterdir() if path.name.startswith("steadygaze-")]
