"""Attention RP: random perturbation of the attention scores.

The control of Kitada & Iyatomi, IEEE Access 2021 (arXiv:2009.12064), §VII-B: the length of Attention AT, in a random
direction.

    r  =  ε · n / ‖n‖₂,   n ~ N(0, I) over the words
    L  =  ℓ(y, f(s))  +  λ · ℓ(y, f(s + r))

    s  (B,T) scores, before the softmax      ε  `epsilon`      λ  `weight`      ℓ  cross-entropy

Differs from the paper, which specifies neither distribution nor size: r lies on the sphere of Attention AT, so that
the two differ in direction alone.  Tested by tests/techniques/test_attention_rp.py.
"""

from typing import Annotated

from steadygaze.core.maths.ranking import unit_vector
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.attention_at import task_of_scores
from steadygaze.techniques.technique import LossContext, Technique


@settings
class AttentionRP(Technique):
    """Random perturbation of attention scores: the control of attention-at."""

    epsilon: Annotated[float, Field(ge=0, le=1000)] = 0.3
    """Length of the perturbation, in units of score."""
    weight: Annotated[float, Field(ge=0)] = 1.0
    """λ: weight of the perturbed loss."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        task, scores = task_of_scores(model, batch)
        n = context.key.normal(batch.index, scores.shape[1], dtype=scores.dtype)
        r = unit_vector(n.masked_fill(~batch.mask, 0.0))
        return {"task": task(scores), "adversarial": self.weight * task(scores.add(r, alpha=self.epsilon))}
