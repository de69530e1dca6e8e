"""steadygaze compare: what it prints where, its exit codes, and that bad input changes nothing."""

import json
from functools import partial
from pathlib import Path

import pytest

import commands
from steadygaze.cli.compare_command import _parse_settings_for
from steadygaze.core.errors import UserError
from study.tiny import DATA

QUICK = ["--encoder", "average", "--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--device", "cpu"]
COMMAND = [
    "compare",
    DATA,
    "--techniques",
    "vanilla,word-at",
    "--seeds",
    "1",
    "--limit",
    "14",
    "--workers",
    "1",
    *QUICK,
]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]):
    return partial(commands.run, capsys)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_table_for_people_and_json_for_programs(command, tmp_path: Path):
    ended = command(*COMMAND, "--out", tmp_path / "c", "--set-for", "word-at:epsilon=0.5")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines() if line.startswith(("vanilla", "word-at"))]
    assert "macro-F1" in ended.out
    assert "2 of 2 done" in ended.err
    assert ended.err.count("! vanilla, in 1 of 1 seed, has collapsed attention: ") == 1
    assert "collapsed attention" not in ended.out
    assert "comparison.html" in ended.err
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
        "cells",
        "comparison.html",
        "comparison.json",
        "settings.json",
    ]
    again = command(*COMMAND, "--out", tmp_path / "c", "--set-for", "word-at:epsilon=0.5", "--json", "--quiet")
    assert {line[:2] for line in again.err.splitlines()} == {"! "}
    result = json.loads(again.out)
    assert result == json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert result["techniques"][1]["settings"]["epsilon"] == 0.5
    other = command(*COMMAND, "--out", tmp_path / "c", "--set-for", "word-at:epsilon=0.25")
    assert other.code == 2
    assert "another own.word-at.epsilon: 0.5, now 0.25" in other.err


@pytest.mark.usefixtures("quick")
def test_ctrl_c_keeps_finished_cells_and_prints_how_to_continue(command, tmp_path: Path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("steadygaze.training.technique_loop.TechniqueLoop.train_epoch", stopped)
    ended = command(*COMMAND, "--out", tmp_path / "c")
    assert ended.code == 130
    assert "run the same command again to continue" in " ".join(ended.err.split())
    assert (tmp_path / "c" / "settings.json").is_file()


BAD = {
    "unknown technique": (["--techniques", "vanilla,wordat"], "did you mean 'word-at'"),
    "one technique": (["--techniques", "vanilla"], "two techniques or more"),
    "no seed": (["--seeds", "0"], "--seeds"),
    "unknown split": (["--split", "tset"], "no split 'tset'"),
    "the split that is trained on": (["--split", "train"], "trained on the split 'train'"),
    "a setting without a technique": (["--set-for", "epsilon=1"], "technique:key=value"),
    "a setting of one technique": (["--set", "epsilon=1"], "--set-for word-at:epsilon=1"),
    "unknown explainer": (["--explainer", "attenton"], "did you mean 'attention'"),
    "no rationale": (["--explainer", "rationale"], "rationale cannot explain models of vanilla"),
    "no synonyms": (["--synonyms", "nowhere.jsonl"], "nowhere.jsonl"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence_exit_code_2_and_nothing_written(command, tmp_path: Path, case: str):
    arguments, hint = BAD[case]
    ended = command(*COMMAND, "--out", tmp_path / "c", *arguments)
    assert ended.code == 2
    assert hint in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert not (tmp_path / "c").exists()


def test_a_folder_of_something_else_is_left_alone(command, tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("precious")
    ended = command(*COMMAND, "--out", tmp_path)
    assert ended.code == 2
    assert "is not a comparison" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_help_shows_an_example(command):
    shown = command("compare", "--help").out
    assert "steadygaze compare reviews.csv" in " ".join(shown.split())
    assert all(option in shown for option in ("--techniques", "--seeds", "--set-for", "--limit", "--json"))


def test_settings_are_parsed_by_name():
    assert _parse_settings_for(["word-at:epsilon=0.1", "seat:k=3", "word-at:weight=2"]) == {
        "word-at": {"epsilon": 0.1, "weight": 2},
        "seat": {"k": 3},
    }
    with pytest.raises(UserError, match="technique:key=value"):
        _parse_settings_for(["word-at:epsilon"])
