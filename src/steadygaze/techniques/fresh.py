"""FRESH: a classifier's attention or gradient selects words, and a separate predictor is trained on these alone.

Jain, Wiegreffe, Pinter & Wallace, "Learning to Faithfully Rationalize by Construction", ACL 2020 (arXiv:2005.00115).

Equation
--------
    1. scorer       a classifier of the whole text:  minimizes ℓ(y, g(x))
    2. selection    M = the best tokens by saliency to g, frozen            models/token_saliency.py
    3. predictor    fresh weights:  minimizes ℓ(y, f(M ⊙ x))

Generator and predictor are never trained together.  The predictor cannot change the selection, so that the two cannot
interlock.  Unselected words have no effect on the prediction, as in every rationalizer.

    spans = 1       one contiguous window (the paper's "contiguous")
    spans = None    the top tokens (the paper's "top-k")
    spans = 10      at most ten windows (default)
    granularity = sentence    the sentence with the largest sum

The selections of the training texts are computed once.  A trained vanilla model of the same architecture can be the
scorer (`references`, --from); then only the predictor is trained.

Cost
----
Two runs: a classifier of the whole text, and the predictor.  An existing vanilla model saves the first.

When to use
-----------
With a transformer, and wherever interlocking must be impossible.  With word vectors `a2r` agrees more with people.

Departs from the paper
----------------------
Scorer and predictor have the encoder of the run, and hidden states are max-pooled over the selection.  The paper's
scorer is BERT, with the attention of [CLS] or the gradient of the embeddings.  The predictor reads the selected words
at their positions; the paper concatenates them.  Several windows are ours.

Tested by tests/techniques/test_fresh.py.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from steadygaze.core.errors import UserError
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.inference import Model
from steadygaze.models.rationalizer import Granularity, Rationalizer, SelectionConfig
from steadygaze.models.token_saliency import Saliency
from steadygaze.techniques.rationalizing import GENERATOR, PREDICTOR, RationalizingTechnique
from steadygaze.techniques.technique import CachedTargets, LossContext, Stage, Technique, task_loss

SCORER = "scorer"


@settings
class FullText(Technique):
    """The generator classifies the whole text."""

    def loss(self, model: Rationalizer, batch: Batch, context: LossContext) -> Terms:
        return {"task": task_loss(self.evaluated(model)(batch).logits, batch)}

    def evaluated(self, model: Any) -> Model:
        generator: Model = model.generator
        return generator


@settings
class Fresh(RationalizingTechnique):
    """A trained classifier's attention selects words; a second model is trained on them alone (Jain et al. 2020)."""

    granularity: Granularity = "token"
    """Unit of selection: single tokens, or one sentence."""
    saliency: Saliency = "attention"
    """Score of a token: attention of the classifier, or the gradient of its prediction."""

    def loss(self, model: Rationalizer, batch: Batch, context: LossContext) -> Terms:
        selection = context.cached_targets.tokens.get("selection")
        if selection is None:
            with torch.no_grad():
                selection = self.cache_targets(context.models, batch).tokens["selection"]
        return {"task": task_loss(model.read(batch, selection), batch)}

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(self.granularity, False, self.share, self.spans, saliency=self.saliency)

    def stages(self, seed: int) -> tuple[Stage, ...]:
        first, *others = (dataclasses.replace(stage, trains=PREDICTOR) for stage in super().stages(seed))
        scorer = Stage(SCORER, FullText(), model=SCORER, trains=GENERATOR)
        return scorer, dataclasses.replace(first, start=SCORER), *others

    def cache_targets(self, models: Mapping[str, Any], batch: Batch) -> CachedTargets:
        """Return the selections."""
        scorer: Rationalizer = models[SCORER]
        return CachedTargets(tokens={"selection": scorer.select(batch, scorer.generate(batch))})

    def adapt_reference(self, reference: Model, make_model: Callable[[], Model]) -> Model:
        if not isinstance(reference, Classifier):
            raise UserError("fresh takes a classifier with attention as its scorer: use a vanilla model")
        model = make_model()
        assert isinstance(model, Rationalizer)
        model.generator.load_state_dict(reference.state_dict())
        return model

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        if self.granularity == "token" and self.share is None:
            return "fresh selects the tokens with the highest saliency: set share, for example share=0.2"
        return super().validate(architecture, classes)
