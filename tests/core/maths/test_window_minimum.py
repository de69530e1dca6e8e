"""The minimum over windows against enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.core.maths.window_minimum import window_minimum


@given(
    st.integers(0, 3),
    st.lists(st.integers(1, 3), min_size=1, max_size=6),
    st.none() | st.integers(0, 4),
    st.integers(0, 2**32 - 1),
)
def test_the_minimum_is_that_of_all_choices(side: int, sizes: list[int], changes: int | None, seed: int) -> None:
    random = np.random.default_rng(seed)
    padded = [*[1] * side, *sizes, *[1] * side]
    costs = [random.normal(size=padded[t : t + 2 * side + 1]) for t in range(len(sizes))]

    def value(choice: tuple[int, ...]) -> float:
        row = (*[0] * side, *choice, *[0] * side)
        return float(sum(cost[row[t : t + 2 * side + 1]] for t, cost in enumerate(costs)))

    choices = [c for c in product(*map(range, sizes)) if changes is None or sum(x > 0 for x in c) <= changes]
    lowest, choice = window_minimum(costs, changes)
    assert lowest == pytest.approx(min(map(value, choices)), abs=1e-12)
    assert value(tuple(choice)) == pytest.approx(lowest, abs=1e-12)
    assert tuple(choice) in choices
