"""Random attention pretraining: what words mean is learnt before attention may choose any.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §4.1.

    1   all but the scorer     minimises  ℓ(y, decode(h, m))     m ~ Dirichlet(1) over the words, whatever they say
    2   the scorer alone       minimises  ℓ(y, decode(h, w))     w its own weights; all else is frozen

Weights drawn so tell nothing of the label: what the decoder makes of a word is what the word says, and no code can be
agreed on.  m = e / Σ e with e = −ln u, the exponential numbers of the text; new ones in every step.

A judge (models/probe_classifier.py) learns beside the scorer to tell the label from w alone.  Nobody hears it; its
loss is the term
`mask`, and that it knows the labels is said when training is over.

Departs from the paper: it names no law for the weights; evenly on the simplex is ours.
Pinned by tests/objective/test_random_pretraining.py.
"""

from collections.abc import Mapping
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, nll_loss

from steadygaze.core.maths import masked
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Forward, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.techniques.mask_neutral import PROBE_PLAYER, leakage_remark, mask_probe, probe_log_probabilities
from steadygaze.techniques.technique import LossContext, Player, Stage, Technique


@settings
class RandomWeights(Technique):
    """The first stage: weights that know nothing of the text."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        encoded = model.encode(batch)
        logits = model.decode(encoded, dirichlet(given.key, batch, encoded.hidden.dtype))
        return {"task": cross_entropy(logits, batch.gold, reduction="none")}


@settings
class RandomPretraining(Technique):
    """All but attention is trained on random attention, then attention alone (Bai et al. 2021)."""

    pretraining_epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Times the texts are read with random weights; None: as often as with the model's own."""

    def loss(self, model: Classifier, batch: Batch, given: LossContext) -> Terms:
        said: Forward = model(batch)
        known = probe_log_probabilities(given, said.weights, batch.mask)
        return {
            "task": cross_entropy(said.logits, batch.gold, reduction="none"),
            "mask": nll_loss(known, batch.gold, reduction="none"),
        }

    def stages(self, seed: int) -> tuple[Stage, ...]:
        rest = ("model.encoder", "model.decoder")
        # A fresh scorer looks at all words nearly alike, which is the mean of the random weights: by that the epoch is
        # chosen.
        first = Stage("random weights", technique=RandomWeights(), trains=rest, epochs=self.pretraining_epochs)
        return first, Stage("attention", trains=("model.scorer", "modules."))

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"judge": mask_probe(model)}

    def players(self) -> tuple[Player, ...]:
        return Player("model", trains=("model.",), terms=("task",)), PROBE_PLAYER

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        uniform = architecture.attention == "uniform"
        return "random-pretraining trains attention last, and uniform attention cannot be trained" if uniform else None

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        return leakage_remark(terms, prior)


def dirichlet(chance: RandomKey, batch: Batch, dtype: torch.dtype) -> Tensor:
    """Drawn evenly from all weights that sum to one over the words, for each text its own.  -> (B,T)"""
    dtype = torch.promote_types(dtype, torch.float32)  # in half precision few numbers could be drawn
    drawn = chance.uniform(batch.index, batch.ids.shape[1], dtype=dtype)
    return masked.normalize(-drawn.clamp_min(torch.finfo(dtype).tiny).log(), batch.mask)
