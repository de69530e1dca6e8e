"""Commands check the file and its columns before they load the model."""

import json

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


@pytest.mark.parametrize("command", ["audit", "evaluate"])
def test_labels_that_the_model_does_not_know_are_reported_before_it_is_loaded(run, tmp_path, command):
    """The folder has no weights: loading it would be another error."""
    (tmp_path / "model").mkdir()
    config = {"architectures": ["BertForSequenceClassification"], "id2label": {"1": "POSITIVE", "0": "NEGATIVE"}}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    words = (command, "model", "--data", "complaints.csv", "--text", "full message", "--label", "outcome")
    message = run(*words).err
    assert "the data have the label 'bad', which is not a class of model" in message
    assert "pass --classes bad,good (classes=) if 'NEGATIVE' is 'bad' and 'POSITIVE' is 'good'" in message
    assert "or --classes good,bad if it is the other way round" in message
    assert "not a class" not in run(*words, "--classes", "bad,good").err


def test_a_missing_label_column_is_guessed_by_its_few_values(run, tmp_path):
    rows = [f"{i},{('web', 'shop', 'phone')[i % 3]},text {i},{('bad', 'good')[i % 2]}" for i in range(12)]
    (tmp_path / "many.csv").write_text("\n".join(["id,channel,message,outcome", *rows]))
    message = run("evaluate", "no-model", "--data", "many.csv", "--text", "message").err
    assert "Name the label column with --label (label=), for example --label outcome." in message
