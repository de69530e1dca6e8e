"""Target cache and teacher cache.

The target cache stores a technique's targets of every training text, computed once before a stage.  Targets of texts
have shape (N,…); targets of tokens have shape (Σ T,…), without padding.  A batch gets them padded to its own width.
Targets of more than ROOM bytes are not cached: the technique recomputes them in every step.

The teacher cache stores trained teachers and references for later runs.  Each file is named by the SHA-256 of
everything that determines its weights.  A cached teacher therefore equals the teacher that training would produce, bit
for bit.  A damaged file is ignored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from steadygaze.core.atomic_files import new_file, remove_named_leftovers, unmatched
from steadygaze.core.errors import UserError
from steadygaze.core.output_paths import check_folder
from steadygaze.core.tensor_files import read_metadata, read_tensors
from steadygaze.core.types import Batch
from steadygaze.core.untrusted_files import digest_json
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.models.inference import BATCH, Model, inference
from steadygaze.techniques.technique import CachedTargets, Technique
from steadygaze.training.training_state import are_records

ROOM = 4 << 30
"""Maximum size of one target in bytes."""


class TargetCache:
    """Targets of all training texts; empty if the technique has none."""

    def __init__(self, data: Data, device: torch.device) -> None:
        self._starts = torch.from_numpy(data.text.starts).to(device)
        self._total = int(data.text.starts[-1])
        self.texts: dict[str, Tensor] = {}
        self.tokens: dict[str, Tensor] = {}
        self.is_complete = True
        """False if a target was too large."""

    def put(self, batch: Batch, targets: CachedTargets) -> None:
        positions = self.positions(batch)[batch.present]
        total = self._total
        for name, value in targets.tokens.items():
            if total * value[0, :1].nbytes > ROOM:
                self.is_complete = False
            else:
                table = self.tokens.setdefault(name, value.new_zeros((total + 1, *value.shape[2:])))
                table[positions] = value[batch.present]
        for name, value in targets.texts.items():
            table = self.texts.setdefault(name, value.new_empty((len(self._starts) - 1, *value.shape[1:])))
            table[batch.index] = value

    def get(self, batch: Batch) -> CachedTargets:
        if not self.texts and not self.tokens:
            return CachedTargets()
        positions = self.positions(batch)
        tokens = {name: table[positions] for name, table in self.tokens.items()}
        return CachedTargets({name: table[batch.index] for name, table in self.texts.items()}, tokens)

    def positions(self, batch: Batch) -> Tensor:
        """Return the row of each token of the batch in `tokens`; padding has the last row, which is 0.  (B,T)"""
        positions = torch.arange(batch.ids.shape[1], device=self._starts.device)
        return (self._starts[batch.index].unsqueeze(1) + positions).masked_fill(~batch.present, self._total)


def cache_targets(technique: Technique, models: Mapping[str, Model], data: Data, device: torch.device) -> TargetCache:
    """Compute the technique's targets of every text once, in full precision."""
    store = TargetCache(data, device)
    if type(technique).cache_targets is Technique.cache_targets:
        return store
    for rows in by_length(data, BATCH):
        batch = collate(data, np.asarray(rows)).to(device)
        with inference(torch.nn.ModuleList(models.values())):
            store.put(batch, technique.cache_targets(models, batch))
    return store


ENTRY = r"[0-9a-f]{32}\.safetensors"
CachedTeacher = tuple[dict[str, Tensor], list[dict[str, Any]]]
"""Weights, and one record per epoch."""


def check_teacher_cache(folder: Path) -> None:
    """Raise if a folder is a link, is inside a model, or contains anything but teachers and references."""
    check_folder(folder)
    if folder.exists() and (foreign_files := unmatched(folder, ENTRY)):
        raise UserError(
            f"{folder} contains {foreign_files[0]!r}, which is not a teacher or a reference; use another folder"
        )


@dataclass(frozen=True)
class TeacherCache:
    folder: Path
    identity: dict[str, Any]
    """Everything that determines the weights except technique and seed, as JSON."""

    def get(self, key: dict[str, Any]) -> CachedTeacher | None:
        file = self._file(key)
        try:
            history = read_metadata(file, "history")
            return (read_tensors(file), history) if are_records(history) else None
        except UserError:
            return None

    def put(self, key: dict[str, Any], weights: dict[str, Tensor], history: list[dict[str, Any]]) -> str | None:
        """Write an entry; return the reason if that fails."""
        try:
            check_teacher_cache(self.folder)
            remove_named_leftovers(self.folder, ENTRY)
            with new_file(self._file(key)) as path:
                save_file(weights, path, metadata={"history": json.dumps(history)})
        except (OSError, SafetensorError, UserError) as error:
            return f"cannot write a finished model to the teacher cache {self.folder}: {error}"
        return None

    def _file(self, key: dict[str, Any]) -> Path:
        digest = digest_json([{**self.identity, "stage": key}], sort_keys=True)
        return self.folder / f"{digest[:32]}.safetensors"
