"""Random weights, drawn per text: the baseline of explanations."""

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import Explainer, Saliency, unit_saliency
from steadygaze.models.inference import Model, inference
from steadygaze.perturbations.word_removal import units_of


@settings
class Random(Explainer):
    """Random weights between 0 and 1: the baseline of explanations."""

    class_specific: ClassVar[bool] = False

    seed: Annotated[int, Field(ge=0)] = 0
    """Random seed."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits = model(batch).logits
        units = units_of(batch)
        weights = RandomKey(self.seed).child(3).uniform(text_key(batch), units.mask.shape[1], dtype=torch.float64)
        return unit_saliency(units, weights, batch, logits)
