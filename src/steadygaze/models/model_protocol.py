"""Model: the protocol of everything that maps token ids to class probabilities.

Explainers and audits use a model through this protocol alone.  Capabilities declare what it supports beyond
prediction.
"""

from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch

Capability = Literal["attention", "embeddings", "extension_points", "selection", "threads"]
"""attention: it returns attention weights.  embeddings: it accepts token embeddings and has gradients by them.
extension_points: its hidden states can be decoded with other weights, as in `Classifier`.  selection: it selects a
rationale, as `Rationalizer` does.  threads: several threads can share it."""
MISSING_CAPABILITY: dict[Capability, str] = {
    "attention": "the model has no attention weights",
    "embeddings": "the model is a black box: its word vectors cannot be perturbed",
    "extension_points": "the model does not accept other attention weights",
    "selection": "the model does not select a rationale",
    "threads": "the model is not known to be thread-safe",
}
"""Message for a missing capability, for reports."""


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


class ModelOutput(Protocol):
    """Output of a model for a batch."""

    @property
    def weights(self) -> Tensor | None:
        """(B,T), 0 outside the mask; None without attention."""

    @property
    def logits(self) -> Tensor:
        """(B,C)"""


class Model(nn.Module):
    """Base class; outputs do not depend on padding and are deterministic in evaluation mode."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    padding: int = 0
    """Id of the padding token."""

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

    @property
    def vectors(self) -> Tensor:
        """(V,E) the vector of every id."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
