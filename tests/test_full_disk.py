"""On a full disk every command ends with a sentence, tears no file, and ends as usual once there is space."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import commands
from disk import disk_limit
from estimator.tiny import fitted, write_csv
from kills import snapshot, without_durations
from steadygaze.cli import audit_and_verify
from steadygaze.core.errors import RecoveryWarning

pytest.importorskip("resource", reason="Windows has no limit of the size of files")
pytestmark = pytest.mark.slow
SMALL = ["--set", "hidden=4", "--set", "dimension=6", "--encoder", "average", "--device", "cpu", "--quiet"]
ROOM = {"train": 2_000, "explain": 1_000, "audit": 20_000, "fit-explainer": 2_000, "compare": 2_000, "tune": 2_000}
"""Bytes of the largest file: less than a file that each command writes."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    fitted().save(folder / "model")
    write_csv(folder / "films.csv")
    return folder


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("steadygaze.explainers.learned.selector_training.STEPS", 2)
    monkeypatch.setattr(audit_and_verify, "now", lambda: "2026-01-01T00:00:00Z")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecoveryWarning)
        yield


def words(name: str, inputs: Path, out: Path) -> list[object]:
    data, model = inputs / "films.csv", inputs / "model"
    fit = ["--set", "hidden=4", "--set", "dimension=4", "--set", "epochs=1", "--device", "cpu", "--quiet"]
    study = ["--out", out / "study", *SMALL, "--epochs", "1", "--workers", "1"]
    return {
        "train": ["train", data, "--out", out / "model", "--epochs", "2", *SMALL],
        "explain": ["explain", model, "--file", data, "--out", out / "explained.csv", "--device", "cpu", "--quiet"],
        "audit": ["audit", model, "--data", data, "--bundle", out / "bundle", "--limit", "8", "--sample", "1", "-q"],
        "fit-explainer": ["fit-explainer", model, "--data", data, "--k", "2", "--out", out / "explainer", *fit],
        "compare": ["compare", data, "--techniques", "vanilla,word-at", "--seeds", "1", "--limit", "4", *study],
        "tune": ["tune", data, "--technique", "word-at", "--trials", "2", "--set", "learning_rate=0.01,0.1", *study],
    }[name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROOM)
def test_a_full_disk_ends_a_command_with_a_sentence_and_leaves_what_can_be_finished(
    name: str, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    whole.mkdir()
    out.mkdir()
    assert commands.run(capsys, *words(name, inputs, whole)).code == 0
    with disk_limit(ROOM[name]):
        full = commands.run(capsys, *words(name, inputs, out))
    assert full.code == 2, full.err
    assert "space" in full.err or "too large" in full.err or "failed" in full.err, full.err
    again = [*words(name, inputs, out), *(["--resume"] if name == "train" else [])]
    finished = commands.run(capsys, *again)
    assert finished.code == 0, finished.err
    expected, ended = without_durations(snapshot(whole)), without_durations(snapshot(out))
    assert [path for path in expected.keys() | ended.keys() if expected.get(path) != ended.get(path)] == []
