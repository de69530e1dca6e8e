"""KernelSHAP: Shapley values, as the solution of a weighted least squares.

Lundberg & Lee, "A Unified Approach to Interpreting Model Predictions", NeurIPS 2017 (arXiv:1705.07874), Theorem 2.

    φ = argmin Σ_z π(z) (p(z) − p(∅) − φ·z)²     with  Σ φ_t = p(x) − p(∅)
    π(z) ∝ 1 / (C(n,k) k (n−k))                  k of n words kept

    z  (T,) 1 where a word is kept               p  how likely the class asked about is

Words are deleted and the text closes up; ∅ has none left.  The sum is exact, not a heavy weight: one more equation in

    ⎡ A  1 ⎤ ⎡φ⎤   ⎡       b       ⎤             A = Σ π z zᵀ
    ⎣ 1ᵀ 0 ⎦ ⎣λ⎦ = ⎣ p(x) − p(∅)   ⎦             b = Σ π z (p(z) − p(∅))

Short texts have every z read once: their values are exact.  Of longer ones explainers/kernel_shap.py chooses which z
are
read: whole sizes first, then pairs of a subset and its complement, without replacement.

Departs from the paper: nothing known.  Not Captum's `KernelShap`, which takes one text and one z at a time through
Python: all texts are solved at once.  That saves most of the time with a small network, and little with a transformer,
whose own passes are the cost.  Pinned by tests/explain/test_kernel_shap.py.

Coalitions: the subsets of a text's words that KernelSHAP reads.

Lundberg & Lee 2017 (arXiv:1705.07874) weigh a subset of k of n words by π ∝ 1 / (C(n,k) k (n−k)).  With S readings:

    2ⁿ − 2 ≤ S    every subset once: the values are exact
    else          k = 1, n−1, then 2, n−2 …: every subset of the size, while the readings that fall to the size suffice;
                  the rest of the readings is dealt out to the sizes between, in proportion to their weight,
                  and drawn without replacement, each subset together with the words it leaves out

Whole sizes first, and pairs, are what the `shap` package does (Covert & Lee 2021, arXiv:2012.01536, on pairs).  Ours
differs in the rest: how many subsets a size gets is not left to chance, and no subset is drawn twice.

The sizes k and n−k are one stratum of P pairs, P = C(n,k), or half of it in the middle.  A pair has a rank 0 … P − 1 in
lexicographic order, so distinct pairs are distinct ranks.  Ranks are drawn from the text's own chance.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Annotated, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import clean_prediction, predict_without
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.lime import MOST_SAMPLES, PER_WORD, Subsets, groups, saliency
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import (
    MOST_UNITS,
    take_rows,
    text_key,
    units_of,
    warn_segments,
    words_of,
)

RANKED = 1 << 50
"""Pairs of a size that can be ranked in doubles; of more, none is ever drawn twice."""


@dataclass(frozen=True)
class CoalitionStrata:
    """How many pairs of each size are read, by the number of words alone."""

    whole: tuple[int, ...]
    """Sizes of which every pair is read."""
    rest: tuple[int, ...]
    """Sizes of which some are drawn."""
    left: int
    """Pairs drawn among those in all."""


def coalitions(batch: Batch, samples: int, chance: RandomKey, most: int = MOST_UNITS) -> Subsets:
    """`samples` readings of each text, four for each word at least; the empty and the whole text are not among them."""
    units = units_of(batch, most=most)
    words, keys = units.mask.sum(-1).tolist(), text_key(batch)
    rows = [_of_text(n, samples, chance, key) for n, key in zip(words, keys, strict=True)]
    most = max(len(share) for _, share in rows)
    kept = np.zeros((len(rows), max(1, most), units.mask.shape[1]), np.bool_)
    share = np.zeros(kept.shape[:2])
    for row, (own, weight) in enumerate(rows):
        kept[row, : len(own), : own.shape[1]], share[row, : len(weight)] = own, weight
    return Subsets(units, torch.from_numpy(kept).to(keys.device), torch.from_numpy(share).to(keys.device))


def _of_text(n: int, samples: int, chance: RandomKey, key: Tensor) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """(S,n), (S,)"""
    if n < 2:  # no subset but the empty and the whole
        return np.zeros((0, n), np.bool_), np.zeros(0)
    known = strata(n, max(samples, PER_WORD * n) // 2)
    many = {k: pairs(n, k) for k in known.whole}
    weight = {k: _mass(n, k) / many[k] for k in known.whole}
    ranks = [np.arange(many[k], dtype=np.float64) for k in known.whole]
    if known.left:
        drawn, of_drawn = _dealt(n, known, chance.uniform(key.view(1), 1, dtype=torch.float64).item())
        ranks += [_ranks(pairs(n, k), drawn[k], chance.child(k), key) for k in drawn]
        many, weight = {**many, **drawn}, {**weight, **of_drawn}
    size = np.repeat(np.array([*many], np.int64), [*many.values()])
    kept = unranked(n, size, np.concatenate(ranks))
    outright = np.isin(size, [k for k in many if pairs(n, k) > RANKED])
    if outright.any():
        kept[outright] = _drawn(n, size[outright], chance.child(0), key)
    both = np.stack([kept, ~kept], 1).reshape(-1, n)
    share = np.repeat(np.array([weight[k] for k in many])[np.searchsorted([*many], size)], 2)
    return both, share / share.sum()


def _drawn(n: int, size: NDArray[np.int64], chance: RandomKey, key: Tensor) -> NDArray[np.bool_]:
    """Random subsets of these sizes.  (S,) -> (S,n)"""
    order = chance.uniform(key.view(1), len(size), n, dtype=torch.float64)[0].argsort(-1).cpu().numpy()
    kept = np.zeros((len(size), n), np.bool_)
    np.put_along_axis(kept, order, np.arange(n) < size[:, None], 1)
    return kept


def pairs(n: int, k: int) -> int:
    """Subsets of k words or of n − k, each with what it leaves out."""
    return comb(n, k) // (2 if 2 * k == n else 1)


def _mass(n: int, k: int) -> float:
    """The weight of all pairs of a size, up to a factor."""
    return (1 if 2 * k == n else 2) / (k * (n - k))


@lru_cache(maxsize=1024)
def strata(n: int, budget: int) -> CoalitionStrata:
    """Whole sizes, smallest first, while the pairs that fall to a size by its weight are as many as it has."""
    sizes = list(range(1, n // 2 + 1))
    while sizes:
        k = sizes[0]
        due = budget * _mass(n, k) / sum(_mass(n, size) for size in sizes)
        if due < pairs(n, k) - 1e-9:
            break
        budget -= pairs(n, k)
        sizes.pop(0)
    return CoalitionStrata(tuple(range(1, n // 2 + 1 - len(sizes))), tuple(sizes), budget if sizes else 0)


def _dealt(n: int, known: CoalitionStrata, start: float) -> tuple[dict[int, int], dict[int, float]]:
    """Pairs of each size, and what each of them weighs; systematic sampling from `start` in [0, 1).

    A size that is due one pair or more has its own weight, shared among those drawn; of smaller sizes, which may get
    none, a pair weighs what one reading stands for.
    """
    mass = {k: _mass(n, k) for k in known.rest}
    total = sum(mass.values())
    due = {k: known.left * mass[k] / total for k in known.rest}
    edges = np.floor(np.cumsum([0.0, *due.values()]) + start).astype(np.int64)
    edges[-1] = edges[0] + known.left  # whatever rounding did to the sum
    many = dict(zip(known.rest, np.diff(edges).tolist(), strict=True))
    weight = {k: mass[k] / many[k] if due[k] >= 1 else total / known.left for k in known.rest if many[k]}
    return {k: count for k, count in many.items() if count}, weight


def _ranks(of: int, many: int, chance: RandomKey, key: Tensor) -> NDArray[np.float64]:
    """So many different ones below `of`.  -> (many,)"""
    if of > RANKED:
        return np.zeros(many)
    if of < 4 * many:
        return chance.uniform(key.view(1), of, dtype=torch.float64)[0].argsort()[:many].double().cpu().numpy()
    drawn = (chance.uniform(key.view(1), 2 * many + 32, dtype=torch.float64)[0] * of).floor().cpu().numpy()
    _, first = np.unique(drawn, return_index=True)
    found: NDArray[np.float64] = drawn[np.sort(first)[:many]]
    return found


def unranked(n: int, size: NDArray[np.int64], rank: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The subsets of these sizes and ranks, those with the first word first.  (S,), (S,) -> (S,n)"""
    choices, left, rank = _choices(n), size.copy(), rank.copy()
    kept = np.zeros((len(size), n), np.bool_)
    for word in range(n):
        with_it = np.where(left > 0, choices[n - word - 1, np.maximum(left - 1, 0)], 0.0)
        taken = rank < with_it
        kept[:, word] = taken
        rank -= np.where(taken, 0.0, with_it)
        left -= taken
    return kept


@lru_cache(maxsize=64)
def _choices(n: int) -> NDArray[np.float64]:
    """C(i, j) for i, j ≤ n; what no double holds exactly is never used."""
    table = np.zeros((n + 1, n + 1))
    table[:, 0] = 1.0
    for i in range(1, n + 1):
        table[i, 1:] = np.minimum(table[i - 1, 1:] + table[i - 1, :-1], 1e300)
    return table


JITTER = 1e-10
"""On the diagonal of A, whose entries are about ½: should chance never have told two words apart."""


@settings
class KernelShap(Explainer):
    """KernelSHAP: each word's Shapley value, words deleted; sums to what all of them change (Lundberg & Lee 2017)."""

    deletes_words: ClassVar[bool] = True
    forward_passes: ClassVar[int] = 1024

    samples: Annotated[int, Field(ge=64, le=MOST_SAMPLES)] = 1024
    """How often the text is read with words taken out."""
    max_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""
    seed: int = 0
    """What is drawn is drawn from it and the text."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen = clean_prediction(model, batch, target)
        every = torch.arange(len(batch), device=batch.ids.device)
        empty = predict_without(model, batch, every, words_of(batch), seen.target_class)
        units = units_of(batch, most=self.max_units)
        warn_segments(units, self.max_units)
        found = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows in groups(batch, self.samples):
            part, aim = take_rows(batch, rows), seen.target_class[rows]
            drawn = coalitions(part, self.samples, RandomKey(self.seed).child(2), self.max_units)
            gained = drawn.read(model, part, aim) - empty[rows].unsqueeze(-1)
            solved = values(
                drawn.kept.double(), gained, drawn.share, seen.probability[rows] - empty[rows], drawn.units.mask
            )
            found[rows, : solved.shape[1]] = solved
        return saliency(units, found, batch, seen.logits)


def values(z: Tensor, gained: Tensor, share: Tensor, whole: Tensor, mask: Tensor) -> Tensor:
    """φ.  (B,S,T), (B,S), (B,S), (B,), (B,T) -> (B,T)"""
    width = mask.shape[-1]
    weighted = (z * share.unsqueeze(-1)).mT
    system, right = z.new_zeros(len(z), width + 1, width + 1), z.new_zeros(len(z), width + 1)
    # Beside the words every place has the equation φ = 0; and a text without any word, λ = 0.
    system[:, :width, :width] = weighted @ z + torch.where(mask, JITTER, 1.0).to(z.dtype).diag_embed()
    system[:, width, :width] = system[:, :width, width] = mask.to(z.dtype)
    system[:, width, width] = (~mask.any(-1)).to(z.dtype)
    right[:, :width] = (weighted @ gained.unsqueeze(-1)).squeeze(-1)
    right[:, width] = whole
    solved: Tensor = torch.linalg.solve(system, right)
    return solved[:, :width].masked_fill(~mask, 0.0)
