"""Mask-neutral learning: texts whose label is predictable from the attention weights alone get less weight.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §4.2.

Equation
--------
    w  =  P(y) / P(y|m)                  m: the attention weights; w is clipped, mean 1 (core/maths/label_leakage.py)

    model      minimizes  w · ℓ(y, f)
    probe      minimizes  ℓ(y, g(m))     estimates P(y|m) (models/probe_classifier.py), one step per step of the model

    weigh        parameters that minimize the weighted loss
    joint        the whole model
    downstream   all but the scorer, which minimizes ℓ(y, f)

The probe receives m times the number of words, so that uniform weights are 1 at any length.  Its loss is the term
`mask`.  Near 0, the attention weights determine the label.  All w are then equal, and the technique has no effect:
training ends with a warning.

Cost
----
One vanilla step and one step of a small probe classifier.

When to use
-----------
To repeat the paper.  With `random-pretraining` the black box recovered more predictions on IMDB and Yelp in our study,
and attention put less weight on tokens without meaning.

Departs from the paper
----------------------
Nothing known.  The paper does not specify the probe, the clipping or the weighted parameters.

Tested by tests/techniques/test_mask_neutral.py.
"""

from collections.abc import Mapping
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import nll_loss, one_hot

from steadygaze.core.maths import label_leakage
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Forward, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.models.probe_classifier import ProbeClassifier
from steadygaze.techniques.technique import LossContext, Player, Technique, task_loss

PLACES = 512
"""Tokens of a text whose weights the probe receives."""
PROBE_PLAYER = Player("probe", trains=("modules.probe",), terms=("mask",))


@settings
class MaskNeutral(Technique):
    """Texts whose attention leaks the label get less weight (Bai et al. 2021)."""

    weigh: Literal["joint", "downstream"] = "joint"
    """Parameters that minimize the weighted loss: the whole model, or all but the scorer."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        output: Forward = model(batch)
        log_probs = probe_log_probabilities(context, output.weights, batch.mask)
        task = task_loss(output.logits, batch)
        mask = nll_loss(log_probs, batch.gold, reduction="none")
        terms = {"task": mask_neutral_terms(context, log_probs, batch.gold).to(task.dtype) * task, "mask": mask}
        return terms if self.weigh == "joint" else {**terms, "unweighted": task}

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"probe": mask_probe(model)}

    def players(self) -> tuple[Player, ...]:
        if self.weigh == "joint":
            return Player("model", trains=("model.",), terms=("task",)), PROBE_PLAYER
        downstream = Player("downstream", trains=("model.encoder", "model.decoder"), terms=("task",))
        return downstream, Player("scorer", trains=("model.scorer",), terms=("unweighted",)), PROBE_PLAYER

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        remark = leakage_remark(terms, prior)
        return remark and f"{remark}.  All weights P(y)/P(y|m) are then equal: mask-neutral has no effect"


def mask_probe(model: Classifier) -> ProbeClassifier:
    return ProbeClassifier(PLACES, model.classes)


def probe_log_probabilities(context: LossContext, weights: Tensor, mask: Tensor) -> Tensor:
    """Return log P(y|m), detached from the model.  (B,T) -> (B,C)"""
    log_probs: Tensor = context.modules["probe"](weights.detach() * mask.sum(-1, keepdim=True))
    return log_probs


def mask_neutral_terms(context: LossContext, log_probs: Tensor, gold: Tensor) -> Tensor:
    """Return the weight of each text.  (B,C), (B,) -> (B,)"""
    if context.prior is None:
        raise ValueError("mask-neutral needs the class frequencies: set LossContext.prior")
    target = one_hot(gold, log_probs.shape[-1])
    return (label_leakage.mask_neutral_weights(context.prior.to(log_probs.dtype), log_probs, target) * target).sum(-1)


def leakage_remark(terms: Mapping[str, float], prior: Tensor) -> str | None:
    """Return a warning if the probe predicts the labels."""
    loss = terms.get("mask")
    if loss is None or not label_leakage.is_decided(loss, prior):
        return None
    return (
        "the label can be predicted from attention positions alone: a probe that reads the weights and no word "
        f"has a loss of {loss:.3f} of {label_leakage.entropy(prior):.3f} nats"
    )
