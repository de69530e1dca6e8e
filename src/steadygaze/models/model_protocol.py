"""Reader: anything that reads token ids and says how likely each class is: ours, somebody else's, or a black box.

Explainers and audits know a model by this face alone.  What it can do beyond predicting is said in four flags; whoever
needs more than a model has says so, and is not asked.
"""

from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch

Capability = Literal["attention", "embeddings", "extension_points", "selection"]
"""weights: it shows how much it looks at each token.  vectors: tokens are vectors to it, and it has gradients by them.
seams: its hidden states can be read with other weights.  selection: it selects what it reads, and says how sure it was:
what it says of a batch has `selected` (B,T) and `probability` (B,T) too."""
MISSING_CAPABILITY: dict[Capability, str] = {
    "attention": "the model shows no attention",
    "embeddings": "the model is a black box: its word vectors cannot be moved",
    "extension_points": "the model cannot be read with other attention weights than its own",
    "selection": "the model does not select what it reads",
}
"""What a model lacks, as a report says it."""


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
    """Tensors (B,…) that were computed from a batch must be finite; the first text where one is not is named."""
    there = [value.detach() for value in values if value is not None and value.numel()]
    if all(bool(value.sum().isfinite()) for value in there):
        return
    wrong = [~value.isfinite().reshape(len(value), -1).all(-1) for value in there]
    rows = torch.stack(wrong).any(0) if wrong else torch.zeros(0, dtype=torch.bool)
    if rows.any():  # a sum of finite numbers may overflow
        raise NonFiniteOutput(int(batch.index.to(rows.device)[rows].min()))


class ModelOutput(Protocol):
    """What a model says of a batch."""

    @property
    def weights(self) -> Tensor | None:
        """(B,T), 0 outside the mask; None where it shows none."""

    @property
    def logits(self) -> Tensor:
        """(B,C)"""


class Model(nn.Module):
    """Padding cannot change what it says, and evaluation mode makes it repeat itself."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    padding: int = 0
    """The id of a token that says nothing."""

    def __call__(self, *given: Any, **more: Any) -> Any:
        """As every module; what it says in evaluation mode must be finite.  Training has a check of its own."""
        said = super().__call__(*given, **more)
        if not self.training and isinstance(given[0], Batch):
            refuse_non_finite(given[0], said.logits, said.weights)
        return said

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Any:
        """Said; of the batch, or of these vectors (B,T,E) in place of its own."""
        raise NotImplementedError

    def logits(self, batch: Batch, embedded: Tensor | None = None, asked: Tensor | None = None) -> Tensor:
        """(B,C) alone, of the batch, or of these vectors of the text (B,T,E) and of the question (B,Q,E)."""
        found = self(batch, embedded) if asked is None else self(batch, embedded, asked)
        logits: Tensor = found.logits
        return logits

    def embed(self, batch: Batch) -> Tensor:
        """(B,T,E)"""
        raise NotImplementedError

    def embed_question(self, batch: Batch) -> Tensor | None:
        """(B,Q,E), for a pair."""
        raise NotImplementedError

    def clear_cache(self) -> None:
        """What it remembers of its own answers: asked again, it looks again."""

    @property
    def vectors(self) -> Tensor:
        """(V,E) the vector of every id."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
