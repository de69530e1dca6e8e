"""KernelSHAP: Shapley values, as the solution of a weighted least squares.

Lundberg & Lee, "A Unified Approach to Interpreting Model Predictions", NeurIPS 2017 (arXiv:1705.07874), Theorem 2.

    φ = argmin Σ_z π(z) (p(z) − p(∅) − φ·z)²     with  Σ φ_t = p(x) − p(∅)
    π(z) ∝ 1 / (C(n,k) k (n−k))                  k of n words kept

    z  (T,) 1 for a kept word                    p  probability of the explained class

Words are deleted; ∅ is the text without words.  The sum constraint is exact, as an additional equation in

    ⎡ A  1 ⎤ ⎡φ⎤   ⎡       b       ⎤             A = Σ π z zᵀ
    ⎣ 1ᵀ 0 ⎦ ⎣λ⎦ = ⎣ p(x) − p(∅)   ⎦             b = Σ π z (p(z) − p(∅))

Unlike Captum's `KernelShap`, which handles one text and one z at a time, all texts are solved at once.  This is faster
for small networks; for a transformer the forward passes dominate.

Coalitions: the subsets z for which the model is run.  With S forward passes:

    2ⁿ − 2 ≤ S    every subset once: the values are exact
    else          k = 1, n−1, then 2, n−2 …: every subset of a size, while the size's share of the passes suffices;
                  the remaining passes are allocated to the sizes between, in proportion to their weight;
                  each subset is drawn together with its complement, and none twice

The `shap` package also starts with complete sizes and uses pairs (Covert & Lee 2021, arXiv:2012.01536, on pairs).  Ours
differs in the rest: the number of subsets per size is not random, no subset is drawn twice, and draws are stratified.

The sizes k and n−k are one stratum of P pairs, P = C(n,k), or half of it in the middle.  A pair has a rank 0 … P − 1 in
lexicographic order.  To draw m pairs, the ranks are divided into m intervals; one is drawn from each by a random key
of the text.  Pairs of an interval share their first words, so every combination of these gets its share of the draws.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Annotated, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import CleanPrediction, predict_without
from steadygaze.explainers.word_deletion import MOST_SAMPLES, PER_WORD, SubsetExplainer, Subsets
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import MAX_UNITS, Units, units_of, words_of

RANKED = 1 << 50
"""Most pairs of a size whose ranks are exact in double precision; larger sizes are drawn without ranks."""


@dataclass(frozen=True)
class CoalitionStrata:
    """Number of pairs of each size; depends only on the number of words."""

    complete_sizes: tuple[int, ...]
    """Sizes with every pair."""
    sampled_sizes: tuple[int, ...]
    """Sizes with random pairs."""
    samples: int
    """Number of random pairs over all these sizes."""


def coalitions(batch: Batch, samples: int, random_key: RandomKey, max_units: int = MAX_UNITS) -> Subsets:
    """`samples` subsets of each text, at least PER_WORD per word, without the empty and the whole text."""
    units = units_of(batch, max_units=max_units)
    words, keys = units.mask.sum(-1).tolist(), text_key(batch)
    rows = [_text_coalitions(n, samples, random_key, key) for n, key in zip(words, keys, strict=True)]
    max_units = max(len(share) for _, share in rows)
    subset_masks = np.zeros((len(rows), max(1, max_units), units.mask.shape[1]), np.bool_)
    share = np.zeros(subset_masks.shape[:2])
    for row, (mask, weight) in enumerate(rows):
        subset_masks[row, : len(mask), : mask.shape[1]], share[row, : len(weight)] = mask, weight
    return Subsets(units, torch.from_numpy(subset_masks).to(keys.device), torch.from_numpy(share).to(keys.device))


def _text_coalitions(
    n: int, samples: int, random_key: RandomKey, key: Tensor
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """(S,n), (S,)"""
    if n < 2:  # only the empty and the whole text
        return np.zeros((0, n), np.bool_), np.zeros(0)
    plan = strata(n, max(samples, PER_WORD * n) // 2)
    counts = {k: pairs(n, k) for k in plan.complete_sizes}
    weight = {k: _mass(n, k) / counts[k] for k in plan.complete_sizes}
    ranks = [np.arange(counts[k], dtype=np.float64) for k in plan.complete_sizes]
    if plan.samples:
        random_counts, random_weights = _allocate(
            n, plan, random_key.uniform(key.view(1), 1, dtype=torch.float64).item()
        )
        ranks += [_ranks(pairs(n, k), random_counts[k], random_key.child(k), key) for k in random_counts]
        counts, weight = {**counts, **random_counts}, {**weight, **random_weights}
    size = np.repeat(np.array([*counts], np.int64), [*counts.values()])
    masks = unranked(n, size, np.concatenate(ranks))
    unranked_rows = np.isin(size, [k for k in counts if pairs(n, k) > RANKED])
    if unranked_rows.any():
        masks[unranked_rows] = _random_subsets(n, size[unranked_rows], random_key.child(0), key)
    with_complements = np.stack([masks, ~masks], 1).reshape(-1, n)
    share = np.repeat(np.array([weight[k] for k in counts])[np.searchsorted([*counts], size)], 2)
    return with_complements, share / share.sum()


def _random_subsets(n: int, size: NDArray[np.int64], random_key: RandomKey, key: Tensor) -> NDArray[np.bool_]:
    """Random subsets of these sizes.  (S,) -> (S,n)"""
    order = random_key.uniform(key.view(1), len(size), n, dtype=torch.float64)[0].argsort(-1).cpu().numpy()
    masks = np.zeros((len(size), n), np.bool_)
    np.put_along_axis(masks, order, np.arange(n) < size[:, None], 1)
    return masks


def pairs(n: int, k: int) -> int:
    """Number of subsets of k words, each paired with its complement."""
    return comb(n, k) // (2 if 2 * k == n else 1)


def _mass(n: int, k: int) -> float:
    """The weight of all pairs of a size, up to a factor."""
    return (1 if 2 * k == n else 2) / (k * (n - k))


@lru_cache(maxsize=1024)
def strata(n: int, budget: int) -> CoalitionStrata:
    """Complete sizes, smallest first, while the share of the budget by weight covers all pairs of the size."""
    sizes = list(range(1, n // 2 + 1))
    while sizes:
        k = sizes[0]
        expected = budget * _mass(n, k) / sum(_mass(n, size) for size in sizes)
        if expected < pairs(n, k) - 1e-9:
            break
        budget -= pairs(n, k)
        sizes.pop(0)
    return CoalitionStrata(tuple(range(1, n // 2 + 1 - len(sizes))), tuple(sizes), budget if sizes else 0)


def _allocate(n: int, plan: CoalitionStrata, start: float) -> tuple[dict[int, int], dict[int, float]]:
    """Number of pairs of each size, and the weight of each pair; systematic sampling from `start` in [0, 1).

    A size with an expected count of at least one divides its weight among its pairs.  Other sizes may get no pair; a
    pair of theirs has the mean weight of all pairs.
    """
    mass = {k: _mass(n, k) for k in plan.sampled_sizes}
    total = sum(mass.values())
    expected = {k: plan.samples * mass[k] / total for k in plan.sampled_sizes}
    edges = np.floor(np.cumsum([0.0, *expected.values()]) + start).astype(np.int64)
    edges[-1] = edges[0] + plan.samples  # exact despite rounding of the sum
    counts = dict(zip(plan.sampled_sizes, np.diff(edges).tolist(), strict=True))
    mean = total / plan.samples
    weight = {k: mass[k] / counts[k] if expected[k] >= 1 else mean for k in plan.sampled_sizes if counts[k]}
    return {k: count for k, count in counts.items() if count}, weight


def _ranks(total: int, count: int, random_key: RandomKey, key: Tensor) -> NDArray[np.float64]:
    """Distinct ranks below `total`, one from each of `count` equal intervals.  -> (many,)"""
    if total > RANKED:
        return np.zeros(count)
    offset, *draws = random_key.uniform(key.view(1), 1 + count, dtype=torch.float64)[0].tolist()
    edges = np.floor(
        (np.arange(count + 1) + offset) * (total / count)
    )  # the offset gives all ranks the same probability
    edges[-1] = edges[0] + total  # exact despite rounding
    ranks: NDArray[np.float64] = np.floor(edges[:-1] + np.array(draws) * np.diff(edges)) % total
    return ranks


def unranked(n: int, size: NDArray[np.int64], rank: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Subsets of these sizes and ranks; those with the first word have the lowest ranks.  (S,), (S,) -> (S,n)"""
    choices, remaining, rank = _choices(n), size.copy(), rank.copy()
    masks = np.zeros((len(size), n), np.bool_)
    for word in range(n):
        with_it = np.where(remaining > 0, choices[n - word - 1, np.maximum(remaining - 1, 0)], 0.0)
        includes = rank < with_it
        masks[:, word] = includes
        rank -= np.where(includes, 0.0, with_it)
        remaining -= includes
    return masks


@lru_cache(maxsize=64)
def _choices(n: int) -> NDArray[np.float64]:
    """C(i, j) for i, j ≤ n; entries that are inexact in double precision are never used."""
    table = np.zeros((n + 1, n + 1))
    table[:, 0] = 1.0
    for i in range(1, n + 1):
        table[i, 1:] = np.minimum(table[i - 1, 1:] + table[i - 1, :-1], 1e300)
    return table


JITTER = 1e-10
"""Added to the diagonal of A, whose entries are about ½: two words may never be separated by the random subsets."""


@settings
class KernelShap(SubsetExplainer):
    """KernelSHAP: each word's Shapley value under deletion; sums to p(x) − p(∅) (Lundberg & Lee 2017)."""

    forward_passes: ClassVar[int] = 1024

    samples: Annotated[int, Field(ge=64, le=MOST_SAMPLES)] = 1024
    """Forward passes with deleted words per text."""

    def subsets(self, batch: Batch) -> Subsets:
        return coalitions(batch, self.samples, RandomKey(self.seed).child(2), self.max_units)

    def weigh(self, model: Model, batch: Batch, clean: CleanPrediction, units: Units) -> Tensor:
        all_rows = torch.arange(len(batch), device=batch.ids.device)
        empty = predict_without(model, batch, all_rows, words_of(batch), clean.target_class, self.output)

        def solve(subsets: Subsets, outputs: Tensor, rows: Tensor) -> Tensor:
            gains, total_gain = outputs - empty[rows].unsqueeze(-1), clean.value[rows] - empty[rows]
            return values(subsets.masks.double(), gains, subsets.share, total_gain, subsets.units.mask)

        return self.solve_groups(model, batch, clean, units, solve)


def values(z: Tensor, gains: Tensor, share: Tensor, total_gain: Tensor, mask: Tensor) -> Tensor:
    """φ.  (B,S,T), (B,S), (B,S), (B,), (B,T) -> (B,T)"""
    width = mask.shape[-1]
    weighted = (z * share.unsqueeze(-1)).mT
    system, right_side = z.new_zeros(len(z), width + 1, width + 1), z.new_zeros(len(z), width + 1)
    # Other positions have the equation φ = 0; a text without words has λ = 0.
    system[:, :width, :width] = weighted @ z + torch.where(mask, JITTER, 1.0).to(z.dtype).diag_embed()
    system[:, width, :width] = system[:, :width, width] = mask.to(z.dtype)
    system[:, width, width] = (~mask.any(-1)).to(z.dtype)
    right_side[:, :width] = (weighted @ gains.unsqueeze(-1)).squeeze(-1)
    right_side[:, width] = total_gain
    solution: Tensor = torch.linalg.solve(system, right_side)
    return solution[:, :width].masked_fill(~mask, 0.0)
