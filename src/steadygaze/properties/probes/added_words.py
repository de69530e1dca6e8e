"""Add random words to the selected ones.

Jin et al., "Probabilistic Stability Guarantees for Feature Attributions", 2025 (arXiv:2504.13787).  α is the selection
of k of the n words of a text:

    Δ_r(α)  =  { α′ ⊇ α : |α′ ∖ α| ≤ r }          Σ_{j≤r} C(n − k, j) sets; α is one of them

`sets_of_words` draws α′ ∖ α uniformly over these sets: a number j of words with a probability proportional to
C(n − k, j), then j of the n − k words.  The draws depend on the key of the text.  If there are at most `samples`
sets, they are all listed, once each.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import Units, units_of
from steadygaze.properties.probes.erasure import ROUNDING, Erasure, predict_erased


@dataclass(frozen=True)
class Additions:
    """Settings of the added words."""

    most: int
    """Largest number of added words, r."""
    samples: int
    """Sets of each text."""
    random_key: RandomKey


@dataclass(frozen=True, slots=True)
class ExtendedPredictions:
    """Predictions of the selected words alone, and with added words."""

    alone: Tensor  # (B,C)
    extended: Tensor  # (B,S,C)
    members: Tensor  # (B,S) bool: the sets that count
    exact: Tensor  # (B,) bool: these are all sets


def predict_extended(
    model: Model, batch: Batch, selected: Tensor, key: Tensor, additions: Additions, erasure: Erasure
) -> ExtendedPredictions:
    """Predict from the selected words and added ones; equal texts are predicted once.

    `selected`: (B,U) bool, in the units of the text; all others are erased.  `key`: (B,) of the texts.
    """
    units = units_of(batch, question=False)
    selected = selected[:, : units.mask.shape[1]]  # of a larger batch, with longer texts
    added, members, exact = sets_of_words(units.mask & ~selected, key, additions)
    kept = torch.cat([selected.unsqueeze(1), selected.unsqueeze(1) | added], 1)  # (B,1+S,U)
    rows, number = torch.cat([torch.ones_like(members[:, :1]), members], 1).nonzero(as_tuple=True)
    erased = batch.mask[rows] & ~units.tokens(kept[rows, number], rows)
    predicted = predict_erased(model, batch, rows, erased, erasure)
    probs = predicted.new_full((*kept.shape[:2], predicted.shape[-1]), torch.nan)
    probs[rows, number] = predicted
    return ExtendedPredictions(probs[:, 0], probs[:, 1:], members, exact)


def sets_of_words(others: Tensor, key: Tensor, additions: Additions) -> tuple[Tensor, Tensor, Tensor]:
    """The added words, the sets that count, and whether these are all sets.

    (B,U) bool, (B,) -> (B,S,U) bool, (B,S) bool, (B,) bool
    """
    added = _random_sets(others, key, additions)
    members, exact = added.new_ones(added.shape[:2]), added.new_zeros(len(added))
    for row, words in enumerate(others.sum(-1).tolist()):
        if (listed := _every_set(words, additions.most, additions.samples)) is not None:
            places = others[row].nonzero().squeeze(-1)
            added[row] = False
            added[row][: len(listed), places] = listed.to(added.device)
            members[row, len(listed) :] = False
            exact[row] = True
    return added, members, exact


@lru_cache(maxsize=256)
def _every_set(words: int, most: int, limit: int) -> Tensor | None:
    """All sets of at most `most` of the words; None: more than `limit`.  -> (N,words) bool"""
    sizes = range(min(most, words) + 1)
    if sum(comb(words, size) for size in sizes) > limit:
        return None
    rows = [chosen for size in sizes for chosen in combinations(range(words), size)]
    listed = torch.zeros(len(rows), words, dtype=torch.bool)
    for row, chosen in enumerate(rows):
        listed[row, list(chosen)] = True
    return listed


def _random_sets(others: Tensor, key: Tensor, additions: Additions) -> Tensor:
    """Sets of at most `most` words, all equally likely.  (B,U), (B,) -> (B,S,U)"""
    (texts, width), samples = others.shape, additions.samples
    random_key = additions.random_key
    row_keys = random_key.scramble(key.unsqueeze(-1) + torch.arange(samples, device=key.device)).flatten()
    drawn = random_key.child(1).uniform(row_keys, 1, dtype=torch.float64).view(texts, samples)
    counts = others.sum(-1, keepdim=True)
    sizes = torch.searchsorted(_size_distribution(counts, min(additions.most, width)), drawn, right=True)
    sizes = torch.minimum(sizes, counts.clamp_max(additions.most))  # the last sum may round to less than 1
    order = random_key.uniform(row_keys, width, dtype=torch.float64).view(texts, samples, width)
    rank = order.masked_fill(~others.unsqueeze(1), 2.0).argsort(-1).argsort(-1)
    return (rank < sizes.unsqueeze(-1)) & others.unsqueeze(1)


def _size_distribution(counts: Tensor, most: int) -> Tensor:
    """The probability of at most j added words: Σ_{i≤j} C(n, i) / Σ_{i≤r} C(n, i).  (B,1) -> (B,r+1)"""
    n, j = counts.double(), torch.arange(most + 1, dtype=torch.float64, device=counts.device)
    log_sets = torch.lgamma(n + 1) - torch.lgamma(j + 1) - torch.lgamma((n - j).clamp_min(0) + 1)
    return log_sets.masked_fill(j > n, -torch.inf).softmax(-1).cumsum(-1)


def top_words(units: Units, top: float) -> Tensor:
    """The number of selected words: a number below 1 is a share of the words, rounded up.  -> (B,)"""
    words = units.mask.sum(-1)
    return (words * top - ROUNDING).ceil().long() if top < 1 else words.clamp_max(int(top))
