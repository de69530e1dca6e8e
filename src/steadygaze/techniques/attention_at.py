"""Attention AT: adversarial training on the attention scores.

Kitada & Iyatomi, "Attention Meets Perturbations", IEEE Access 2021 (arXiv:2009.12064), Eq. 11–12 and 20.

Equation
--------
    g  =  ∇ₛ ℓ(y, f(s))                               gradient of the task loss
    r  =  ε · g / ‖g‖₂                                worst perturbation of length ε, to first order
    L  =  ℓ(y, f(s))  +  λ · ℓ(y, f(s + r))

    s  (B,T) scores, before the softmax      ε  `epsilon`
    f  attend, then decode                   λ  `weight`
    ℓ  cross-entropy

r is a constant of the outer loss.  Both losses share the hidden states: one pass of the encoder.

Cost
----
A second pass of attention and decoder only: 1.28 vanilla steps on a GPU, 1.02 on a CPU.

When to use
-----------
To repeat the paper.  Do not use it for stability: attention did not shift less than vanilla's in our study.

Departs from the paper
----------------------
Not from the paper, but from the released code: that code's search for r also filled the parameters' gradients, so that
the clean loss counted twice.

Tested by tests/techniques/test_attention_at.py.
"""

from typing import Annotated, ClassVar

from torch import Tensor

from steadygaze.core.maths.distributions import unit_vector
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.gradient_ascent import loss_gradient, scaled_sum
from steadygaze.techniques.technique import LossContext, Technique, task_loss


@settings
class AttentionAT(Technique):
    """Adversarial training on attention scores (Kitada & Iyatomi 2021)."""

    stacked_settings: ClassVar[tuple[str, ...]] = ("epsilon", "weight")

    epsilon: Annotated[float, Field(ge=0, le=1000), SearchRange(0.01, 30.0, log=True)] = 0.3
    """Length of the perturbation, in units of score."""
    weight: Annotated[float, Field(ge=0)] = 1.0
    """λ: weight of the perturbed loss."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        encoded: Encoded = model.encode(batch)
        scores = model.score(encoded)

        def task(s: Tensor) -> Tensor:  # ℓ(y, f(s))
            return task_loss(model.decode(encoded, model.attend(s, batch.mask)), batch)

        clean = task(scores)
        r = self.direction(clean, scores, batch, context)
        return {"task": clean, "adversarial": self.weight * task(scaled_sum(scores, r, self.epsilon))}

    def direction(self, clean: Tensor, scores: Tensor, batch: Batch, context: LossContext) -> Tensor:
        """r / ε.  (B,), (B,T) -> (B,T)"""
        return unit_vector(loss_gradient(clean, scores))
