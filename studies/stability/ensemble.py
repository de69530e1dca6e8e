"""An ensemble of models as one: mean probabilities and mean attention of its members.

A perturbation of word vectors is shared: the difference from the first member's vectors is added to every member's.
Gradients of the probes flow through the mean, and σ is that of the first member's vectors.  So a probe has as many
coordinates, and the same radius, as for a single model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from steadygaze.core.types import Batch
from steadygaze.models.inference import Capability, Model


class MeanForward(NamedTuple):
    weights: Tensor  # (B,T)
    logits: Tensor  # (B,C) ln of the mean probabilities


class Ensemble(Model):
    """Members must share one vocabulary."""

    capabilities: frozenset[Capability] = frozenset({"attention", "embeddings"})

    def __init__(self, members: Sequence[Model]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> MeanForward:
        shift = None if embedded is None else embedded - self.embed(batch)
        outputs = [m(batch, None if shift is None else m.embed(batch) + shift) for m in self.members]  # type: ignore[operator]
        probs = torch.stack([output.logits.double().softmax(-1) for output in outputs]).mean(0)
        return MeanForward(
            torch.stack([output.weights for output in outputs]).mean(0), probs.log().to(outputs[0].logits.dtype)
        )

    def embed(self, batch: Batch) -> Tensor:
        return self.members[0].embed(batch)  # type: ignore[no-any-return, operator]

    @property
    def vectors(self) -> Tensor:
        return self.members[0].vectors  # type: ignore[return-value]
