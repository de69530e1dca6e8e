"""The attention farthest from the model's own that leaves a prediction of two classes where it was.  Exact.

    max_w̃  JSD(w, w̃)    subject to  |p(w̃) − p(w)| ≤ ε,   p the probability of the second class

With a linear decoder the margin z_1 − z_0 is linear in w̃: the constraint is l ≤ Σ_t w̃_t v_t ≤ u, v_t the margin with
all attention on token t, l and u the margins of p − ε and p + ε.  JSD is convex in w̃, so that it is largest at a corner
of what the simplex and the two bounds leave; and such a corner has weight on two tokens at most:

    w̃ = λ e_i + (1 − λ) e_j,    λ as large as  l ≤ λ v_i + (1 − λ) v_j ≤ u  allows,    over all ordered pairs i ≠ j
    JSD = f(w_i, λ) + f(w_j, 1 − λ) + ½ ln 2 (1 − w_i − w_j),    f(p, q) = ½ p ln(2p/(p + q)) + ½ q ln(2q/(p + q))

Ours; what audit/probe/adversary.py searches for.  Pinned by tests/audit/probe/test_adversary.py.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

MOST = 1 << 22
"""Pairs of tokens at once: 32 MB of doubles, and some ten of those."""


@dataclass(frozen=True, slots=True)
class Found:
    """Another attention of each text, in double precision."""

    weights: Tensor  # (B,T)
    distance: Tensor  # (B,) JSD from the model's own, in nats
    change: Tensor  # (B,) how far the prediction moved


def farthest(weights: Tensor, logits: Tensor, reach: Tensor, mask: Tensor, allowed: float) -> Found:
    """(B,T), (B,2), (B,T,2), (B,T); the model's own where a text has no two words."""
    many = max(1, MOST // max(1, mask.shape[1]) ** 2)
    parts = [slice(start, start + many) for start in range(0, len(mask), many)]
    found = [_farthest(weights[some], logits[some], reach[some], mask[some], allowed) for some in parts]
    return Found(*(torch.cat([getattr(one, name) for one in found]) for name in ("weights", "distance", "change")))


def _farthest(own: Tensor, logits: Tensor, reach: Tensor, mask: Tensor, allowed: float) -> Found:
    pull, margin = reach[..., 1] - reach[..., 0], logits[:, 1] - logits[:, 0]
    corner = (margin - (own * pull).sum(-1)).unsqueeze(-1) + pull  # v
    chance = margin.sigmoid()
    low, high = (edge.clamp(0.0, 1.0).logit() for edge in (chance - allowed, chance + allowed))
    share = _share(corner, low, high).masked_fill(~_pairs(mask), torch.nan)  # λ (B,T,T)
    distance = _apart(own, share).nan_to_num(nan=-1.0)
    best = distance.flatten(1).argmax(-1)
    row, i, j = torch.arange(len(own), device=own.device), best // own.shape[1], best % own.shape[1]
    some = distance[row, i, j] > 0
    weights = torch.zeros_like(own)
    weights[row, i], weights[row, j] = share[row, i, j], 1 - share[row, i, j]
    weights = torch.where(some.unsqueeze(-1), weights, own)
    moved = (margin + ((weights - own) * pull).sum(-1)).sigmoid() - chance
    return Found(weights, distance[row, i, j].clamp_min(0.0), moved.abs())


def _share(corner: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The largest λ for each pair, NaN where there is none.  (B,T), (B,), (B,) -> (B,T,T)"""
    first, second = corner.unsqueeze(-1), corner.unsqueeze(-2)  # v_i, v_j
    ends = torch.stack([(edge[:, None, None] - second) / (first - second) for edge in (low, high)])
    least, most = ends.amin(0).clamp_min(0.0), ends.amax(0).clamp_max(1.0)
    found = most.masked_fill(least > most, torch.nan)
    inside = (first >= low[:, None, None]) & (first <= high[:, None, None])
    return torch.where(inside, 1.0, found.masked_fill(first == second, torch.nan))


def _apart(own: Tensor, share: Tensor) -> Tensor:
    """(B,T), (B,T,T) -> (B,T,T)"""
    first, second = own.unsqueeze(-1), own.unsqueeze(-2)
    return _half(first, share) + _half(second, 1 - share) + math.log(2) / 2 * (1 - first - second)


def _half(p: Tensor, q: Tensor) -> Tensor:
    """f(p, q), 0 where both are."""
    both = (p + q).clamp_min(torch.finfo(p.dtype).tiny)
    return (torch.xlogy(p, 2 * p / both) + torch.xlogy(q, 2 * q / both)) / 2


def _pairs(mask: Tensor) -> Tensor:
    """Two words, not one twice.  (B,T) -> (B,T,T)"""
    other = ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    return mask.unsqueeze(-1) & mask.unsqueeze(-2) & other
