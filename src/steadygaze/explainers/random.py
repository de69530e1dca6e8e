"""Numbers drawn at random, from the text's own chance: what an explanation must be better than."""

from typing import ClassVar

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.lime import saliency
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import text_key, units_of


@settings
class Random(Explainer):
    """Random numbers between 0 and 1: what an explanation must be better than."""

    class_specific: ClassVar[bool] = False

    seed: int = 0
    """What is drawn is drawn from it and the text."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits = model(batch).logits
        units = units_of(batch)
        drawn = RandomKey(self.seed).child(3).uniform(text_key(batch), units.mask.shape[1], dtype=torch.float64)
        return saliency(units, drawn, batch, logits)
