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
    size = ((subsets[:, None] >> torch.arange(n, device=v.device)) & 1).sum(-1)
    weight = torch.tensor([1 / (n * comb(n - 1, k)) for k in range(n)], dtype=v.dtype, device=v.device)
    shares = []
    for j in range(n):
        without = subsets[(subsets >> j) & 1 == 0]
        shares.append(((v[:, without + (1 << j)] - v[:, without]) * weight[size[without]]).sum(-1))
    return torch.stack(shares, -1)


def best_order(v: Tensor, coefficients: Tensor) -> tuple[Tensor, Tensor]:
    """The largest sum that an order of the players reaches, and weights of the players in this order.

    (R,2ⁿ), (n+1,) -> (R,), (R,n) from n for the first player to 1 for the last
    """
    n = players(v)
    best, last = coefficients[0] * v[:, :1].expand_as(v).clone(), torch.zeros_like(v, dtype=torch.long)
    for size in range(1, n + 1):
        subsets, smaller, members = (part.to(v.device) for part in _of_size(n, size))
        before, choice = best[:, smaller].max(-1)
        best[:, subsets] = coefficients[size] * v[:, subsets] + before
        last[:, subsets] = members.expand(len(v), -1, -1).gather(-1, choice.unsqueeze(-1)).squeeze(-1)
    weights = torch.zeros(len(v), n, dtype=v.dtype, device=v.device)
    subset = torch.full((len(v), 1), (1 << n) - 1, device=v.device)
    for weight in range(1, n + 1):
        player = last.gather(-1, subset)
        weights.scatter_(-1, player, weight)
        subset = subset - (1 << player)
    return best[:, -1], weights


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
def _of_size(n: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The subsets of `size` players, those without one of these, and these players.  -> (M,), (M,size), (M,size)"""
    subsets = [subset for subset in range(1 << n) if subset.bit_count() == size]
    members = [[j for j in range(n) if (subset >> j) & 1] for subset in subsets]
    smaller = [[subset ^ (1 << j) for j in inside] for subset, inside in zip(subsets, members, strict=True)]
    return torch.tensor(subsets), torch.tensor(smaller), torch.tensor(members)
