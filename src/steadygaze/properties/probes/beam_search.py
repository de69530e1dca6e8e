"""The best order of the words of a text that a beam search finds: greedy erasure that keeps several beginnings.

    S           the first k words of an order
    value       what the prediction loses without S, or keeps with S alone
    score       Σ_k c_k value(the first k words): the mean over the sizes of an erasure
    estimate    Σ_{i ≤ k} c_i value(the first i words) + value(S) Σ_{i > k} c_i

Each step adds every other word to every beginning and keeps the WIDTH sets with the largest estimate.  WIDTH 1 is
greedy erasure.  A text of n words takes about 0.4 · WIDTH · n² predictions, so that texts of more than MOST_WORDS words
are left out.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import take_rows, trim_padding, units_of
from steadygaze.properties.probes.erasure import Erasure, predict_erased
from steadygaze.properties.probes.subset_predictions import size_coefficients

WIDTH = 3
MOST_WORDS = 40
"""Words of the longest text that is searched."""
SetValue = Callable[[Tensor, Tensor], Tensor]
"""Values of sets of words, from their texts and their words.  (V,), (V,n) bool -> (V,)"""


def searched_scores(
    model: Model,
    batch: Batch,
    full: Tensor,
    erasure: Erasure,
    replacements: Tensor | None = None,
    fewest: int = 2,
    width: int = WIDTH,
) -> Tensor:
    """The largest drop without the first words, and the largest probability of these alone, that the search finds.

    NaN in texts of fewer than `fewest` words, or of more than MOST_WORDS.  (B,C) -> (B,2)
    """
    words = units_of(batch, question=False).mask.sum(-1)
    scores = torch.full((len(batch), 2), torch.nan, dtype=torch.float64, device=batch.ids.device)
    for n in range(fewest, min(MOST_WORDS, int(words.max())) + 1):
        rows = (words == n).nonzero().squeeze(-1)
        if len(rows):
            columns = int(batch.present[rows].sum(-1).amax())
            same = trim_padding(take_rows(batch, rows), columns)
            others = None if replacements is None else replacements[rows, :columns]
            coefficients = size_coefficients(n, erasure.shares).to(scores.device)
            for column, keeps in enumerate((False, True)):
                value = _value(model, same, full[rows], erasure, others, keeps)
                scores[rows, column] = beam_search(value, len(rows), coefficients, width)
    return scores


def _value(
    model: Model, batch: Batch, full: Tensor, erasure: Erasure, replacements: Tensor | None, keeps: bool
) -> SetValue:
    units, predicted = units_of(batch, question=False), full.argmax(-1)

    def value(texts: Tensor, chosen: Tensor) -> Tensor:
        erased = units.tokens(~chosen if keeps else chosen, texts)
        probs = predict_erased(model, batch, texts, erased, erasure, replacements)
        probability = probs.gather(-1, predicted[texts].unsqueeze(-1)).squeeze(-1)
        return probability if keeps else full.amax(-1)[texts] - probability

    return value


def beam_search(value: SetValue, texts: int, coefficients: Tensor, width: int = WIDTH) -> Tensor:
    """The largest score that the search finds for texts of n words.  (n+1,) -> (texts,)"""
    n, device = len(coefficients) - 1, coefficients.device
    later = coefficients.flip(0).cumsum(0).flip(0) - coefficients  # of larger sets
    chosen = torch.zeros(texts, 1, n, dtype=torch.bool, device=device)
    total = torch.zeros(texts, 1, dtype=torch.float64, device=device)
    for size in range(1, int(coefficients.nonzero().max()) + 1):
        sets = (chosen.unsqueeze(2) | torch.eye(n, dtype=torch.bool, device=device)).flatten(1, 2)  # (B,W·n,n)
        before = total.unsqueeze(2).expand(-1, -1, n).flatten(1)
        new = (sets.sum(-1) == size) & before.isfinite() & ~_repeated(sets, before)
        text, number = new.nonzero(as_tuple=True)
        values = torch.full_like(before, -torch.inf)
        values[text, number] = value(text, sets[text, number])
        estimate = before + (coefficients[size] + later[size]) * values
        best = estimate.topk(min(width, estimate.shape[1]), dim=1).indices
        chosen = sets.gather(1, best.unsqueeze(-1).expand(-1, -1, n))
        total = (before + torch.where(new, coefficients[size] * values, -torch.inf)).gather(1, best)
    return total.amax(1)


def _repeated(sets: Tensor, before: Tensor) -> Tensor:
    """True for a set that another beginning with a larger score reaches as well.  (B,K,n), (B,K) -> (B,K)"""
    code = (sets.long() << torch.arange(sets.shape[-1], device=sets.device)).sum(-1)
    rank = before.argsort(dim=1, descending=True, stable=True).argsort(1)
    same = code.unsqueeze(-1) == code.unsqueeze(-2)
    return (same & (rank.unsqueeze(-2) < rank.unsqueeze(-1))).any(-1)
