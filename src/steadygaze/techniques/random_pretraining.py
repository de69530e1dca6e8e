"""Random attention pretraining: the encoder and decoder are trained before attention may select words.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §4.1.

Equation
--------
    1   all but the scorer     minimizes  ℓ(y, decode(h, m))     m ~ Dirichlet(1), independent of the words
    2   the scorer alone       minimizes  ℓ(y, decode(h, w))     w its own weights; the rest is frozen

Random weights carry no information about the label.  The decoder therefore learns from the words, and attention
positions cannot leak the label.  m = e / Σ e with e = −ln u, the exponential samples of the text, new in every step.

In stage 2 a probe (models/probe_classifier.py) learns to predict the label from w alone.  The model does not receive
its gradient.  Its loss is the term `mask`; training ends with a warning if the probe predicts the labels.

Cost
----
Two stages, each of the epochs of a run: about two vanilla runs.  A small probe is trained beside the second.

When to use
-----------
If attention may cover tokens without content, and the audit finds shortcut leakage.

Departs from the paper
----------------------
The paper specifies no distribution of the weights: uniform on the simplex is ours.

Tested by tests/techniques/test_random_pretraining.py.
"""

from collections.abc import Mapping
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss

from steadygaze.core.maths import distributions
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Forward, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.techniques.mask_neutral import PROBE_PLAYER, leakage_remark, mask_probe, probe_log_probabilities
from steadygaze.techniques.technique import LossContext, Player, Stage, Technique, task_loss


@settings
class RandomWeights(Technique):
    """The first stage: random weights, independent of the text."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        encoded = model.encode(batch)
        logits = model.decode(encoded, dirichlet(context.key, batch, encoded.hidden.dtype))
        return {"task": task_loss(logits, batch)}


@settings
class RandomPretraining(Technique):
    """The rest of the model is trained with random attention first, then attention alone (Bai et al. 2021)."""

    pretraining_epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Epochs with random weights; None: as many as with the model's own."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        output: Forward = model(batch)
        log_probs = probe_log_probabilities(context, output.weights, batch.mask)
        return {
            "task": task_loss(output.logits, batch),
            "mask": nll_loss(log_probs, batch.gold, reduction="none"),
        }

    def stages(self, seed: int) -> tuple[Stage, ...]:
        without_scorer = ("model.encoder", "model.decoder")
        # A fresh scorer is nearly uniform, the mean of the random weights: the epoch is selected with it.
        first = Stage(
            "random weights", technique=RandomWeights(), trains=without_scorer, epochs=self.pretraining_epochs
        )
        return first, Stage("attention", trains=("model.scorer", "modules."))

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"probe": mask_probe(model)}

    def players(self) -> tuple[Player, ...]:
        return Player("model", trains=("model.",), terms=("task",)), PROBE_PLAYER

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        uniform = architecture.attention == "uniform"
        return "random-pretraining trains attention, and attention=uniform cannot be trained" if uniform else None

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        return leakage_remark(terms, prior)


def dirichlet(key: RandomKey, batch: Batch, dtype: torch.dtype) -> Tensor:
    """Sample weights uniformly from the simplex over the words of each text.  -> (B,T)"""
    dtype = torch.promote_types(dtype, torch.float32)  # half precision has few distinct samples
    noise = key.uniform(batch.index, batch.ids.shape[1], dtype=dtype)
    return distributions.normalize(-noise.clamp_min(torch.finfo(dtype).tiny).log(), batch.mask)
