"""Adversary: a model that matches the predictions of a reference and attends to other words.

Wiegreffe & Pinter, "Attention is not not Explanation", EMNLP 2019 (arXiv:1908.04626), §4.

Equation
--------
    L  =  ½ Σ_c |y_c − ỹ_c|  −  λ · KL( w̃ ‖ w )

    w, y   attention and prediction of the frozen reference, which is provided or trained first
    w̃, ỹ   the adversary's own          λ `difference`

This is an audit instrument, not a mitigation.  If the adversary differs far in attention but not in its predictions,
other attention could have been learned.  It starts from fresh weights.

KL is unbounded: attending to a word with reference weight 0, as in sparse attention, adds up to 708 nats.

Cost
----
A reference is trained first, then the adversary: two vanilla runs.

When to use
-----------
To test whether a model's attention could have been different.  `audit --train` does this.  Never for production.

Departs from the paper
----------------------
Its code halves |Δp| once more, so that its λ is half of ours.  Its loss is NaN if a reference weight is 0.  We select
the last epoch; the paper selects the epoch with the lowest training loss.

Tested by tests/techniques/test_adversary.py.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import torch

from steadygaze.core.maths.distributions import kl, total_variation
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Forward, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.seat import cached_reference, reference_targets
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique
from steadygaze.techniques.vanilla import REFERENCE


@settings
class Adversary(Technique):
    """Matches a reference's predictions with different attention: a test of the reference, not a mitigation."""

    stacked_settings: ClassVar[tuple[str, ...]] = ("difference",)

    difference: Annotated[float, Field(ge=0, le=100), SearchRange(1e-4, 1.0, log=True)] = 1e-3
    """λ: weight of the divergence from the reference's attention."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        targets = cached_reference(self, batch, context)
        output: Forward = model(batch)
        probs, target = output.logits.softmax(-1), targets.texts["probs"]
        distance = kl(output.weights, targets.tokens["weights"], batch.mask)
        return {
            "task": total_variation(target, probs, torch.ones_like(probs, dtype=torch.bool)),
            "difference": -self.difference * distance,
        }

    def stages(self, seed: int) -> tuple[Stage, ...]:
        return REFERENCE, Stage("adversary", select="last")

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        return reference_targets(models, batch)
