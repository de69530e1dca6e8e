"""Good orders of the words of a text, found by predicting again: the best known of them is the upper end of a scale.

    leave one out    the drop of the probability without the word
    alone            the same plus the probability of the word alone: the mean of the first and the last contribution,
                     so that words that say the same count as well

At most MOST_UNITS units of a text are removed; in longer texts they are segments of words.  An order of segments is
worse than one of words: with segments of five words, weights that correlate with the exact ones by 0.3 would reach 0.8.
"""

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import predict_without
from steadygaze.explainers.word_deletion import chunks
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import units_of

MOST_UNITS = 250
GOOD_ORDERS = 2
"""Orders that are found."""


def good_orders(model: Model, batch: Batch, full: Tensor) -> list[Tensor]:
    """Weights of the words of the text; `full`: the predictions.  (B,C) -> (B,T) each"""
    units, predicted = units_of(batch, question=False, max_units=MOST_UNITS), full.argmax(-1)
    without, alone = (torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device) for _ in range(2))
    for rows, number in chunks(units.mask, units.number.shape[1]):
        chosen = units.number[rows] == number.unsqueeze(-1)
        without[rows, number] = predict_without(model, batch, rows, chosen, predicted)
        alone[rows, number] = predict_without(model, batch, rows, batch.mask[rows] & ~chosen, predicted)
    probability = full.to(without.device).gather(-1, predicted.unsqueeze(-1).to(without.device))
    drops = (probability - without).masked_fill(~units.mask, 0.0)
    return [units.on_first(drops), units.on_first(drops + alone)]
