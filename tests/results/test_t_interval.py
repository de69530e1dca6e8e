"""Student's interval of a mean, against SciPy."""

import numpy as np
import pytest
from scipy import stats

from steadygaze.results.intervals import t_interval


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize("n", [2, 5, 30])
def test_the_interval_is_that_of_scipy(n: int, level: float) -> None:
    values = np.random.default_rng(n).normal(3, 2, n)
    expected = stats.t.interval(level, n - 1, loc=values.mean(), scale=stats.sem(values))
    assert t_interval(values, level) == pytest.approx(expected, rel=1e-12)


def test_one_value_has_an_interval_of_width_zero_and_no_values_are_refused() -> None:
    assert t_interval([0.5]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="no values"):
        t_interval([])
