"""Interrupted and resumed equals uninterrupted, bit for bit, for all needs of a technique and any interruption."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

from steadygaze.training import checkpoint
from training.toys import TOYS, Recorder, interrupt, make_run, outcome

EPOCHS = {  # over all stages
    "vanilla": 2,
    "distil": 4,
    "committee": 6,
    "pretrain": 3,
    "return": 3,
    "lens": 5,
    "duel": 2,
    "anneal": 2,
}
STEPS = 3  # of an epoch


@pytest.fixture(scope="module")
def uninterrupted() -> dict[str, tuple[dict[str, bytes], str]]:
    return {name: outcome(make_run(technique)) for name, technique in TOYS.items()}


@pytest.mark.slow
def test_every_toy_has_the_epochs_that_the_interruptions_below_assume(uninterrupted: Any) -> None:
    assert {name: len(json.loads(history)) - 1 for name, (_, history) in uninterrupted.items()} == EPOCHS


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "epochs"), [(name, n + 1) for name, most in EPOCHS.items() for n in range(most)])
def test_a_run_interrupted_after_any_epoch_ends_in_the_same_bits(
    name: str, epochs: int, uninterrupted: Any, tmp_path: Path
) -> None:
    interrupt(Recorder(epochs=epochs), TOYS[name], folder=tmp_path)
    rest = Recorder()
    assert outcome(make_run(TOYS[name], folder=tmp_path, resume=True, watcher=rest)) == uninterrupted[name]
    assert len(rest.epochs) == EPOCHS[name] - epochs  # nothing was done twice
    assert rest.skipped == epochs


@pytest.mark.sweep(keep=("committee", "anneal"))
@pytest.mark.parametrize("name", TOYS)
def test_a_run_interrupted_again_and_again_in_mid_epoch_ends_in_the_same_bits(
    name: str, uninterrupted: Any, tmp_path: Path
) -> None:
    for steps in (2, STEPS + 1, 1, STEPS):
        interrupt(Recorder(steps=steps), TOYS[name], folder=tmp_path, resume=True)
    assert outcome(make_run(TOYS[name], folder=tmp_path, resume=True)) == uninterrupted[name]


@pytest.mark.sweep(keep=("committee", "anneal"))
@pytest.mark.parametrize("name", TOYS)
def test_a_run_interrupted_inside_any_write_ends_in_the_same_bits(
    name: str, uninterrupted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn: set[str] = set()

    def tear(tensors: Any, path: Path, metadata: dict[str, str]) -> None:
        """The first attempt at each write stops half-way, and its file stays behind as after SIGKILL."""
        save_file(tensors, path, metadata=metadata)
        if metadata["state"] not in torn:
            torn.add(metadata["state"])
            half = path.read_bytes()[: path.stat().st_size // 2]
            left = tmp_path / f".{path.name}.0123abcd.tmp"
            left.mkdir(exist_ok=True)
            (left / path.name).write_bytes(half)
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", tear)
    ended = None
    while ended is None:
        with contextlib.suppress(KeyboardInterrupt):
            ended = outcome(make_run(TOYS[name], folder=tmp_path, resume=True))
    assert ended == uninterrupted[name]
    assert len(torn) == EPOCHS[name] + len(TOYS[name].stages(0)) - 1


def test_the_torn_files_of_a_killed_run_are_swept_away(tmp_path: Path) -> None:
    ours = [
        ".checkpoint.safetensors.0123abcd.tmp/checkpoint.safetensors",
        ".finished-0.safetensors.0123abcd.tmp/finished-0.safetensors",
        ".checkpoint.safetensors.4567abcd.tmp/.tmpAbC",
    ]
    others = [".gitignore", ".tmpAbC123", ".notes.safetensors.0123abcd.tmp", ".checkpoint.safetensors.a_folder.tmp/a"]
    for name in ours + others:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"half")
    make_run(TOYS["vanilla"], folder=tmp_path).execute()
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {"checkpoint.safetensors", *others}


def test_a_finished_run_is_not_trained_again(uninterrupted: Any, tmp_path: Path) -> None:
    make_run(TOYS["distil"], folder=tmp_path).execute()
    again = Recorder()
    assert outcome(make_run(TOYS["distil"], folder=tmp_path, resume=True, watcher=again)) == uninterrupted["distil"]
    assert (again.epochs, again.skipped) == ([], EPOCHS["distil"])


def test_a_run_that_stopped_early_stops_at_the_same_epoch_when_resumed(tmp_path: Path) -> None:
    short = {"epochs": 12, "patience": 1}
    expected = outcome(make_run(TOYS["vanilla"], **short))
    stopped = len(json.loads(expected[1])) - 1
    assert stopped < 12
    interrupt(Recorder(epochs=stopped), TOYS["vanilla"], folder=tmp_path, **short)
    assert outcome(make_run(TOYS["vanilla"], folder=tmp_path, resume=True, **short)) == expected


def test_the_falling_step_size_is_resumed_where_it_was(tmp_path: Path) -> None:
    expected = outcome(make_run(TOYS["duel"], schedule="linear"))
    interrupt(Recorder(epochs=1), TOYS["duel"], folder=tmp_path, schedule="linear")
    assert outcome(make_run(TOYS["duel"], folder=tmp_path, resume=True, schedule="linear")) == expected
