"""Vanilla: cross-entropy and nothing else.  The baseline, and what every other technique is at strength zero.

    L = −ln p(y | x)

Departs from Jain & Wallace 2019 (arXiv:1902.10186): C logits and a softmax for two classes as well, where they have one
unit; the mean over a batch, where they sum; class weights are the loop's business (`class_weight`), for every technique
alike.
Pinned by tests/objective/test_vanilla.py.
"""

from torch.nn.functional import cross_entropy

from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.technique import LossContext, Technique


@settings
class Vanilla(Technique):
    """Cross-entropy alone."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        return {"task": cross_entropy(model(batch).logits, batch.gold, reduction="none")}
