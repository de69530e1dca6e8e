"""VIBI: L2X with a penalty on non-uniform selection.

Bang, Xie, Wu & Xing, "Explaining a black-box using deep variational information bottleneck", 2019 (arXiv:1902.06918):

    CE(label of the black box, q(x ⊙ m)) / ln 2  +  β k KL(softmax(z) ‖ uniform)

Differences from the released code: it passes log-probabilities as probabilities, which inverts the selection, and no
gradient of the prediction reaches the selector.  The divergence has the direction of the paper.  The networks are those
of L2X, and the mask is one hard selection instead of a mean over twelve samples.
"""

import math
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from steadygaze.core.maths import distributions
from steadygaze.core.settings import Field, settings
from steadygaze.explainers.learned.l2x import InputBatch, SelectorConfig


@settings
class Vibi(SelectorConfig):
    """Variational information bottleneck: L2X with a penalty on non-uniform selection."""

    betas: ClassVar[tuple[float, float]] = (0.5, 0.999)

    beta: Annotated[float, Field(ge=0, le=1000)] = 0.1
    """β: weight of the penalty."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.7
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 20
    optimizer: Literal["rmsprop", "adam"] = "adam"
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    weight_averaging: Annotated[float, Field(ge=0, lt=1)] = 0.999

    def target(self, probs: Tensor) -> Tensor:
        return torch.zeros_like(probs).scatter(-1, probs.argmax(-1, keepdim=True), 1.0)

    def fidelity(self, logits: Tensor, target: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        return super().fidelity(logits, target, weight) / math.log(2)

    def selection_cost(self, scores: Tensor, views: InputBatch) -> Tensor:
        p = distributions.softmax(scores, views.selectable)
        log_uniform = -views.selectable.sum(-1, keepdim=True).clamp_min(1).to(p.dtype).log()
        tiny = 1e-12  # p log p is 0 for p = 0
        return self.beta * self.k * (p * (p.clamp_min(tiny).log() - log_uniform)).sum(-1)
