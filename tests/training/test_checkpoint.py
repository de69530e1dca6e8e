"""The checkpoint file: readable without running anything, refusing what is not its own, whole or not at all."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import zeros

from steadygaze.core.errors import UserError
from steadygaze.training import checkpoint
from steadygaze.training.checkpoint import Checkpoint
from training.toys import TOYS, Anneal, Recorder, interrupt, make_run

IDENTITY = {"seed": 0, "training": {"epochs": 2, "clip": 5.0}, "classes": ["a", "b"]}


def interrupted(folder: Path, name: str = "anneal") -> Path:
    """The checkpoint of a run that was interrupted after its first epoch."""
    interrupt(Recorder(epochs=1), TOYS[name], folder=folder)
    return folder / "checkpoint.safetensors"


def test_a_checkpoint_is_tensors_and_json_and_no_pickle(tmp_path: Path) -> None:
    content = interrupted(tmp_path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    state = json.loads(header.pop("__metadata__")["state"])
    assert len(content) == 8 + length + max(entry["data_offsets"][1] for entry in header.values())
    assert state["epoch"] == 1
    assert state["step"] == 3
    assert 0 < state["technique"]["size"] < 1
    assert [record["epoch"] for record in state["history"]] == [1]
    kinds = {name.split("/")[0] for name in header}
    assert kinds == {"now", "best", "random", "optimizer"}
    moments = {name.split("/")[2] for name in header if name.startswith("optimizer/")}
    assert moments == {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"seed": 1}, "another seed: 0, now 1"),
        ({"training": {"epochs": 3, "clip": 5.0}}, "another training.epochs: 2, now 3"),
        ({"classes": ["a", "c"]}, r"another classes: \['a', 'b'\], now \['a', 'c'\]"),
        ({"new": "x"}, "another new: none, now 'x'"),
    ],
)
def test_another_runs_checkpoint_is_refused_naming_the_difference(
    changed: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    state = json.dumps({"identity": IDENTITY, "stage": 0})
    save_file({"x": zeros(1)}, tmp_path / "checkpoint.safetensors", {"state": state})
    with pytest.raises(UserError, match=f"{sentence}.*Resume with the same data and settings"):
        Checkpoint(tmp_path, {**IDENTITY, **changed}, resume=True).load()


def test_resuming_with_another_seed_is_refused_and_the_run_is_left_alone(tmp_path: Path) -> None:
    before = interrupted(tmp_path).read_bytes()
    with pytest.raises(UserError, match="another seed: 0, now 1"):
        make_run(Anneal(), folder=tmp_path, resume=True, seed=1).execute()
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "emptied", "overwritten", "another's"])
def test_a_damaged_checkpoint_is_refused_in_a_sentence(damage: str, tmp_path: Path) -> None:
    file = interrupted(tmp_path)
    whole = file.read_bytes()
    if damage == "another's":
        save_file({"x": zeros(1)}, file)
    else:
        file.write_bytes({"cut": whole[:-100], "emptied": b"", "overwritten": b"\x80\x04pickle" + whole}[damage])
    with pytest.raises(UserError, match=r"checkpoint.safetensors is damaged .*; delete .* to start over"):
        make_run(Anneal(), folder=tmp_path, resume=True).execute()


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_a_damaged_or_missing_finished_stage_is_refused_in_a_sentence(damage: str, tmp_path: Path) -> None:
    interrupt(Recorder(epochs=3), TOYS["distil"], folder=tmp_path)
    file = tmp_path / "finished-0.safetensors"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-10])
    else:
        file.unlink()
    sentence = {"cut": "finished-0.safetensors is damaged", "gone": "there is no file .*finished-0.safetensors; delete"}
    with pytest.raises(UserError, match=sentence[damage]):
        make_run(TOYS["distil"], folder=tmp_path, resume=True).execute()


def without(file: Path, name: str) -> None:
    """The file as it would be had this not been kept."""
    with safe_open(file, framework="pt") as opened:
        state = json.loads(opened.metadata()["state"])
    tensors = load_file(file)
    (state if name in state else tensors).pop(name)
    save_file(tensors, file, {"state": json.dumps(state)})


@pytest.mark.parametrize(
    "name", ["best_loss", "history", "groups", "technique", "stage", "identity", "now/model.decoder.output.weight"]
)
def test_a_checkpoint_without_a_part_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    file = interrupted(tmp_path)
    without(file, name)
    left = file.read_bytes()
    sentence = rf"a run without {name}: it cannot be resumed\.  Delete the folder to start over"
    with pytest.raises(UserError, match=sentence):
        make_run(Anneal(), folder=tmp_path, resume=True).execute()
    assert file.read_bytes() == left


def test_a_finished_stage_without_a_part_is_refused_in_a_sentence(tmp_path: Path) -> None:
    interrupt(Recorder(epochs=3), TOYS["distil"], folder=tmp_path)
    without(tmp_path / "finished-0.safetensors", "best_epoch")
    with pytest.raises(UserError, match="a run without best_epoch: it cannot be resumed"):
        make_run(TOYS["distil"], folder=tmp_path, resume=True).execute()


def test_the_finished_weights_are_those_of_the_model(tmp_path: Path) -> None:
    run = make_run(TOYS["distil"], folder=tmp_path)
    run.execute()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.safetensors", "finished-0.safetensors"]
    with safe_open(tmp_path / "finished-0.safetensors", framework="pt") as opened:
        for name, value in run.models["teacher"].state_dict().items():
            assert opened.get_tensor(f"model.{name}").equal(value)


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_disk_that_fills_up_leaves_the_last_epoch_if_there_is_one(
    is_resumed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [interrupted(tmp_path).read_bytes()] if is_resumed else []

    def full(tensors: Any, path: Path, metadata: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    end = "; you can resume the run" if is_resumed else "$"
    with pytest.raises(UserError, match=f"cannot write .*checkpoint.safetensors: No space left on device{end}"):
        make_run(Anneal(), folder=tmp_path, resume=is_resumed).execute()
    assert [file.read_bytes() for file in tmp_path.iterdir()] == before


def test_resuming_without_a_checkpoint_starts_a_new_run(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "new", IDENTITY, resume=True).load() == {}
    assert not (tmp_path / "new").exists()


def test_a_run_that_is_not_to_be_resumed_is_not_overwritten_either(tmp_path: Path) -> None:
    before = interrupted(tmp_path).read_bytes()
    with pytest.raises(
        UserError, match=r"contains a training run: continue it with resume=True \(--resume\), or delete"
    ):
        make_run(Anneal(), folder=tmp_path).execute()
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]
