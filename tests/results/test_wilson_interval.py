"""Intervals of proportions against scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from steadygaze.auditing.audit_report import _row
from steadygaze.properties.audit_case import Finding
from steadygaze.results.evaluation import macro_f1_row
from steadygaze.results.intervals import wilson_interval
from steadygaze.results.row import mean_row


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 8), (8, 8), (3, 10), (399, 400)])
def test_intervals_equal_those_of_scipy(successes, n, level):
    expected = binomtest(successes, n).proportion_ci(level, method="wilson")
    assert wilson_interval(successes, n, level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_all_right_of_eight_by_hand():
    """p = 1: the lower end is n/(n + z²)."""
    assert wilson_interval(8, 8)[0] == pytest.approx(8 / (8 + 1.959963984540054**2), abs=1e-12)
    assert wilson_interval(8, 8)[1] == 1


def test_a_share_of_texts_has_a_wilson_interval():
    assert mean_row("accuracy", [1.0] * 8, proportion=True).interval == wilson_interval(8, 8)


@pytest.mark.parametrize(
    "measure", ["accuracy", "label-flip/noise", "first-sentence/rationales", "first-sentence-pick"]
)
def test_an_audit_has_the_interval_that_its_measure_declares(measure):
    assert _row(Finding(measure, torch.ones(8)), {}).interval == wilson_interval(8, 8)
    assert _row(Finding("top-k-overlap/noise", torch.ones(8)), {}).interval == (1, 1)


def test_other_measures_keep_their_bootstrap():
    """Zeros of a divergence are not outcomes of a trial."""
    assert mean_row("jensen-shannon/noise", [0.0] * 8).interval == (0, 0)
    low, high = mean_row(
        "label-flip/seeds", [0.0, 0.5, 1.0] * 3, proportion=True
    ).interval  # means over pairs of models
    assert (low, high) != wilson_interval(4, 9)


def test_macro_f1_without_errors_has_no_interval():
    label = np.array([0, 1] * 4)
    assert macro_f1_row(label, label, 2).interval is None
    wrong = label.copy()
    wrong[0] = 1
    low, high = macro_f1_row(label, wrong, 2).interval
    assert math.isfinite(low)
    assert low < high


@pytest.mark.parametrize(("successes", "n"), [(-1, 3), (4, 3), (0, 0)])
def test_impossible_counts_are_refused(successes, n):
    with pytest.raises(ValueError, match="not a proportion"):
        wilson_interval(successes, n)
