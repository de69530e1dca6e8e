"""Hosted models in the commands: every command with a model takes their names."""

import json
from pathlib import Path

import pytest

from adapters.hosted.completion_server import serving
from commands import refused, run
from estimator.tiny import write_csv
from steadygaze.adapters.hosted import answer_file, client

PROMPT = ["--prompt", "Review: {text}\nSentiment:", "--label-word", "neg=negative", "--label-word", "pos=positive"]
COMMANDS = {
    "predict": ["--file", "films.csv"],
    "explain": ["a good film", "--explainer", "leave-one-out"],
    "evaluate": ["--data", "films.csv"],
    "word-weights": ["--data", "films.csv", "--explainer", "leave-one-out", "--min-texts", "1"],
    "audit": ["--data", "films.csv", "--explainer", "leave-one-out", "--limit", "8", "--bundle", "bundle"],
    "certify": ["--data", "films.csv", "--substitutions", "table.jsonl", "--samples", "4"],
    "fit-explainer": ["--data", "films.csv", "--out", "l2x", "--k", "2", "--device", "cpu"],
}


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(answer_file.VARIABLE, str(tmp_path / "answers.sqlite"))
    monkeypatch.setenv("STEADYGAZE_API_KEY", "sk-secret")
    monkeypatch.setattr(client, "FIRST_DELAY", 0.001)
    write_csv(tmp_path / "films.csv")
    (tmp_path / "table.jsonl").write_text('{"word": "good", "synonyms": ["fine"]}\n')
    with serving(key="sk-secret") as server:
        yield server


@pytest.mark.slow
@pytest.mark.usefixtures("short_probe_training")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_a_hosted_model(command, served, capsys, tmp_path):
    model = f"openai:tiny@{served.url}"
    ended = run(capsys, command, model, *PROMPT, *COMMANDS[command], "--max-requests", "9000")
    assert ended.code == 0, ended.err
    assert " requests" in ended.err
    assert served.total > 5
    texts = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if b"sk-secret" in text]
    assert "sk-secret" not in ended.out + ended.err


@pytest.mark.slow
def test_a_bundle_of_a_hosted_model_is_verified_from_the_stored_answers(served, capsys):
    model = f"openai:tiny@{served.url}"
    audit = [model, *PROMPT, *COMMANDS["audit"]]
    assert run(capsys, "audit", *audit).code == 0
    asked = served.total
    ended = run(capsys, "audit", "--verify", "bundle")
    assert (ended.code, served.total) == (0, asked), ended
    manifest = json.loads(Path("bundle/manifest.json").read_text())
    assert manifest["settings"]["model"] == model


def test_a_run_over_the_budget_ends_before_the_work(served, capsys):
    words = [f"openai:tiny@{served.url}", *PROMPT, "--max-requests", "9"]
    message = refused(capsys, "audit", *words, "--data", "films.csv", "--explainer", "leave-one-out")
    assert "the run needs about" in message
    assert served.total == 1
    assert "of --max-requests 9" in message.lower()


def test_a_prompt_is_asked_for(served, capsys):
    message = refused(capsys, "predict", f"openai:tiny@{served.url}", "a good film")
    assert "--label-word positive=positive" in message
