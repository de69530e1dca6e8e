"""Shapley values, the best and the mean order against all orders of the players, and against numbers worked by hand."""

from itertools import permutations

import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor

from steadygaze.core.maths.subsets import best_order, mean_order, shapley_values


def game(n: int, seed: int = 0, rows: int = 3) -> Tensor:
    return torch.randn(rows, 1 << n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def growths(v: Tensor, n: int) -> Tensor:
    """The values of the first 0, 1 … n players of every order.  -> (R,n!,n+1)"""
    orders = []
    for order in permutations(range(n)):
        subset, path = 0, [v[:, 0]]
        for player in order:
            subset |= 1 << player
            path.append(v[:, subset])
        orders.append(torch.stack(path, -1))
    return torch.stack(orders, 1)


def test_shapley_values_of_gloves_worked_by_hand():
    """Player 0 has a left glove, 1 and 2 a right one each; a pair is worth 1: 2/3, 1/6, 1/6."""
    worth = torch.tensor([[0.0, 0, 0, 1, 0, 1, 0, 1]], dtype=torch.float64)
    assert shapley_values(worth)[0].tolist() == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def test_best_and_mean_order_worked_by_hand():
    """v: ∅ 0, {0} 1, {1} 2, {0,1} 4.  One player counts 3, two count 1: 3·2 + 4, or 3·1 + 4."""
    v, coefficients = torch.tensor([[0.0, 1, 2, 4]]), torch.tensor([5.0, 3, 1])
    best, weights = best_order(v, coefficients)
    assert best.item() == 10
    assert weights.tolist() == [[1, 2]]
    assert mean_order(v, coefficients).item() == 8.5


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_all_orders_give_the_same_numbers(n):
    v, coefficients = game(n), torch.arange(n + 1, dtype=torch.float64).sin()
    paths = growths(v, n)
    sums = paths @ coefficients
    best, weights = best_order(v, coefficients)
    assert torch.allclose(best, sums.amax(1))
    index = [list(permutations(range(n))).index(tuple(order)) for order in weights.argsort(descending=True).tolist()]
    assert torch.allclose(sums[range(len(v)), index], best)
    assert torch.allclose(mean_order(v, coefficients), sums.mean(1))
    shares = torch.zeros(len(v), n, dtype=torch.float64)
    for index, order in enumerate(permutations(range(n))):
        shares[:, list(order)] += paths[:, index].diff(dim=-1)
    assert torch.allclose(shapley_values(v), shares / paths.shape[1])


@given(strategies.integers(0, 99), strategies.integers(2, 6))
def test_shapley_values_are_efficient_symmetric_and_linear(seed, n):
    v, other = game(n, seed), game(n, seed + 100)
    values = shapley_values(v)
    assert torch.allclose(values.sum(-1), v[:, -1] - v[:, 0])
    assert torch.allclose(shapley_values(2 * v - other + 7), 2 * values - shapley_values(other))
    swapped = torch.tensor([(s & ~3) | ((s & 1) << 1) | ((s >> 1) & 1) for s in range(1 << n)])
    assert torch.allclose(shapley_values(v[:, swapped])[:, [1, 0]], values[:, :2])
