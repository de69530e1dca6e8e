"""The commands that are printed to try next run as they are, also for pairs of texts."""

import csv
import shlex
from pathlib import Path

import pytest

from commands import Ended, run
from estimator.tiny import LABELS, PAIRS

SMALL = ("--encoder", "average", "--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--device", "cpu")


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of pairs with columns of other names, in the working folder."""
    monkeypatch.chdir(tmp_path)
    with open("pairs.csv", "w", newline="") as file:
        csv.writer(file).writerows(
            [("premise", "hypothesis", "label"), *((*p, y) for p, y in zip(PAIRS, LABELS, strict=True))]
        )


def following(ended: Ended) -> list[list[str]]:
    assert ended.code == 0, ended.err
    return [shlex.split(line)[2:] for line in ended.err.splitlines() if line.startswith("next:  steadygaze")]


@pytest.mark.slow
@pytest.mark.usefixtures("pairs")
def test_commands_after_the_training_of_pairs_run(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ["--text", "premise", "--text", "hypothesis"]
    explain, audit = following(run(capsys, "train", "pairs.csv", *columns, "--out", "m", *SMALL))
    assert "--pair" in explain
    ended = run(capsys, *explain, "--device", "cpu")
    (after_text, _) = following(ended)
    assert after_text[after_text.index("FILE") + 1 :][:4] == ["--text", "COLUMN", "--text", "SECOND_COLUMN"]
    assert " ".join(columns) in " ".join(audit)
    (after_file, _) = following(run(capsys, "explain", "m", "--file", "pairs.csv", *columns, "--device", "cpu"))
    for command in (audit, after_file):
        assert run(capsys, *command, "--limit", "8", "--sample", "2", "--device", "cpu", "--replace").code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("pairs")
def test_the_command_after_an_explainer_of_pairs_was_fitted_runs(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ["--text", "premise", "--text", "hypothesis"]
    assert run(capsys, "train", "pairs.csv", *columns, "--out", "m", *SMALL).code == 0
    words = ["fit-explainer", "m", "--data", "pairs.csv", *columns, "--explainer", "l2x", "--k", "2", "--out", "x"]
    ended = run(capsys, *words, "--set", "epochs=1", "--device", "cpu")
    (explain,) = following(ended)
    assert run(capsys, *explain, "--device", "cpu").code == 0
