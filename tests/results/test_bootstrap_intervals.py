"""The bootstrap against cases worked by hand, the normal theory and SciPy."""

import math

import numpy as np
import pytest
from scipy import stats

from steadygaze.core.maths.macro_f1 import macro_f1_of
from steadygaze.results.evaluation import macro_f1_row
from steadygaze.results.intervals import bootstrap_mean, bootstrap_statistic, studentized_interval
from steadygaze.results.note import text_note
from steadygaze.results.row import mean_row

QUANTILE_ERROR = 0.1  # of a standard error: 2,000 resamples place a 2.5 % quantile to about 0.06


def test_two_values_give_the_interval_worked_by_hand():
    """The resampled mean of 0 and 1 is 0, ½ or 1 with probabilities ¼, ½, ¼: quantiles 2.5 %: 0, 30 %: ½."""
    assert bootstrap_mean([0, 1]) == (0, 1)
    assert bootstrap_mean([0, 1], level=0.4) == (0.5, 0.5)


def test_of_many_values_it_is_the_mean_and_two_standard_errors():
    values = np.random.default_rng(1).normal(3, 2, 1000)
    error = values.std() / math.sqrt(1000)
    low, high = bootstrap_mean(values.tolist())
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=2 * QUANTILE_ERROR * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=2 * QUANTILE_ERROR * error)


def test_it_agrees_with_scipy_on_skewed_values():
    values = np.random.default_rng(2).exponential(size=60)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(3))
    ours = bootstrap_mean(values.tolist(), resamples=20_000, level=0.95)
    error = values.std() / math.sqrt(60)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=QUANTILE_ERROR * error)


def test_one_seed_gives_one_interval_and_another_seed_another():
    values = [0.1, 0.5, 0.7, 0.2, 0.9, 0.35]
    assert (
        bootstrap_mean(values, seed=4) == bootstrap_mean(values, seed=4) != bootstrap_mean(values, seed=5, resamples=50)
    )


def test_many_batches_of_draws_are_all_used(monkeypatch):
    monkeypatch.setattr("steadygaze.results.intervals._CHUNK", 7)  # three resamples of two values at a time
    assert bootstrap_mean([0, 1]) == (0, 1)
    assert bootstrap_mean([0, 1], level=0.4) == (0.5, 0.5)


@pytest.mark.parametrize("values", [[0.3], [0.3] * 7])
def test_values_that_do_not_vary_give_an_interval_of_no_width(values):
    assert bootstrap_mean(values) == pytest.approx((0.3, 0.3), abs=1e-12)


@pytest.mark.parametrize(
    ("values", "level", "message"),
    [
        ([], 0.95, "no values"),
        ([1.0, math.nan, math.inf], 0.95, "2 of 3 values are not finite"),
        ([1.0], 95, "strictly between 0 and 1"),
    ],
)
def test_what_has_no_interval_is_refused(values, level, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_mean(values, level=level)


def test_of_a_mean_the_rows_give_what_the_values_give():
    """One generator and one order of draws: with as many resamples the two are the same interval."""
    values = np.random.default_rng(5).exponential(size=80)
    ours = bootstrap_statistic(lambda rows: values[rows].mean(1), 80, seed=6, resamples=2_000)
    assert ours == pytest.approx(bootstrap_mean(values.tolist(), seed=6), abs=1e-12)


def test_the_largest_of_two_rows_has_the_interval_worked_by_hand():
    """Of rows 0 and 1 the larger drawn is 0 with probability ¼, else 1: the 12.5 % quantile is 0, the 30 % one is 1."""
    assert bootstrap_statistic(lambda rows: rows.max(1), 2, level=0.75) == (0, 1)
    assert bootstrap_statistic(lambda rows: rows.max(1), 2, level=0.4) == (1, 1)


def test_the_interval_of_macro_f1_agrees_with_scipy():
    random = np.random.default_rng(7)
    truth = random.integers(3, size=120)
    predicted = np.where(random.random(120) < 0.7, truth, random.integers(3, size=120))

    def macro_f1(truth, predicted):
        hits = [
            2 * ((truth == c) & (predicted == c)).sum() / ((truth == c).sum() + (predicted == c).sum())
            for c in range(3)
        ]
        return float(np.mean(hits))

    theirs = stats.bootstrap(
        (truth, predicted), macro_f1, paired=True, vectorized=False, method="percentile", n_resamples=4_000, rng=random
    )
    draws = np.random.default_rng(0).integers(120, size=(50, 120))
    cells = np.stack([np.bincount(3 * truth[rows] + predicted[rows], minlength=9).reshape(3, 3) for rows in draws])
    assert macro_f1_of(cells) == pytest.approx([macro_f1(truth[rows], predicted[rows]) for rows in draws], abs=1e-12)
    ours = macro_f1_row(truth, predicted, 3).interval
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=2 * QUANTILE_ERROR * theirs.standard_error)


@pytest.mark.parametrize(
    ("statistic", "n", "level", "message"),
    [
        (lambda rows: rows.mean(1), 0, 0.95, "n is 0; there is nothing to draw from"),
        (lambda rows: rows.mean(1), 3, 1.0, "strictly between 0 and 1"),
        (lambda rows: np.full(len(rows), math.nan), 3, 0.95, "1000 of 1000 values are not finite"),
    ],
)
def test_rows_that_have_no_interval_are_refused(statistic, n, level, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_statistic(statistic, n, level=level)


def test_a_row_carries_the_mean_its_interval_and_its_settings():
    values = [0.0, 1.0, 1.0, 1.0]
    row = mean_row("comprehensiveness", values, {"split": "test"}, notes=(text_note("few"),), seed=3)
    assert (row.value, row.n, row.note) == (0.75, 4, "few")
    assert row.interval == studentized_interval(values, seed=3)
    low, high = studentized_interval(values, seed=3)
    assert mean_row("comprehensiveness", values, seed=3, bounds=(0, 1)).interval == (max(low, 0), min(high, 1))
    assert row.signature == "comprehensiveness|split:test|n:4"


def test_a_single_example_has_a_mean_and_no_interval():
    row = mean_row("accuracy", [1.0])
    assert (row.value, row.n, row.interval) == (1.0, 1, None)
