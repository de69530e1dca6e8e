"""Vanilla: cross-entropy alone.  The baseline; every other technique equals it at strength zero.

Jain & Wallace, NAACL 2019 (arXiv:1902.10186).

Equation
--------
    L = −ln p(y | x)

Cost
----
One forward and one backward pass per step: the unit of all other costs.

When to use
-----------
As the baseline of a comparison, and where only accuracy matters.  Audit its attention before you show it.

Departs from the paper
----------------------
C logits and a softmax for two classes too, where they have one unit; the mean over a batch, where they sum.  The
training loop applies class weights (`class_weight`) for every technique.

Tested by tests/techniques/test_vanilla.py.
"""

from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.technique import LossContext, Stage, Technique, task_loss


@settings
class Vanilla(Technique):
    """Cross-entropy alone."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        return {"task": task_loss(model(batch).logits, batch)}


REFERENCE = Stage("reference", technique=Vanilla(), model="reference")
"""Trains the reference of a technique that has one."""
