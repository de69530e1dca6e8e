"""VIBI: L2X with a price on choosing unevenly.

Bang, Xie, Wu & Xing, "Explaining a black-box using deep variational information bottleneck", 2019 (arXiv:1902.06918):

    CE(label of the black box, q(x ⊙ m)) / ln 2  +  β k KL(softmax(z) ‖ even)

Departs from the released code, in which log-probabilities are passed for probabilities, so that the choice is inverted,
and no slope reaches the selector from the prediction; the divergence is taken in the direction of the paper; the
networks are L2X's, and no twelve samples are averaged: what is kept is chosen hard.
"""

import math
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from steadygaze.core.maths import masked
from steadygaze.core.settings import Field, settings
from steadygaze.explainers.learned.selector import InputBatch, SelectorConfig, one_hot


@settings
class Vibi(SelectorConfig):
    """Variational information bottleneck: L2X that prefers to choose evenly."""

    betas: ClassVar[tuple[float, float]] = (0.5, 0.999)

    beta: Annotated[float, Field(ge=0, le=1000)] = 0.1
    """Price of choosing unevenly."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.7
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 20
    optimizer: Literal["rmsprop", "adam"] = "adam"
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    weight_averaging: Annotated[float, Field(ge=0, lt=1)] = 0.999

    def target(self, probs: Tensor) -> Tensor:
        return one_hot(probs)

    def fidelity(self, logits: Tensor, target: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        return super().fidelity(logits, target, weight) / math.log(2)

    def selection_cost(self, scores: Tensor, views: InputBatch) -> Tensor:
        p = masked.softmax(scores, views.able)
        even = -views.able.sum(-1, keepdim=True).clamp_min(1).to(p.dtype).log()
        tiny = 1e-12  # p log p is 0 where p is
        return self.beta * self.k * (p * (p.clamp_min(tiny).log() - even)).sum(-1)
