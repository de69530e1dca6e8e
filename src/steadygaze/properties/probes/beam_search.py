"""The best order of the words of a text that a beam search finds: greedy erasure that keeps several beginnings.

    S           the first k words of an order
    value       what the prediction loses without S, or keeps with S alone
    score       Σ_k c_k value(the first k words): the mean over the sizes of an erasure
    estimate    Σ_{i ≤ k} c_i value(the first i words) + value(S) Σ_{i > k} c_i

Each step adds every other word to every beginning and keeps the WIDTH sets with the largest estimate, of equal ones
those that a known order prefers: where several words support a prediction, no single one changes it.  WIDTH 1 is
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
from steadygaze.properties.probes.subset_predictions import FEWEST_WORDS, size_coefficients

WIDTH = 3
MOST_WORDS = 40
"""Words of the longest text that is searched."""
TIES = 1e-6
"""Differences of the estimate that count as equal."""
SetValue = Callable[[Tensor, Tensor], Tensor]
"""Values of sets of words, from their texts and their words.  (V,), (V,n) bool -> (V,)"""


def searched_orders(
    model: Model, batch: Batch, full: Tensor, known: Tensor, erasure: Erasure, width: int = WIDTH
) -> Tensor:
    """Weights of the words in the orders whose first words lose most, and keep most alone, as far as the search finds.

    `known`: weights of a known order.  NaN in texts of one word, or of more than MOST_WORDS.  (B,C), (B,U) -> (B,2,U)
    """
    words = units_of(batch, question=False).mask
    counts = words.sum(-1)
    orders = torch.full((len(batch), 2, words.shape[1]), torch.nan, dtype=torch.float64, device=words.device)
    for n in range(FEWEST_WORDS, min(MOST_WORDS, int(counts.max())) + 1):
        rows = (counts == n).nonzero().squeeze(-1)
        if len(rows):
            same = trim_padding(take_rows(batch, rows), int(batch.present[rows].sum(-1).amax()))
            coefficients = size_coefficients(n, erasure.shares).to(orders.device)
            for column, keeps in enumerate((False, True)):
                value = _value(model, same, full[rows], erasure, keeps)
                orders[rows, column, :n] = beam_search(value, known[rows, :n], coefficients, width)[1]
    return orders


def _value(model: Model, batch: Batch, full: Tensor, erasure: Erasure, keeps: bool) -> SetValue:
    units, predicted = units_of(batch, question=False), full.argmax(-1)

    def value(texts: Tensor, chosen: Tensor) -> Tensor:
        erased = units.tokens(~chosen if keeps else chosen, texts)
        probs = predict_erased(model, batch, texts, erased, erasure)
        probability = probs.gather(-1, predicted[texts].unsqueeze(-1)).squeeze(-1)
        return probability if keeps else full.amax(-1)[texts] - probability

    return value


def beam_search(value: SetValue, known: Tensor, coefficients: Tensor, width: int = WIDTH) -> tuple[Tensor, Tensor]:
    """The largest score that the search finds for texts of n words, and weights of the words in this order.

    (B,n), (n+1,) -> (B,), (B,n) from n for the first word; 0 for words after the last size that counts
    """
    (texts, n), device = known.shape, coefficients.device
    preference = TIES * known / known.abs().sum(-1, keepdim=True).clamp_min(TIES)
    later = coefficients.flip(0).cumsum(0).flip(0) - coefficients  # of larger sets
    weights = torch.zeros(texts, 1, n, dtype=torch.float64, device=device)
    total = torch.zeros(texts, 1, dtype=torch.float64, device=device)
    for size in range(1, int(coefficients.nonzero().max()) + 1):
        added = (n + 1 - size) * torch.eye(n, dtype=torch.float64, device=device)
        longer = torch.maximum(weights.unsqueeze(2), added).flatten(1, 2)  # (B,W·n,n)
        sets, before = longer > 0, total.unsqueeze(2).expand(-1, -1, n).flatten(1)
        new = (sets.sum(-1) == size) & before.isfinite() & ~_repeated(sets, before)
        text, number = new.nonzero(as_tuple=True)
        values = torch.full_like(before, -torch.inf)
        values[text, number] = value(text, sets[text, number])
        estimate = before + (coefficients[size] + later[size]) * values + (sets * preference.unsqueeze(1)).sum(-1)
        best = estimate.topk(min(width, estimate.shape[1]), dim=1).indices
        weights = longer.gather(1, best.unsqueeze(-1).expand(-1, -1, n))
        total = (before + torch.where(new, coefficients[size] * values, -torch.inf)).gather(1, best)
    score, first = total.max(1)
    return score, weights[torch.arange(texts, device=device), first]


def _repeated(sets: Tensor, before: Tensor) -> Tensor:
    """True for a set that another beginning with a larger score reaches as well.  (B,K,n), (B,K) -> (B,K)"""
    code = (sets.long() << torch.arange(sets.shape[-1], device=sets.device)).sum(-1)
    rank = before.argsort(dim=1, descending=True, stable=True).argsort(1)
    same = code.unsqueeze(-1) == code.unsqueeze(-2)
    return (same & (rank.unsqueeze(-2) < rank.unsqueeze(-1))).any(-1)
