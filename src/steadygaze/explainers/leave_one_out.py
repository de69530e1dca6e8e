"""Leave one out: drop of the class probability when a word is deleted.

    w_t = p_c(x) − p_c(x ∖ t)

All tokens of the word are deleted, without padding in their position.  Above 0: the word supports the class.  For a
pair, the words of the question are deleted as well.
"""

from typing import ClassVar

import torch
from torch import Tensor

from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import CleanPrediction, predict_without
from steadygaze.explainers.word_deletion import WordDeletion, chunks
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import Units


@settings
class LeaveOneOut(WordDeletion):
    """Leave one out: drop of the class probability when a word is deleted."""

    forward_passes: ClassVar[int] = 25  # about the number of words in a sentence

    def passes(self, words: float) -> float:
        return 1 + min(words, self.max_units)

    def weigh(self, model: Model, batch: Batch, clean: CleanPrediction, units: Units) -> Tensor:
        weights = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows, number in chunks(units.mask, units.number.shape[1]):  # one for each unit of the batch
            removed = units.number[rows] == number.unsqueeze(-1)
            without = predict_without(model, batch, rows, removed, clean.target_class, self.output)
            weights[rows, number] = clean.value[rows] - without
        return weights
