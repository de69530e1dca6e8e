"""Leave one out: what the prediction loses when a word is deleted.

    w_t = p_c(x) − p_c(x ∖ t)

All tokens of the word are deleted together and the text closes up.  Above 0: the word speaks for the class; below:
against it.  Of a pair each word of the question is left out, too.
"""

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import clean_prediction, predict_without
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.lime import chunks, saliency
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import MOST_UNITS, units_of, warn_segments


@settings
class LeaveOneOut(Explainer):
    """Leave one out: what the prediction loses when a word is deleted."""

    deletes_words: ClassVar[bool] = True
    forward_passes: ClassVar[int] = 25  # about as many as a sentence has words

    max_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen, units = clean_prediction(model, batch, target), units_of(batch, most=self.max_units)
        warn_segments(units, self.max_units)
        weights = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows, number in chunks(units.mask, units.number.shape[1]):  # one for each unit of the batch
            gone = units.number[rows] == number.unsqueeze(-1)
            weights[rows, number] = seen.probability[rows] - predict_without(
                model, batch, rows, gone, seen.target_class
            )
        return saliency(units, weights, batch, seen.logits)
