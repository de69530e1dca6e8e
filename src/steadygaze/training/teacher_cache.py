"""What a technique remembers of every training text, made once before a stage and looked up in every step.

Texts keep (N,…) tensors, tokens (Σ T,…) ones without padding; a batch gets them back padded to its own width.  What
would take more than ROOM is not kept: the technique makes it anew in every step.

Teacher cache: trained teachers and references, kept for the next run that needs them.

Each file is named by the SHA-256 of everything that determines its weights.  A cached teacher therefore equals the
teacher that training would produce, bit for bit.  A damaged file is ignored.
"""

import hashlib
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
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.models.inference import BATCH, inference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.technique import CachedTargets, Technique
from steadygaze.training.training_state import are_records

ROOM = 4 << 30
"""Bytes that one remembered thing may take."""


class TargetCache:
    """Filled a batch at a time, in any order; empty where the technique remembers nothing."""

    def __init__(self, data: Data, device: torch.device) -> None:
        self._starts = torch.from_numpy(data.text.starts).to(device)
        self._total = int(data.text.starts[-1])
        self._texts: dict[str, Tensor] = {}
        self._tokens: dict[str, Tensor] = {}

    def put(self, batch: Batch, memory: CachedTargets) -> None:
        places = self._places(batch)[batch.present]
        total = self._total
        for name, value in memory.tokens.items():
            if total * value[0, :1].nbytes <= ROOM:
                kept = self._tokens.setdefault(name, value.new_zeros((total + 1, *value.shape[2:])))
                kept[places] = value[batch.present]
        for name, value in memory.texts.items():
            kept = self._texts.setdefault(name, value.new_empty((len(self._starts) - 1, *value.shape[1:])))
            kept[batch.index] = value

    def get(self, batch: Batch) -> CachedTargets:
        if not self._texts and not self._tokens:
            return CachedTargets()
        places = self._places(batch).masked_fill(~batch.present, self._total)  # the row after the last is 0
        tokens = {name: kept[places] for name, kept in self._tokens.items()}
        return CachedTargets({name: kept[batch.index] for name, kept in self._texts.items()}, tokens)

    def _places(self, batch: Batch) -> Tensor:
        """Where each token of the batch stands among all tokens.  (B,T)"""
        return self._starts[batch.index].unsqueeze(1) + torch.arange(batch.ids.shape[1], device=self._starts.device)


def cache_targets(technique: Technique, models: Mapping[str, Model], data: Data, device: torch.device) -> TargetCache:
    """Asks the technique of every text once, in full precision."""
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
    """Refuse a folder that is a link, is inside a model, or holds anything but teachers and references."""
    check_folder(folder)
    if folder.exists() and (others := unmatched(folder, ENTRY)):
        raise UserError(f"{folder} holds {others[0]!r}, which is not a teacher or a reference; name another folder")


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
        """Write an entry; the reason if that fails.  Runs that end with the same weights write the same file."""
        try:
            check_teacher_cache(self.folder)
            remove_named_leftovers(self.folder, ENTRY)
            with new_file(self._file(key)) as path:
                save_file(weights, path, metadata={"history": json.dumps(history)})
        except (OSError, SafetensorError, UserError) as error:
            return f"could not keep a finished model in {self.folder} for the next run: {error}"
        return None

    def _file(self, key: dict[str, Any]) -> Path:
        everything = json.dumps({**self.identity, "stage": key}, sort_keys=True)
        return self.folder / f"{hashlib.sha256(everything.encode()).hexdigest()[:32]}.safetensors"
