"""Leave one out: drop of the class probability when a word is deleted.

    w_t = p_c(x) − p_c(x ∖ t)

All tokens of the word are deleted, without padding in their position.  Above 0: the word supports the class.  For a
pair, the words of the question are deleted as well.
"""

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Unit
from steadygaze.explainers.class_probability import Output, clean_prediction, predict_without
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.lime import chunks, saliency
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import MAX_UNITS, units_of, warn_segments


@settings
class LeaveOneOut(Explainer):
    """Leave one out: drop of the class probability when a word is deleted."""

    deletes_words: ClassVar[bool] = True
    forward_passes: ClassVar[int] = 25  # about the number of words in a sentence

    max_units: Annotated[int, Field(ge=1)] = MAX_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""
    output: Output = "probability"
    """What the words explain: the probability or the logit of the class."""

    @property
    def unit(self) -> Unit:
        return self.output

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        clean = clean_prediction(model, batch, target, output=self.output)
        units = units_of(batch, max_units=self.max_units)
        warn_segments(units, self.max_units)
        weights = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows, number in chunks(units.mask, units.number.shape[1]):  # one for each unit of the batch
            removed = units.number[rows] == number.unsqueeze(-1)
            weights[rows, number] = clean.value[rows] - predict_without(
                model, batch, rows, removed, clean.target_class, self.output
            )
        return saliency(units, weights, batch, clean.logits)
