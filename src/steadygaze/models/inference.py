"""Inference: the protocol of models, their devices, and evaluation without gradients, each text once.

Model: everything that maps token ids to class probabilities.  Explainers and audits use a model through this protocol
alone.  Capabilities declare what it supports beyond prediction.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from steadygaze.core.capabilities import MISSING_CAPABILITY as MISSING_CAPABILITY
from steadygaze.core.capabilities import Capability as Capability
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Batch
from steadygaze.data.batches import MAX_TOKENS, Data, by_length, collate


class NonFiniteOutput(UserError):
    """The output of a model for a text is NaN or infinite."""

    def __init__(self, row: int) -> None:
        super().__init__(
            f"the model's output for text {row + 1} is not finite (NaN or infinity): "
            "its weights are damaged, or training diverged"
        )
        self.row = row
        """The position of the text in its split, from 0."""


def refuse_non_finite(batch: Batch, *values: Tensor | None) -> None:
    """Raise if a tensor (B,…) computed from a batch is not finite; name the first such text."""
    tensors = [value.detach() for value in values if value is not None and value.numel()]
    if all(bool(value.sum().isfinite()) for value in tensors):
        return
    wrong = [~value.isfinite().reshape(len(value), -1).all(-1) for value in tensors]
    rows = torch.stack(wrong).any(0) if wrong else torch.zeros(0, dtype=torch.bool)
    if rows.any():  # a sum of finite numbers can overflow
        raise NonFiniteOutput(int(batch.index.to(rows.device)[rows].min()))


class Model(nn.Module):
    """Base class; outputs do not depend on padding and are deterministic in evaluation mode."""

    capabilities: frozenset[Capability] = frozenset()
    padding: int = 0
    """Id of the padding token."""

    is_black_box: bool = False
    """True if it may answer differently when it is asked again."""

    sample_size: int = 100
    """Texts for expensive measures of an audit, unless the user names a number."""

    @property
    def tokens_per_pass(self) -> int:
        """Tokens in an efficient forward pass, padding included: more are split."""
        return MAX_TOKENS

    def __call__(self, *inputs: Any, **more: Any) -> Any:
        """Call the module; outputs in evaluation mode must be finite.  Training has its own check."""
        output = super().__call__(*inputs, **more)
        if not self.training and isinstance(inputs[0], Batch):
            refuse_non_finite(inputs[0], output.logits, output.weights)
        return output

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Any:
        """Return the output for the batch, or for these vectors (B,T,E) instead of its own."""
        raise NotImplementedError

    def logits(self, batch: Batch, embedded: Tensor | None = None, embedded_question: Tensor | None = None) -> Tensor:
        """Return the logits (B,C) of the batch, or of these vectors of text (B,T,E) and question (B,Q,E)."""
        output = self(batch, embedded) if embedded_question is None else self(batch, embedded, embedded_question)
        logits: Tensor = output.logits
        return logits

    def embed(self, batch: Batch) -> Tensor:
        """(B,T,E)"""
        raise NotImplementedError

    def embed_question(self, batch: Batch) -> Tensor | None:
        """(B,Q,E), for a pair."""
        raise NotImplementedError

    def clear_cache(self) -> None:
        """Clear the cache of its outputs."""

    def redrawn(self, draw: int) -> AbstractContextManager[None]:
        """Inside the block a black box is asked again; the outputs of other models are the same in all draws."""
        return nullcontext()

    @property
    def vectors(self) -> Tensor:
        """(V,E) the vector of every id."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))


BATCH = 128
"""Texts per batch.  Explanations do not depend on it beyond rounding."""
DEVICES = ("auto", "cpu", "cuda", "mps")


def selects(model: Model) -> TypeGuard[Any]:
    """True if the model selects a rationale; it then has the attributes of a `Rationalizer`."""
    return "selection" in model.capabilities


def check_device(device: Any) -> None:
    if not isinstance(device, str) or device not in DEVICES:
        raise unknown("device", device, DEVICES)
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("device 'cuda' is not available: torch finds no GPU; use --device cpu, or auto")
    if device == "mps" and not torch.backends.mps.is_available():
        raise UserError("device 'mps' is not available; use --device cpu, or auto")


def best_device(device: str) -> torch.device:
    """Return the device of a name, for inference."""
    check_device(device)
    if device != "auto":
        return torch.device(device)
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Set evaluation mode inside the block, with gradients allowed; restore the mode of every module.

    TF32 is off: with it, a text's weights would depend on its batch by more than 1e-5.
    Modes and flags are global: enter this once, before starting threads that share a model.
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
    """Set evaluation mode without gradients, in a `with` block.

    `no_grad`, not `inference_mode`: the outputs can be constants of a later loss, such as a reference model's weights.

    Parameters
    ----------
    model : Module
        The model; its mode is restored after the block.

    Returns
    -------
    context manager
        Of the block.
    """
    with evaluation(model), torch.no_grad():
        yield


@contextmanager
def with_gradients(model: nn.Module) -> Iterator[None]:
    """Set evaluation mode with gradients, in a `with` block.

    cuDNN is off: it needs recurrent networks in training mode for gradients.

    Parameters
    ----------
    model : Module
        The model; its mode is restored after the block.

    Returns
    -------
    context manager
        Of the block.
    """
    cudnn = torch.backends.cudnn
    with evaluation(model), cudnn.flags(enabled=False, allow_tf32=False), torch.enable_grad():
        yield


def forwards(model: Model, data: Data, batch_size: int = BATCH) -> Iterator[tuple[NDArray[np.int64], Batch, Any]]:
    """Iterate over (rows, batch, output) for every row of the split, shortest texts first."""
    device = model.device
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(device)
        with inference(model):
            forward = model(batch)
        yield rows, batch, forward


@dataclass(frozen=True, slots=True)
class SplitOutputs:
    """Outputs of a model for a split, in its order, on the CPU."""

    logits: Tensor  # (N,C)
    weights: Tensor  # (N,T), T the longest text's
    mask: Tensor  # (N,T)
    ids: Tensor  # (N,T)
    sentences: Tensor | None = None  # (N,T) the given sentence of each token, as in `Batch`


def split_outputs(model: Model, data: Data, batch_size: int = BATCH, widest: int | None = None) -> SplitOutputs:
    """Return logits and weights of every text; weights are limited to the first `widest` tokens."""
    width = min(int(data.text.lengths.max(initial=1)), widest or sys.maxsize)
    row_batches: list[NDArray[np.int64]] = []
    parts: list[tuple[Tensor, ...]] = []
    for rows, batch, forward in forwards(model, data, batch_size):
        units = () if batch.sentences is None else (batch.sentences,)
        tokens = forward.weights.float(), batch.mask, batch.ids, *units
        row_batches.append(rows)
        parts.append((forward.logits.float().cpu(), *(_fit_width(value.cpu(), width) for value in tokens)))
    order = original_order(row_batches)
    return SplitOutputs(*(torch.cat(values)[order] for values in zip(*parts, strict=True)))


def logits(model: Model, data: Data, batch_size: int = BATCH) -> Tensor:
    """Return the logits (N,C) in the order of the split, on the CPU, in single or double precision."""
    parts = []
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(model.device)
        with inference(model):
            values = model.logits(batch)
        refuse_non_finite(batch, values)
        parts.append((rows, values.cpu()))
    values = torch.cat([values for _, values in parts])[original_order([rows for rows, _ in parts])]
    return values.to(torch.promote_types(values.dtype, torch.float32))


def original_order(rows: Sequence[NDArray[np.int64]]) -> Tensor:
    """Return the permutation that restores the order of the split from concatenated batches."""
    return torch.from_numpy(np.argsort(np.concatenate(rows), kind="stable"))


def _fit_width(values: Tensor, width: int) -> Tensor:
    """Pad or truncate.  (B,T) -> (B,width)"""
    return pad(values, (0, width - values.shape[1]))  # truncates if negative
