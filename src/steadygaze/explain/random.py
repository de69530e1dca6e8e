"""Numbers drawn at random, from the text's own chance: what an explanation must be better than."""

from typing import ClassVar

import torch
from torch import Tensor

from steadygaze.config import settings
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.subsets import saliency
from steadygaze.infer import inference
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import text_key
from steadygaze.perturb.units import units_of
from steadygaze.reader import Reader
from steadygaze.types import Batch


@settings
class Random(Explainer):
    """Random numbers between 0 and 1: what an explanation must be better than."""

    by_class: ClassVar[bool] = False

    seed: int = 0
    """What is drawn is drawn from it and the text."""

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits = model(batch).logits
        units = units_of(batch)
        drawn = Chance(self.seed).child(3).uniform(text_key(batch), units.mask.shape[1], dtype=torch.float64)
        return saliency(units, drawn, batch, logits)
