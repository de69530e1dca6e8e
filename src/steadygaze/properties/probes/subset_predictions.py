"""The prediction for every subset of the words of a short text.

From them follow the best order of the words, exactly, the mean of all orders, and the Shapley values of the words
(core/maths/subsets.py).

A text of n words takes 2ⁿ − 1 predictions.  WORDS is the largest n of an audit: 2⁶ predictions are fewer than the
erasures and the `best_orders` of a text of 40 words take.
"""

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import row_chunks, take_rows, trim_padding, units_of
from steadygaze.properties.probes.erasure import ERASER, Erasure, predict_erased, rationale_sizes

WORDS, THOROUGH_WORDS = 6, 9
"""Words of the longest text that is enumerated, in an audit and in a thorough one."""
FEWEST_WORDS = 2
"""A text of one word has one order."""
CELLS = 1 << 20
"""Tokens of the predicted texts that are in memory together."""


def subset_predictions(
    model: Model, batch: Batch, predicted: Tensor, erasure: Erasure = ERASER, most: int = WORDS
) -> Tensor:
    """Probability of the class `predicted` with some of the words only.

    Bit j of the number of a subset is 1 if word j is in it; NaN in longer texts, and for subsets that a text does not
    have.  (B,) -> (B,2^most)
    """
    words = units_of(batch, question=False).mask.sum(-1)
    values = torch.full((len(batch), 1 << most), torch.nan, dtype=torch.float64, device=batch.ids.device)
    for n in range(FEWEST_WORDS, most + 1):
        of_length = (words == n).nonzero().squeeze(-1)
        if not len(of_length):
            continue
        width = int(batch.present[of_length].sum(-1).amax())
        same = trim_padding(take_rows(batch, of_length), width)
        for rows in row_chunks(same, max(1, CELLS // (width << n))):
            part = _every_subset(model, take_rows(same, rows), predicted[of_length[rows]], erasure, n)
            values[of_length[rows], : 1 << n] = part
    return values


def _every_subset(model: Model, batch: Batch, predicted: Tensor, erasure: Erasure, n: int) -> Tensor:
    """The probabilities for texts of n words.  (B,) -> (B,2ⁿ)"""
    subsets = torch.arange(1 << n, device=predicted.device)
    kept = (subsets.unsqueeze(-1) >> torch.arange(n, device=predicted.device)) & 1 == 1  # (S,n)
    owner = torch.arange(len(batch), device=predicted.device).repeat_interleave(len(subsets))
    erased = units_of(batch, question=False).tokens(~kept.repeat(len(batch), 1), owner)
    probs = predict_erased(model, batch, owner, erased, erasure)
    return probs.gather(-1, predicted[owner].unsqueeze(-1)).view(len(batch), -1)


def size_coefficients(words: int, shares: tuple[float, ...]) -> Tensor:
    """How much the first k words count in a mean over the sizes of an erasure, for each k.  -> (words+1,)

    >>> size_coefficients(5, (0.01, 0.2, 0.5)).tolist()
    [0.0, 0.6666666666666666, 0.0, 0.3333333333333333, 0.0, 0.0]
    """
    sizes = rationale_sizes(torch.tensor([words]), shares)[0]
    return torch.bincount(sizes, minlength=words + 1).double() / len(shares)
