"""What a technique remembers of every training text, made once before a stage and looked up in every step.

Texts keep (N,…) tensors, tokens (Σ T,…) ones without padding; a batch gets them back padded to its own width.  What
would take more than ROOM is not kept: the technique makes it anew in every step.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from steadygaze.batch import Data, by_length, collate
from steadygaze.infer import BATCH, inference
from steadygaze.objective.technique import Memory, Technique
from steadygaze.reader import Reader
from steadygaze.types import Batch

ROOM = 4 << 30
"""Bytes that one remembered thing may take."""


class Store:
    """Filled a batch at a time, in any order; empty where the technique remembers nothing."""

    def __init__(self, data: Data, device: torch.device) -> None:
        self._starts = torch.from_numpy(data.text.starts).to(device)
        self._total = int(data.text.starts[-1])
        self._texts: dict[str, Tensor] = {}
        self._tokens: dict[str, Tensor] = {}

    def put(self, batch: Batch, memory: Memory) -> None:
        places = self._places(batch)[batch.present]
        total = self._total
        for name, value in memory.tokens.items():
            if total * value[0, :1].nbytes <= ROOM:
                kept = self._tokens.setdefault(name, value.new_zeros((total + 1, *value.shape[2:])))
                kept[places] = value[batch.present]
        for name, value in memory.texts.items():
            kept = self._texts.setdefault(name, value.new_empty((len(self._starts) - 1, *value.shape[1:])))
            kept[batch.index] = value

    def get(self, batch: Batch) -> Memory:
        if not self._texts and not self._tokens:
            return Memory()
        places = self._places(batch).masked_fill(~batch.present, self._total)  # the row after the last is 0
        tokens = {name: kept[places] for name, kept in self._tokens.items()}
        return Memory({name: kept[batch.index] for name, kept in self._texts.items()}, tokens)

    def _places(self, batch: Batch) -> Tensor:
        """Where each token of the batch stands among all tokens.  (B,T)"""
        return self._starts[batch.index].unsqueeze(1) + torch.arange(batch.ids.shape[1], device=self._starts.device)


def remembered(technique: Technique, models: Mapping[str, Reader], data: Data, device: torch.device) -> Store:
    """Asks the technique of every text once, in full precision."""
    store = Store(data, device)
    if type(technique).remember is Technique.remember:
        return store
    for rows in by_length(data, BATCH):
        batch = collate(data, np.asarray(rows)).to(device)
        with inference(torch.nn.ModuleList(models.values())):
            store.put(batch, technique.remember(models, batch))
    return store
