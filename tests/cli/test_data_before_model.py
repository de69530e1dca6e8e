"""Commands check the file and its columns before they load the model."""

import pytest

import commands

COMMANDS = {
    "audit": ("audit", "no-model", "--data"),
    "certify": ("certify", "no-model", "--radius", "0.1", "--data"),
    "evaluate": ("evaluate", "no-model", "--data"),
    "explain": ("explain", "no-model", "--file"),
    "fit-explainer": ("fit-explainer", "no-model", "--explainer", "l2x", "--out", "out", "--data"),
    "predict": ("predict", "no-model", "--file"),
    "word-weights": ("word-weights", "no-model", "--data"),
}


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "complaints.csv").write_text("id,full message,outcome\n1,A long and bitter text.,bad\n2,Fine,good\n")
    return lambda *arguments: commands.run(capsys, *arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_column_is_reported_with_the_option_that_names_it(run, command):
    ended = run(*COMMANDS[command], "complaints.csv")
    assert ended.code == 2
    assert "unknown column 'text'.  Known: full message, id, outcome." in ended.err
    assert "Name the text column with --text (text=), for example --text 'full message'." in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_reported_first(run, command):
    ended = run(*COMMANDS[command], "missing.csv")
    assert ended.code == 2
    assert "there is no file missing.csv" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_right_columns_lead_to_the_model(run, command):
    ended = run(*COMMANDS[command], "complaints.csv", "--text", "full message")
    assert ended.code == 2
    assert ("no-model" in ended.err) == (command != "evaluate"), ended.err
    assert ("Name the label column with --label (label=)." in ended.err) == (command == "evaluate")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label", "stars"], "unknown column 'stars'"),
        (["--rationales", "why"], "Name the rationales column with --rationales (rationales=)."),
        (["--train", "complaints.csv"], "Name the label column with --label (label=)."),
        (["--train", "unknown-corpus"], "unknown corpus 'unknown-corpus'"),
    ],
)
def test_an_audit_checks_all_columns(run, options, message):
    ended = run(*COMMANDS["audit"], "complaints.csv", "--text", "full message", *options)
    assert (ended.code, message in ended.err) == (2, True), ended.err


def test_no_example_without_an_unused_column(run, tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"label": "good"}\n')
    message = run(*COMMANDS["evaluate"], "labels.jsonl").err
    assert "Name the text column with --text (text=)." in message
