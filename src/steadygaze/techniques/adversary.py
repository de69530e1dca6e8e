"""Adversary: a model that predicts what another predicts, and looks elsewhere.

Wiegreffe & Pinter, "Attention is not not Explanation", EMNLP 2019 (arXiv:1908.04626), §4.

    L  =  ½ Σ_c |y_c − ỹ_c|  −  λ · KL( w̃ ‖ w )

    w, y   attention and prediction of the frozen reference: the model that is doubted; given, or trained first
    w̃, ỹ   the adversary's own          λ `difference`

An instrument of the audit, not a remedy: the farther it gets from the reference's attention without losing its
predictions, the less that attention was the only one that could be learnt.  It starts from fresh weights.

KL has no upper end: where the reference gives a word exactly nothing, as sparse attention does, one look at it is worth
708 nats.  Departs from the paper: its code halves |Δp| once more, so that its λ is half of ours, and is NaN where a
weight of the reference is 0.  The last epoch is kept, where it keeps that of the lowest training loss.
Pinned by tests/objective/test_adversary.py.
"""

from collections.abc import Mapping
from typing import Annotated

import torch

from steadygaze.core.maths.divergence import kl, total_variation
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Forward, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.techniques.seat import cached_reference
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique
from steadygaze.techniques.vanilla import Vanilla


@settings
class Adversary(Technique):
    """Predicts as a reference does and attends elsewhere: a test of that reference, not a remedy."""

    difference: Annotated[float, Field(ge=0, le=100)] = 1e-3
    """λ: how much it counts to be far from the reference's attention."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        memory = cached_reference(self, batch, given)
        said: Forward = model(batch)
        probs, target = said.logits.softmax(-1), memory.texts["probs"]
        apart = kl(said.weights, memory.tokens["weights"], batch.mask)
        return {
            "task": total_variation(target, probs, torch.ones_like(probs, dtype=torch.bool)),
            "difference": -self.difference * apart,
        }

    def stages(self, seed: int) -> tuple[Stage, ...]:
        reference = Stage("reference", technique=Vanilla(), model="reference")
        return reference, Stage("adversary", select="last")

    def cache_targets(self, models: Mapping[str, Classifier], batch: Batch) -> CachedTargets:
        said: Forward = models["reference"](batch)
        return CachedTargets({"probs": said.logits.softmax(-1)}, {"weights": said.weights})
