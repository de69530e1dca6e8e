"""Reading with a model: no gradients, evaluation mode, each text once, nothing left behind."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.batch import Data, by_length, collate
from steadygaze.model import Classifier
from steadygaze.types import Batch, Forward

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


def forwards(
    model: Classifier, data: Data, batch_size: int = BATCH
) -> Iterator[tuple[NDArray[np.int64], Batch, Forward]]:
    """(rows, batch, forward) until every row of the split has been read once; shortest texts first."""
    device = next(model.parameters()).device
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(device)
        with inference(model):
            forward = model(batch)
        yield rows, batch, forward


def logits(model: Classifier, data: Data, batch_size: int = BATCH) -> Tensor:
    """(N,C) in the order of the split, on the CPU."""
    parts = [(rows, forward.logits.float().cpu()) for rows, _, forward in forwards(model, data, batch_size)]
    order = np.argsort(np.concatenate([rows for rows, _ in parts]), kind="stable")
    return torch.cat([values for _, values in parts])[torch.from_numpy(order)]
