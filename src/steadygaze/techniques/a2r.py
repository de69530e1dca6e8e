"""A2R: the generator learns from a second predictor, which sees all of the text through soft attention.

Yu et al., "Understanding Interlocking Dynamics of Cooperative Rationalization", NeurIPS 2021 (arXiv:2110.13880), §4.

    predictors     minimise  ℓ(y, f_r(M ⊙ x)) + ℓ(y, f_a(x, α)) + λ · JS(f_r, f_a)              Eq. 11 and 12
    generator      minimises                    ℓ(y, f_a(x, α)) + λ · JS(f_r, f_a)              Eq. 12

    α       the generator's softmax over the units             M       drawn from α; of tokens, the best by α
    f_r     head `hard`: reads what is selected alone          f_a     head `soft`: states of all units, weighted by α
    JS      Jensen-Shannon divergence, in nats                 λ       `agreement`

Both predictors share one encoder.  M is a constant to the generator: through f_r it hears nothing.  So what holds it at
a bad selection is no longer that a predictor has grown used to it; where the soft predictor prefers it too, it stays.

    variant     released, sentences          predictors and generator move in turns; for JS stands KL(r‖a) + KL(a‖r),
                                             and the generator minimises ℓ(y, f_a) alone
                released, tokens             no generator: α is attention over the predictor's own hidden states, all
                                             terms move all parameters, with the run's step size

Departs from the paper: exploration is over real sentences only; the encoder that Eq. 11 and 12 share hears JS once; the
generator's step size is that of the released code, 1e-4 (the paper has 1e-3 but for policy gradients); of tokens M is
the best windows of `share` in training too, where the paper takes single tokens and punishes length and pieces.
Departs from the released code: there exploration falls on empty sentences too, a policy gradient is added after a
number of epochs that is tuned for each setting, and of tokens the 80 best pairs are taken.
Pinned by tests/objective/test_a2r.py.
"""

from typing import Annotated, Literal

import torch
from torch import Tensor

from steadygaze.core.maths.divergence import jensen_shannon, kl_logits
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import IdleModules, RationalizingTechnique, sample_selection, task_loss
from steadygaze.techniques.technique import LossContext, Player


@settings
class A2R(RationalizingTechnique):
    """As rnp, but soft attention teaches the generator, so that it locks less easily (Yu et al. 2021)."""

    variant: Literal["paper", "released"] = "paper"
    """The paper's equations, or as the authors' code has them."""
    agreement: Annotated[float, Field(ge=0)] = 1.0
    """λ: how much it counts that both predictors say the same."""

    def loss(self, model: Rationalizer, batch: Batch, given: LossContext) -> Terms:
        looked = model.generate(batch)
        hard = model.read(batch, self._selection(model, looked, batch, given))
        soft = model.soft_attention(batch, looked)
        gap = apart if self.variant == "paper" else both_ways
        return {"task": task_loss(hard, batch), "soft": task_loss(soft, batch), "gap": self.agreement * gap(hard, soft)}

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(
            self.granularity, False, self.share, self.spans, ("hard", "soft"), separate_encoders=not self._attentive
        )

    def players(self) -> tuple[Player, ...]:
        if self._attentive:
            return (Player(),)
        if self.variant == "released":
            return self.two_players(("task", "soft", "gap"), ("soft",), turns=True)
        return self.two_players(("task", "soft", "gap"), ("soft", "gap"))

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        if self.granularity == "token" and self.share is None:
            return "a2r takes the tokens of most attention: say how many with share, as in share=0.2"
        return super().validate(architecture, classes)

    def idle_modules(self) -> list[IdleModules]:
        tokens = "a2r and granularity=token"
        return [
            *super().idle_modules(),
            (self.granularity == "token", tokens, ("exploration", "sparsity", "continuity")),
            (self._attentive, f"{tokens}, variant=released", ("generator_learning_rate",)),
        ]

    @property
    def _attentive(self) -> bool:
        """Whether there is no generator."""
        return self.variant == "released" and self.granularity == "token"

    def _selection(self, model: Rationalizer, looked: GeneratorOutput, batch: Batch, given: LossContext) -> Tensor:
        """M: a constant.  (B,T) bool"""
        if self.granularity == "token":
            return model.select(batch, looked)
        return looked.spread(sample_selection(looked, batch, given.key, self.exploration).units)


def apart(hard: Tensor, soft: Tensor) -> Tensor:
    """JS(f_r, f_a).  (B,C), (B,C) -> (B,)"""
    return jensen_shannon(hard.softmax(-1), soft.softmax(-1), torch.ones_like(hard, dtype=torch.bool))


def both_ways(hard: Tensor, soft: Tensor) -> Tensor:
    """KL(r‖a) + KL(a‖r).  (B,C), (B,C) -> (B,)"""
    return kl_logits(hard.softmax(-1), soft) + kl_logits(soft.softmax(-1), hard)
