"""Functions of all subsets of n players, from a value for each subset: Shapley values, the best and the mean order.

    v (R,2ⁿ)         the value of each subset; bit j of its number is 1 if player j is in it

    Shapley values   φ_j = Σ_{S ∌ j} |S|! (n − |S| − 1)! / n! · (v(S ∪ j) − v(S))
    best order       max over all orders of Σ_k c_k v(the first k players)
    mean order       the mean over all orders = Σ_k c_k · mean of v over the subsets of k players

The best order is found by dynamic programming over subsets, which is exact (Held & Karp 1962):

    b(∅) = c_0 v(∅)         b(S) = c_|S| v(S) + max_{j ∈ S} b(S ∖ j)
"""

from functools import lru_cache
from math import comb

import torch
from torch import Tensor


def shapley_values(v: Tensor) -> Tensor:
    """(R,2ⁿ) -> (R,n)"""
    n, subsets = players(v), torch.arange(v.shape[-1], device=v.device)
    size = sum((subsets >> j) & 1 for j in range(n))
    weight = torch.tensor([1 / (n * comb(n - 1, k)) for k in range(n)], dtype=v.dtype, device=v.device)
    shares = []
    for j in range(n):
        without = subsets[(subsets >> j) & 1 == 0]
        shares.append(((v[:, without + (1 << j)] - v[:, without]) * weight[size[without]]).sum(-1))
    return torch.stack(shares, -1)


def best_order(v: Tensor, coefficients: Tensor) -> Tensor:
    """The largest sum that an order of the players reaches.  (R,2ⁿ), (n+1,) -> (R,)"""
    best = coefficients[0] * v[:, :1].expand_as(v).clone()
    last = torch.zeros(1, dtype=torch.long)
    for size in range(1, players(v) + 1):
        last, smaller = _of_size(players(v), size)
        best[:, last] = coefficients[size] * v[:, last] + best[:, smaller].amax(-1)
    return best[:, last].amax(-1)


def mean_order(v: Tensor, coefficients: Tensor) -> Tensor:
    """The mean of the sums of all orders.  (R,2ⁿ), (n+1,) -> (R,)"""
    n = players(v)
    by_size = [v[:, _of_size(n, size)[0]].mean(-1) if size else v[:, 0] for size in range(n + 1)]
    return torch.stack(by_size, -1) @ coefficients


def players(v: Tensor) -> int:
    """
    >>> players(torch.zeros(3, 8))
    3
    """
    return v.shape[-1].bit_length() - 1


@lru_cache(maxsize=64)
def _of_size(n: int, size: int) -> tuple[Tensor, Tensor]:
    """The subsets of `size` players, and those without one of these.  -> (M,), (M,size)"""
    subsets = [subset for subset in range(1 << n) if subset.bit_count() == size]
    smaller = [[subset ^ (1 << j) for j in range(n) if (subset >> j) & 1] for subset in subsets]
    return torch.tensor(subsets), torch.tensor(smaller)
