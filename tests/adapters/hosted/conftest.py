"""Answers in a temporary file, and short delays between attempts."""

from pathlib import Path

import pytest

from steadygaze.adapters.hosted import answer_file, client
from steadygaze.adapters.hosted.server import KEY, OPENAI_KEY


@pytest.fixture(autouse=True)
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "answers.sqlite"
    monkeypatch.setenv(answer_file.VARIABLE, str(path))
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.delenv(OPENAI_KEY, raising=False)
    monkeypatch.setattr(client, "FIRST_DELAY", 0.001)
    return path
