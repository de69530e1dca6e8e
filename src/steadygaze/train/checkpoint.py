"""A run that can be taken up again: one file per epoch's end, replaced whole, and one per finished model.

    checkpoint.safetensors          the current stage's tensors; in its header, as JSON, the rest of its state
    finished-<name>.safetensors     the weights of a model whose stage is over

A checkpoint knows which run it belongs to, and refuses to continue another.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from steadygaze.atomic import new_file
from steadygaze.errors import UserError
from steadygaze.train.state import State


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
        if not self.resume or not self.file.is_file():
            return None
        try:
            with safe_open(self.file, framework="pt") as opened:
                plain = json.loads(opened.metadata()["state"])
            tensors = load_file(self.file)
        except (SafetensorError, KeyError, ValueError) as error:
            raise UserError(f"{self.file} is damaged ({error}); delete {self.folder} to start over") from None
        self._same(plain.pop("identity"))
        return Saved(plain.pop("stage"), tensors, plain)

    def save(self, stage: int, state: State) -> None:
        tensors, plain = state.pack()
        header = json.dumps({"identity": self.identity, "stage": stage, **plain})
        with new_file(self.file) as path:
            save_file(tensors, path, metadata={"state": header})

    def finish(self, name: str, weights: dict[str, Tensor]) -> None:
        with new_file(self.folder / f"finished-{name}.safetensors") as path:
            save_file({key: value.detach().cpu().contiguous() for key, value in weights.items()}, path)

    def finished(self, name: str) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = load_file(self.folder / f"finished-{name}.safetensors")
        return weights

    def _same(self, found: dict[str, Any]) -> None:
        wanted = json.loads(json.dumps(self.identity))
        for key in sorted({*wanted, *found}):
            if wanted.get(key) != found.get(key):
                raise UserError(
                    f"{self.folder} holds a run with another {key}: {found.get(key)!r}, now {wanted.get(key)!r}.  "
                    "Resume with the same data and settings, or delete that folder to start over."
                )
