"""Reading with a model: no gradients, evaluation mode, each text once, nothing left behind."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.models.model_protocol import Model

BATCH = 128
"""Texts read at once.  Explanations do not depend on it beyond rounding."""


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, gradients allowed; every module gets back the mode it had.

    No TF32: its ten bits would let a text's weights depend on the batch it is read in by more than 1e-5.
    Modes and flags belong to the whole process: threads that read with one model enter this once, before they part.
    """
    modes = [(module, module.training) for module in model.modules()]
    cudnn = torch.backends.cudnn
    exact = cudnn.flags(cudnn.enabled, cudnn.benchmark, deterministic=cudnn.deterministic, allow_tf32=False)
    model.eval()
    try:
        with exact:
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients.

    `no_grad`, not `inference_mode`: what is read may be a constant of a later loss, as a reference model's weights are.
    """
    with evaluation(model), torch.no_grad():
        yield


@contextmanager
def with_gradients(model: nn.Module) -> Iterator[None]:
    """Evaluation mode with gradients: cuDNN would refuse those of a recurrent network that is not in training."""
    cudnn = torch.backends.cudnn
    with evaluation(model), cudnn.flags(enabled=False, allow_tf32=False), torch.enable_grad():
        yield


def forwards(model: Model, data: Data, batch_size: int = BATCH) -> Iterator[tuple[NDArray[np.int64], Batch, Any]]:
    """(rows, batch, Said) until every row of the split has been read once; shortest texts first."""
    device = next(model.parameters()).device
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(device)
        with inference(model):
            forward = model(batch)
        yield rows, batch, forward


@dataclass(frozen=True, slots=True)
class SplitOutputs:
    """What a model makes of a split, in its order, on the CPU."""

    logits: Tensor  # (N,C)
    weights: Tensor  # (N,T), T the longest text's
    mask: Tensor  # (N,T)
    ids: Tensor  # (N,T)


def split_outputs(model: Model, data: Data, batch_size: int = BATCH, widest: int | None = None) -> SplitOutputs:
    """Logits and weights of every text; of longer ones only what stands on their first `widest` tokens."""
    width = min(int(data.text.lengths.max(initial=1)), widest or sys.maxsize)
    places: list[NDArray[np.int64]] = []
    parts: list[tuple[Tensor, ...]] = []
    for rows, batch, forward in forwards(model, data, batch_size):
        tokens = forward.weights.float(), batch.mask, batch.ids
        places.append(rows)
        parts.append((forward.logits.float().cpu(), *(_wide(value.cpu(), width) for value in tokens)))
    order = original_order(places)
    return SplitOutputs(*(torch.cat(values)[order] for values in zip(*parts, strict=True)))


def logits(model: Model, data: Data, batch_size: int = BATCH) -> Tensor:
    """(N,C) in the order of the split, on the CPU."""
    parts = [(rows, forward.logits.float().cpu()) for rows, _, forward in forwards(model, data, batch_size)]
    return torch.cat([values for _, values in parts])[original_order([rows for rows, _ in parts])]


def original_order(rows: Sequence[NDArray[np.int64]]) -> Tensor:
    """What puts the results of these batches, laid end to end, back in the order of the split."""
    return torch.from_numpy(np.argsort(np.concatenate(rows), kind="stable"))


def _wide(values: Tensor, width: int) -> Tensor:
    """(B,T) -> (B,width), padded or cut."""
    return pad(values, (0, width - values.shape[1]))  # cuts where that is negative
