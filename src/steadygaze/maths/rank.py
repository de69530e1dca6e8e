"""Which tokens weigh most, and whether two rankings agree.

    top_k(w)    the k heaviest real tokens; of equals, the earlier
    overlap     |top_k(p) ∩ top_k(q)| / k             Hu et al. 2022 (SEAT), Definition 1
    pearson     cov(x, y) / (σ_x σ_y)
    kendall     τ_b = (C − D) / √(n_x n_y)            Kendall 1945

C, D: pairs of tokens that x and y order alike, and oppositely.  n_x, n_y: pairs that x, y do not tie.

Departs from the paper: a text of fewer than k words is measured on the words it has.  All are over the real tokens of
each row, (B,T) -> (B,).  A correlation is NaN where fewer than three words, or words all of one value, say nothing.
"""

import torch
from torch import Tensor

from steadygaze.maths.norms import unit

FEWEST = 3
"""Words that a correlation needs: any two points lie on a line."""


def top(weights: Tensor, mask: Tensor, k: int | Tensor) -> Tensor:
    """True on the min(k, words) heaviest real tokens; k: one for all, or (B,).  (…,T), (…,T) -> (…,T) bool"""
    if isinstance(k, int) and k < 1:
        raise ValueError(f"k is {k}; there is no top of fewer than 1 token")
    # topk breaks ties as it likes, and differently on a GPU; a stable sort keeps equals in reading order everywhere.
    lowest = torch.finfo(weights.dtype).min  # a real token of −∞ still comes before every masked one
    order = weights.clamp_min(lowest).masked_fill(~mask, -torch.inf).sort(dim=-1, descending=True, stable=True).indices
    taken = torch.arange(weights.shape[-1], device=weights.device) < _size(mask, k).unsqueeze(-1)
    return torch.zeros_like(mask).scatter(-1, order, taken)


def overlap(p: Tensor, q: Tensor, mask: Tensor, k: int | Tensor) -> Tensor:
    """Which part of the top tokens p and q share, in [0, 1]; 1 for a row without words.  (…,T) -> (…,)"""
    size = _size(mask, k)
    shared = (top(p, mask, k) & top(q, mask, k)).sum(-1).to(p.dtype)
    return torch.where(size > 0, shared / size.clamp_min(1), 1.0)


def pearson(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """How nearly y is a line of x, in [−1, 1] or NaN.  (B,T) -> (B,)"""
    correlation = (unit(_centred(x, mask)) * unit(_centred(y, mask))).sum(-1).clamp(-1.0, 1.0)
    return correlation.masked_fill(~(_varied(x, mask) & _varied(y, mask)), torch.nan)


def kendall(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """How nearly y orders the tokens as x does, in [−1, 1] or NaN.  No gradient.  (B,T) -> (B,)"""
    x_order, y_order = _order(x, mask), _order(y, mask)
    agreement = (x_order * y_order).sum((-1, -2), dtype=torch.int64)
    x_pairs, y_pairs = (order.abs().sum((-1, -2), dtype=torch.int64).to(x.dtype) for order in (x_order, y_order))
    correlation = agreement / (x_pairs * y_pairs).sqrt()
    enough = mask.sum(-1) >= FEWEST
    return correlation.clamp(-1.0, 1.0).masked_fill(~enough, torch.nan)  # a constant row is 0 / 0: NaN already


def _size(mask: Tensor, k: int | Tensor) -> Tensor:
    words = mask.sum(-1)
    return words.clamp_max(k) if isinstance(k, int) else torch.minimum(words, k)


def _centred(x: Tensor, mask: Tensor) -> Tensor:
    x = x.masked_fill(~mask, 0.0)
    mean = x.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp_min(1)
    return (x - mean).masked_fill(~mask, 0.0)


def _varied(x: Tensor, mask: Tensor) -> Tensor:
    """Asked of the values themselves: the variance of three times 0.1 is not exactly 0.  (B,T) -> (B,) bool"""
    highest = x.masked_fill(~mask, -torch.inf).amax(-1)
    lowest = x.masked_fill(~mask, torch.inf).amin(-1)
    return (highest > lowest) & (mask.sum(-1) >= FEWEST)


def _order(x: Tensor, mask: Tensor) -> Tensor:
    """The sign of x_i − x_j for each pair of real tokens, else 0.  (B,T) -> (B,T,T) int8"""
    first, second = x.unsqueeze(-1), x.unsqueeze(-2)
    sign = (first > second).to(torch.int8) - (first < second).to(torch.int8)
    return sign * (mask.unsqueeze(-1) & mask.unsqueeze(-2))
