"""A2R: the generator learns from a second predictor, which reads the whole text through soft attention.

Yu et al., "Understanding Interlocking Dynamics of Cooperative Rationalization", NeurIPS 2021 (arXiv:2110.13880), §4.

Equation
--------
    predictors     minimize  ℓ(y, f_r(M ⊙ x)) + ℓ(y, f_a(x, α)) + λ · JS(f_r, f_a)              Eq. 11 and 12
    generator      minimizes                    ℓ(y, f_a(x, α)) + λ · JS(f_r, f_a)              Eq. 12

    α       the generator's softmax over the units             M       sampled from α; for tokens, the top units by α
    f_r     head `hard`: reads the selection only              f_a     head `soft`: states of all units, weighted by α
    JS      Jensen-Shannon divergence, in nats                 λ       `agreement`

Both predictors share one encoder.  M is a constant to the generator: no gradient flows through f_r.  A predictor that
has adapted to a bad selection therefore does not keep the generator there; a preference of the soft predictor does.

`variant=released` follows the authors' code:

    sentences    predictors and generator update in turns; KL(r‖a) + KL(a‖r) replaces JS
                 the generator minimizes ℓ(y, f_a) alone
    tokens       no generator: α is attention over the predictor's own hidden states
                 all terms train all parameters at the learning rate of the run

Cost
----
As `rnp`, with a second head of the predictor that reads the whole text.

When to use
-----------
First choice for rationale extraction with word vectors.  With a transformer, compare it with `fresh`.

Departs from the paper
----------------------
Exploration covers real sentences only.  The encoder that Eq. 11 and 12 share receives the gradient of JS once.  The
generator's learning rate is 1e-4, as in the released code (the paper: 1e-3).  For tokens, M is the top windows of
`share` in training too; the paper takes single tokens and penalizes length and pieces. In the released code,
exploration covers empty sentences too.  It adds a policy gradient after a tuned number of epochs, and takes the top 80
pairs of tokens.

Tested by tests/techniques/test_a2r.py.
"""

from typing import Annotated, Literal

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import jensen_shannon, kl_logits
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import LEARNING_RATES, JointTechnique, UnusedSettings, sample_selection
from steadygaze.techniques.technique import LossContext, Player, task_loss


@settings
class A2R(JointTechnique):
    """As rnp, but soft attention trains the generator, which reduces interlocking (Yu et al. 2021)."""

    variant: Literal["paper", "released"] = "paper"
    """The equations of the paper, or of the authors' code."""
    agreement: Annotated[float, Field(ge=0), SearchRange(0.1, 10.0, log=True)] = 1.0
    """λ: weight of the divergence between the two predictors."""

    def loss(self, model: Rationalizer, batch: Batch, context: LossContext) -> Terms:
        output = model.generate(batch)
        hard = model.read(batch, self._selection(model, output, batch, context))
        soft = model.soft_attention(batch, output)
        gap = logit_divergence if self.variant == "paper" else symmetric_kl
        return {"task": task_loss(hard, batch), "soft": task_loss(soft, batch), "gap": self.agreement * gap(hard, soft)}

    def selection_config(self) -> SelectionConfig:
        heads, separate = ("hard", "soft"), not self._without_generator
        return SelectionConfig(self.granularity, False, self.share, self.spans, heads, separate)

    def players(self) -> tuple[Player, ...]:
        if self._without_generator:
            return (Player(),)
        if self.variant == "released":
            return self.two_players(("task", "soft", "gap"), ("soft",), turns=True)
        return self.two_players(("task", "soft", "gap"), ("soft", "gap"))

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        if self.granularity == "token" and self.share is None:
            return "a2r selects the tokens with the highest attention: set share, for example share=0.2"
        return super().validate(architecture, classes)

    def unused_settings(self) -> list[UnusedSettings]:
        tokens = "a2r and granularity=token"
        return [
            *super().unused_settings(),
            (self.granularity == "token", tokens, ("exploration", "sparsity", "continuity")),
            (self._without_generator, f"{tokens}, variant=released", LEARNING_RATES),
        ]

    @property
    def _without_generator(self) -> bool:
        """True if the model has no generator."""
        return self.variant == "released" and self.granularity == "token"

    def _selection(self, model: Rationalizer, output: GeneratorOutput, batch: Batch, context: LossContext) -> Tensor:
        """M: a constant.  (B,T) bool"""
        if self.granularity == "token":
            return model.select(batch, output)
        return output.spread(sample_selection(output, batch, context.key, self.exploration).units)


def logit_divergence(hard: Tensor, soft: Tensor) -> Tensor:
    """JS(f_r, f_a).  (B,C), (B,C) -> (B,)"""
    return jensen_shannon(hard.softmax(-1), soft.softmax(-1), torch.ones_like(hard, dtype=torch.bool))


def symmetric_kl(hard: Tensor, soft: Tensor) -> Tensor:
    """KL(r‖a) + KL(a‖r).  (B,C), (B,C) -> (B,)"""
    return kl_logits(hard.softmax(-1), soft) + kl_logits(soft.softmax(-1), hard)
