"""Attention RP: random perturbation of the attention scores.

The control of Kitada & Iyatomi, IEEE Access 2021 (arXiv:2009.12064), §VII-B: as far as Attention AT, in any direction.

    r  =  ε · n / ‖n‖₂,   n ~ N(0, I) over the words
    L  =  ℓ(y, f(s))  +  λ · ℓ(y, f(s + r))

    s  (B,T) scores, before the softmax      ε  `epsilon`      λ  `weight`      ℓ  cross-entropy

Departs from the paper: it gives neither distribution nor size; the sphere of Attention AT is taken, so that the two
differ in direction alone.  Pinned by tests/objective/test_attention_rp.py.
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
    """How much the perturbed loss counts beside the clean one."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        task, scores = task_of_scores(model, batch)
        n = given.key.normal(batch.index, scores.shape[1], dtype=scores.dtype)
        r = unit_vector(n.masked_fill(~batch.mask, 0.0))
        return {"task": task(scores), "adversarial": self.weight * task(scores.add(r, alpha=self.epsilon))}
