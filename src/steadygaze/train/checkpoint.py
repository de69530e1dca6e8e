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

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from steadygaze.atomic import new_file, sweep_names
from steadygaze.config import difference
from steadygaze.errors import UserError
from steadygaze.train.state import State

NAMES = r"(checkpoint|finished-[0-9]+)\.safetensors"
OURS = re.compile(rf"{NAMES}|\.{NAMES}\.[0-9a-f]{{8}}\.tmp|checkpoint\.writing")  # the last by version 0.1.0


def holds_a_run(folder: Path) -> bool:
    """Whether a folder holds an interrupted run, or nothing, and nothing else."""
    return folder.is_dir() and all(OURS.fullmatch(name) for name in os.listdir(folder))


@dataclass(frozen=True)
class Saved:
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

    def load(self) -> Saved | None:
        """What was saved of this run; None where nothing was."""
        if self.file.exists() and not self.resume:
            raise UserError(
                f"{self.folder} holds an interrupted run or a finished one: "
                "resume=True (--resume) continues it, or delete the folder to start over"
            )
        sweep_names(self.folder, NAMES)
        if not self.file.exists():
            return None
        tensors, plain = self._read(self.file)
        self._has(["identity", "stage"], plain)
        self._same(plain.pop("identity"))
        return Saved(plain.pop("stage"), tensors, plain)

    def restore(self, state: State, saved: Saved) -> None:
        """Into a state made for the same stage."""
        _, plain = state.pack()
        self._has([*plain, *(f"now/{name}" for name in state.weights())], [*saved.plain, *saved.tensors])
        state.unpack(saved.tensors, saved.plain)

    def save(self, stage: int, state: State) -> None:
        tensors, plain = state.pack()
        self._write(self.file, tensors, {"identity": self.identity, "stage": stage, **plain})

    def finish(self, stage: int, weights: dict[str, Tensor], kept: dict[str, Any]) -> None:
        self._write(self._finished(stage), weights, {"stage": stage, "kept": kept})

    def finished(self, stage: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Its weights, and which epoch the result was by then."""
        weights, plain = self._read(self._finished(stage))
        self._has(["kept"], plain)
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
            with safe_open(file, framework="pt") as opened:
                plain = json.loads((opened.metadata() or {})["state"])
            return load_file(file), plain
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise UserError(f"{file} is damaged ({error}); delete {self.folder} to start over") from None

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
