"""The OpenAPI document describes what the server does: requests of every kind, made by Schemathesis."""

import subprocess
import sys

import pytest

from estimator.tiny import fitted
from serve.serving import DATA, HOST, SYNONYMS, live_server, run, served
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.serve.security import Access
from steadygaze.serve.served_models import ServedModel

CONFIG = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 404, 409, 422, 429]  # 422: not possible with this model
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422, 429]  # 413: too large
"""


@pytest.mark.parametrize("token", [None, "0123456789abcdef0123"])
def test_the_document_names_the_token_if_the_server_has_one(token):
    async def document(client):
        return (await client.get("/v1/openapi.json", headers={"authorization": f"Bearer {token}"})).json()

    result = run(document, access=Access(frozenset([HOST]), token))
    assert result.get("security") == (None if token is None else [{"token": []}])
    assert ("securitySchemes" in result["components"]) == (token is not None)


@pytest.mark.slow
def test_schemathesis_has_no_finding(tmp_path):
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    words = ServedModel("words", as_adapter(fitted()), SYNONYMS)
    with live_server(served(), words, data=DATA) as address:
        command = ["-m", "schemathesis.cli", "run", f"{address}/v1/openapi.json", "--max-examples", "30", "--seed", "1"]
        options = ["--no-shrink", "--generation-database", "none", "--warnings", "off", "--no-color"]
        process = subprocess.run(
            [sys.executable, *command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
    assert process.returncode == 0, process.stdout[-5000:] + run.stderr[-2000:]
    assert "No issues found" in process.stdout
