"""Checkpoints of a training run: one file, replaced after every epoch, and one per finished stage.

    checkpoint.safetensors        tensors of the current stage; the rest of its state in the header, as JSON
    checkpoint-<n>.safetensors    the same of stage n, if several stages are trained at once
    finished-<n>.safetensors      final weights of stage n, if another stage follows
    diverged-<n>.safetensors      why stage n has no model, if other models were trained on; without tensors

A checkpoint stores the identity of its run.  Loading fails for another run, or if something is missing.
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
from steadygaze.core.untrusted_files import reason
from steadygaze.training.training_state import TrainingState

NAMES = r"(checkpoint|checkpoint-[0-9]+|finished-[0-9]+|diverged-[0-9]+)\.safetensors"
OURS = re.compile(rf"{NAMES}|\.{NAMES}\.[0-9a-f]{{8}}\.tmp")


def has_run(folder: Path) -> bool:
    """Return True if a folder contains only the files of an interrupted run, or is empty."""
    return folder.is_dir() and all(OURS.fullmatch(name) for name in os.listdir(folder))


@dataclass(frozen=True)
class SavedStage:
    """Content of a checkpoint."""

    stage: int
    tensors: dict[str, Tensor]
    plain: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    folder: Path
    identity: dict[str, Any]
    """Everything that determines the weights: settings, seed, data fingerprint, versions.  JSON."""
    resume: bool = False

    @property
    def file(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    def _stage_file(self, name: str, stage: int) -> Path:
        return self.folder / f"{name}-{stage}.safetensors"

    @property
    def _advice(self) -> str:
        return f"delete {self.folder} to start over"

    def load(self) -> dict[int, SavedStage]:
        """Return the saved state of each unfinished stage of this run; empty without a checkpoint."""
        files = self._files()
        if (files or self._divergences()) and not self.resume:
            raise UserError(
                f"{self.folder} contains a training run: "
                "continue it with resume=True (--resume), or delete the folder to start over"
            )
        remove_named_leftovers(self.folder, NAMES)
        return {stage.stage: stage for stage in map(self._load_file, files)}

    def _files(self) -> list[Path]:
        files = [self.file] if os.path.lexists(self.file) else []  # also a broken link
        return files + sorted(self.folder.glob("checkpoint-*.safetensors"))

    def _load_file(self, file: Path) -> SavedStage:
        tensors, plain = self._read(file)
        self._require(["identity", "stage"], plain)
        identity, stage = plain.pop("identity"), plain.pop("stage")
        if not isinstance(identity, dict) or type(stage) is not int or stage < 0:
            raise UserError(f"{file} is damaged: its identity or stage is invalid; {self._advice}")
        self._check_identity(identity)
        return SavedStage(stage, tensors, plain)

    def restore(self, state: TrainingState, saved: SavedStage) -> None:
        """Restore the saved state into a state of the same stage."""
        _, plain = state.pack()
        self._require([*plain, *(f"now/{name}" for name in state.weights())], [*saved.plain, *saved.tensors])
        if (fault := state.fault(saved.tensors, saved.plain)) is not None:
            raise UserError(f"{self.file} is damaged: {fault}; {self._advice}")
        try:
            state.unpack(saved.tensors, saved.plain)
        except UserError as error:
            raise UserError(f"{self.file} is damaged: {error} {self._advice}") from None

    def save(self, stage: int, state: TrainingState, among_others: bool = False) -> None:
        """Save the state of a stage; `among_others`: other stages are trained at the same time."""
        tensors, plain = state.pack()
        file = self._stage_file("checkpoint", stage) if among_others else self.file
        self._write(file, tensors, {"identity": self.identity, "stage": stage, **plain})
        if not among_others:  # earlier stages are finished
            for other in self.folder.glob("checkpoint-*.safetensors"):
                other.unlink()

    def finish(self, stage: int, weights: dict[str, Tensor], best_epoch: dict[str, Any]) -> None:
        self._write(self._stage_file("finished", stage), weights, {"stage": stage, "best_epoch": best_epoch})

    def finished(self, stage: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the final weights of a stage, and the record of the selected epoch."""
        file = self._stage_file("finished", stage)
        weights, plain = self._read(file)
        self._require(["best_epoch"], plain)
        if not isinstance(plain["best_epoch"], dict):
            raise UserError(f"{file} is damaged: its record of the epoch is invalid; {self._advice}")
        return weights, plain["best_epoch"]

    def diverge(self, stage: int, message: str) -> None:
        """Record that the model of a stage diverged while others were trained."""
        plain = {"identity": self.identity, "stage": stage, "message": message}
        self._write(self._stage_file("diverged", stage), {}, plain)

    def divergence(self, stage: int) -> str | None:
        """Return why a stage has no model; None if it did not diverge."""
        file = self._stage_file("diverged", stage)
        if not file.exists():
            return None
        _, plain = self._read(file)
        self._require(["identity", "message"], plain)
        self._check_identity(plain["identity"])
        return str(plain["message"])

    def forget_divergences(self) -> None:
        for file in self._divergences():
            file.unlink()

    def _divergences(self) -> list[Path]:
        return sorted(self.folder.glob("diverged-*.safetensors"))

    def _write(self, file: Path, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        try:
            with new_file(file) as path:
                save_file(tensors, path, metadata={"state": json.dumps(plain)})
        except (OSError, SafetensorError) as error:
            advice = "; you can resume the run from its last epoch" if self._files() else ""
            raise UserError(f"cannot write {file}: {reason(error)}{advice}") from None

    def _read(self, file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        try:
            plain = read_metadata(file, "state")
            if not isinstance(plain, dict):
                raise UserError(f"{file} is damaged: its state is not an object")
            return read_tensors(file), plain
        except UserError as error:
            raise UserError(f"{error}; {self._advice}") from None

    def _require(self, keys: Iterable[str], saved: Iterable[str]) -> None:
        missing = sorted({*keys} - {*saved})
        if missing:
            raise UserError(
                f"{self.folder} contains a run without {missing[0]}: it cannot be resumed.  "
                "Delete the folder to start over."
            )

    def _check_identity(self, saved: dict[str, Any]) -> None:
        if differs := difference(saved, self.identity):
            raise UserError(
                f"{self.folder} contains a run with another {': '.join(differs)}.  "
                "Resume with the same data and settings, or delete the folder to start over."
            )
