"""Bounds of smoothing against enumeration, scipy and hand-worked numbers."""

from itertools import combinations, product
from math import prod

import numpy as np
import pytest
from scipy.stats import binomtest

from steadygaze.core.maths.smoothing_bounds import (
    binomial_bounds,
    is_separated,
    product_total_variation,
    uniform_total_variation,
)


def exact_total_variation(first: list[set[int]], second: list[set[int]]) -> float:
    """Half the sum of absolute differences over all rows of words."""
    words = [a | b for a, b in zip(first, second, strict=True)]

    def mass(sets: list[set[int]], row: tuple[int, ...]) -> float:
        return prod(1 / len(s) if word in s else 0.0 for s, word in zip(sets, row, strict=True))

    return sum(abs(mass(first, row) - mass(second, row)) for row in product(*words)) / 2


def random_sets(random: np.random.Generator, positions: int) -> list[set[int]]:
    return [set(random.choice(6, random.integers(1, 6), replace=False).tolist()) for _ in range(positions)]


def test_the_total_variation_of_two_sets_is_exact() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        (first,), (second,) = random_sets(random, 1), random_sets(random, 1)
        assert uniform_total_variation(first, second) == pytest.approx(
            exact_total_variation([first], [second]), abs=1e-12
        )


def test_the_product_bound_is_never_below_the_enumerated_value() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        first, second = random_sets(random, 3), random_sets(random, 3)
        distances = np.array([uniform_total_variation(a, b) for a, b in zip(first, second, strict=True)])
        assert product_total_variation(distances) >= exact_total_variation(first, second) - 1e-12


def test_the_product_bound_is_exact_for_sets_of_equal_size() -> None:
    first, second = [{1, 2, 3}, {1, 2}], [{2, 3, 4}, {2, 5}]
    bound = product_total_variation(np.array([1 / 3, 1 / 2]))
    assert bound == pytest.approx(1 - 2 / 3 * 1 / 2)
    assert bound == pytest.approx(exact_total_variation(first, second))


def test_only_the_largest_distances_count_with_few_changes() -> None:
    distances = np.array([0.1, 0.5, 0.0, 0.2])
    assert product_total_variation(distances, 2) == pytest.approx(1 - 0.5 * 0.8)
    assert product_total_variation(distances, 0) == 0
    assert product_total_variation(np.zeros(0)) == 0
    assert product_total_variation(np.array([1.0, 0.2])) == 1


def test_free_distances_count_at_every_position_beside_the_changes() -> None:
    random = np.random.default_rng(3)
    for _ in range(200):
        distances = random.random(4)
        free = distances * random.choice([0.0, 0.5, 1.0], 4)
        for changes in range(5):
            values = [
                1 - prod(1 - np.where(np.isin(range(4), chosen), distances, free))
                for chosen in combinations(range(4), changes)
            ]
            assert product_total_variation(distances, changes, free) == pytest.approx(max(values))
    assert product_total_variation(np.array([0.5, 1.0]), 1, np.array([0.2, 1.0])) == 1


@pytest.mark.parametrize("count", [0, 1, 17, 49, 50])
def test_binomial_bounds_are_those_of_clopper_and_pearson(count: int) -> None:
    low, high = binomial_bounds(np.array([count]), 50, 0.03)
    expected = binomtest(count, 50).proportion_ci(0.97, "exact")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_bounds_of_several_events_share_the_error() -> None:
    together = binomial_bounds(np.array([10, 40, 0]), 50, 0.03)
    assert together[0][1] == binomial_bounds(np.array([40]), 50, 0.01)[0][0]


def test_bounds_miss_the_truth_at_most_as_often_as_stated() -> None:
    random, truth = np.random.default_rng(2), np.array([0.1, 0.6])
    missed = 0
    for _ in range(2000):
        low, high = binomial_bounds((random.random((40, 2)) < truth).sum(0), 40, 0.2)
        missed += bool(((low > truth) | (high < truth)).any())
    assert 0.05 < missed / 2000 <= 0.2


def test_separation_needs_twice_the_shift() -> None:
    low, high, chosen = np.array([0.7, 0.1]), np.array([0.9, 0.3]), np.array([True, False])
    assert is_separated(low, high, chosen, 0.19)
    assert not is_separated(low, high, chosen, 0.2001)
    assert is_separated(low, high, np.array([True, True]), 1.0)  # no other word is left
