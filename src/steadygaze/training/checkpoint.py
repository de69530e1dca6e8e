"""A run that can be taken up again: one file, replaced whole after every epoch, and one per finished stage.

    checkpoint.safetensors        the current stage's tensors; in its header, as JSON, the rest of its state
    finished-<n>.safetensors      the weights that stage n ended with, where another follows

A checkpoint knows which run it belongs to, and refuses to continue another, or one of which an older version kept less.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from steadygaze.core.atomic_files import new_file, remove_named_leftovers
from steadygaze.core.errors import UserError
from steadygaze.core.settings import difference
from steadygaze.core.tensor_files import read_metadata, read_tensors
from steadygaze.training.training_state import TrainingState

NAMES = r"(checkpoint|finished-[0-9]+)\.safetensors"
OURS = re.compile(rf"{NAMES}|\.{NAMES}\.[0-9a-f]{{8}}\.tmp|checkpoint\.writing")  # the last by version 0.1.0


def has_run(folder: Path) -> bool:
    """Whether a folder holds an interrupted run, or nothing, and nothing else."""
    return folder.is_dir() and all(OURS.fullmatch(name) for name in os.listdir(folder))


@dataclass(frozen=True)
class SavedStage:
    """What a checkpoint held."""

    stage: int
    tensors: dict[str, Tensor]
    plain: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    identity: dict[str, Any]
    """All that determines the weights: settings, seed, data fingerprint, versions.  JSON."""
    resume: bool = False

    @property
    def file(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    @property
    def _again(self) -> str:
        return f"delete {self.folder} to start over"

    def load(self) -> SavedStage | None:
        """What was saved of this run; None where nothing was."""
        there = os.path.lexists(self.file)  # also a link that leads nowhere
        if there and not self.resume:
            raise UserError(
                f"{self.folder} holds an interrupted run or a finished one: "
                "resume=True (--resume) continues it, or delete the folder to start over"
            )
        remove_named_leftovers(self.folder, NAMES)
        if not there:
            return None
        tensors, plain = self._read(self.file)
        self._has(["identity", "stage"], plain)
        identity, stage = plain.pop("identity"), plain.pop("stage")
        if not isinstance(identity, dict) or type(stage) is not int or stage < 0:
            raise UserError(f"{self.file} is damaged: its identity or stage is invalid; {self._again}")
        self._same(identity)
        return SavedStage(stage, tensors, plain)

    def restore(self, state: TrainingState, saved: SavedStage) -> None:
        """Into a state made for the same stage."""
        _, plain = state.pack()
        self._has([*plain, *(f"now/{name}" for name in state.weights())], [*saved.plain, *saved.tensors])
        if (fault := state.fault(saved.tensors, saved.plain)) is not None:
            raise UserError(f"{self.file} is damaged: {fault}; {self._again}")
        try:
            state.unpack(saved.tensors, saved.plain)
        except UserError as error:
            raise UserError(f"{self.file} is damaged: {error} {self._again}") from None

    def save(self, stage: int, state: TrainingState) -> None:
        tensors, plain = state.pack()
        self._write(self.file, tensors, {"identity": self.identity, "stage": stage, **plain})

    def finish(self, stage: int, weights: dict[str, Tensor], kept: dict[str, Any]) -> None:
        self._write(self._finished(stage), weights, {"stage": stage, "kept": kept})

    def finished(self, stage: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Its weights, and which epoch the result was by then."""
        weights, plain = self._read(self._finished(stage))
        self._has(["kept"], plain)
        if not isinstance(plain["kept"], dict):
            raise UserError(f"{self._finished(stage)} is damaged: its record of the epoch is invalid; {self._again}")
        return weights, plain["kept"]

    def _finished(self, stage: int) -> Path:
        return self.folder / f"finished-{stage}.safetensors"

    def _write(self, file: Path, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        try:
            with new_file(file) as path:
                save_file(tensors, path, metadata={"state": json.dumps(plain)})
        except (OSError, SafetensorError) as error:
            raise UserError(f"could not write {file}: {error}; the run can be resumed from its last epoch") from None

    def _read(self, file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        try:
            plain = read_metadata(file, "state")
            if not isinstance(plain, dict):
                raise UserError(f"{file} is damaged: its state is not an object")
            return read_tensors(file), plain
        except UserError as error:
            raise UserError(f"{error}; {self._again}") from None

    def _has(self, wanted: Iterable[str], found: Iterable[str]) -> None:
        missing = sorted({*wanted} - {*found})
        if missing:
            raise UserError(
                f"{self.folder} holds a run of an older version, which did not keep {missing[0]}: it cannot go on.  "
                "Delete that folder to start over."
            )

    def _same(self, found: dict[str, Any]) -> None:
        if differs := difference(found, self.identity):
            raise UserError(
                f"{self.folder} holds a run with another {': '.join(differs)}.  "
                "Resume with the same data and settings, or delete that folder to start over."
            )
