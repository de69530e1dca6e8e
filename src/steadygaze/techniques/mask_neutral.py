"""Mask-neutral learning: a text counts less the better its label can be told from its attention weights alone.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §4.2.

    w  =  P(y) / P(y|m)                  m: the attention weights; w is clipped and one on average
    (core/maths/label_leakage.py)
    model      minimises  w · ℓ(y, f)
    judge      minimises  ℓ(y, g(m))     P(y|m), a small network (models/probe_classifier.py), a step for each of the
    model's

    weigh        who hears w
    joint        the whole model
    downstream   all but the scorer, which minimises ℓ(y, f)

The judge sees m times the number of words, so that even weights are ones whatever the length of a text.  Its loss is
the term `mask`: where it nears 0 the weights of attention decide the label, then all w are the same, and nothing is
mended; that is said when training is over.

Departs from the paper: nothing known; it is silent on the judge, on clipping, and on who is weighted.
Pinned by tests/objective/test_mask_neutral.py.
"""

from collections.abc import Mapping
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import cross_entropy, nll_loss, one_hot

from steadygaze.core.maths import label_leakage
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Forward, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.models.probe_classifier import ProbeClassifier
from steadygaze.techniques.technique import LossContext, Player, Technique

PLACES = 512
"""Tokens of a text whose weights the judge sees."""
PROBE_PLAYER = Player("judge", trains=("modules.judge",), terms=("mask",))
"""Nobody else hears it."""


@settings
class MaskNeutral(Technique):
    """Texts whose attention gives their label away count less (Bai et al. 2021)."""

    weigh: Literal["joint", "downstream"] = "joint"
    """Who minimises the weighted loss: the whole model, or all of it but the scorer."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        said: Forward = model(batch)
        known = probe_log_probabilities(given, said.weights, batch.mask)
        task = cross_entropy(said.logits, batch.gold, reduction="none")
        mask = nll_loss(known, batch.gold, reduction="none")
        terms = {"task": mask_neutral_terms(given, known, batch.gold).to(task.dtype) * task, "mask": mask}
        return terms if self.weigh == "joint" else {**terms, "unweighted": task}

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"judge": mask_probe(model)}

    def players(self) -> tuple[Player, ...]:
        if self.weigh == "joint":
            return Player("model", trains=("model.",), terms=("task",)), PROBE_PLAYER
        downstream = Player("downstream", trains=("model.encoder", "model.decoder"), terms=("task",))
        return downstream, Player("scorer", trains=("model.scorer",), terms=("unweighted",)), PROBE_PLAYER

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        told = leakage_remark(terms, prior)
        return told and f"{told}.  Weights P(y)/P(y|m) are then all the same: mask-neutral changes nothing"


def mask_probe(model: Classifier) -> ProbeClassifier:
    return ProbeClassifier(PLACES, model.classes)


def probe_log_probabilities(given: LossContext, weights: Tensor, mask: Tensor) -> Tensor:
    """log P(y|m), of which the model hears nothing.  (B,T) -> (B,C)"""
    known: Tensor = given.modules["judge"](weights.detach() * mask.sum(-1, keepdim=True))
    return known


def mask_neutral_terms(given: LossContext, known: Tensor, gold: Tensor) -> Tensor:
    """How much each text counts.  (B,C), (B,) -> (B,)"""
    if given.prior is None:
        raise ValueError("mask-neutral must be told how frequent each class is: Given.prior")
    target = one_hot(gold, known.shape[-1])
    return (label_leakage.mask_neutral_weights(given.prior.to(known.dtype), known, target) * target).sum(-1)


def leakage_remark(terms: Mapping[str, float], prior: Tensor) -> str | None:
    """Said where the judge knows the labels."""
    lost = terms.get("mask")
    if lost is None or not label_leakage.is_decided(lost, prior):
        return None
    return (
        "where the attention lies decides the label: whoever sees the weights and no word "
        f"loses {lost:.3f} of {label_leakage.entropy(prior):.3f} nats"
    )
