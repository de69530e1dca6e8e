"""A run that can be taken up again: one file, replaced whole after every epoch, and one per finished stage.

    checkpoint.safetensors        the current stage's tensors; in its header, as JSON, the rest of its state
    finished-<n>.safetensors      the weights that stage n ended with, where another follows

A checkpoint knows which run it belongs to, and refuses to continue another.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from steadygaze.atomic import new_file
from steadygaze.errors import UserError
from steadygaze.train.state import State

TORN = (".*.safetensors.*.tmp", ".tmp??????")
"""What a killed process leaves behind: our own unfinished files, and those that `safetensors` fills before them."""


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
        """What was saved of this run; None where nothing was, or where it is not to be continued."""
        for pattern in TORN:
            for file in self.folder.glob(pattern):
                file.unlink()
        if not self.resume or not self.file.is_file():
            return None
        tensors, plain = self._read(self.file)
        self._same(plain.pop("identity"))
        return Saved(plain.pop("stage"), tensors, plain)

    def save(self, stage: int, state: State) -> None:
        tensors, plain = state.pack()
        self._write(self.file, tensors, {"identity": self.identity, "stage": stage, **plain})

    def finish(self, stage: int, weights: dict[str, Tensor]) -> None:
        tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
        self._write(self._finished(stage), tensors, {"stage": stage})

    def finished(self, stage: int) -> dict[str, Tensor]:
        return self._read(self._finished(stage))[0]

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

    def _same(self, found: dict[str, Any]) -> None:
        now, then = dict(_flat(json.loads(json.dumps(self.identity)))), dict(_flat(found))
        for key in sorted({*now, *then}):
            if now.get(key) != then.get(key):
                raise UserError(
                    f"{self.folder} holds a run with another {key}: {then.get(key)!r}, now {now.get(key)!r}.  "
                    "Resume with the same data and settings, or delete that folder to start over."
                )


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """{"training": {"epochs": 8}} -> ("training.epochs", 8)"""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
