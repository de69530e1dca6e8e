"""The studentized bootstrap against a case worked by hand, Student's interval, and known distributions."""

import numpy as np
import pytest

from steadygaze.results.intervals import studentized_interval, t_interval

TRIALS = 300


def test_two_values_give_the_interval_worked_by_hand():
    """Of 0 and 1: θ = ½, s = ½; the resamples (0, 0), (1, 1) have s* = 0 and so t* = ∓½ / 0.05 = ∓10."""
    low, high = studentized_interval([0.0, 1.0])
    assert (low, high) == pytest.approx((0.5 - 10 * 0.5, 0.5 + 10 * 0.5))


def test_of_many_normal_values_it_is_students_interval():
    values = np.random.default_rng(1).normal(3, 2, 400)
    low, high = t_interval(values)
    assert studentized_interval(values, resamples=20_000) == pytest.approx((low, high), abs=0.15 * (high - low) / 4)


def test_a_ratio_with_one_divisor_is_a_mean():
    values = np.random.default_rng(2).exponential(size=40)
    scaled = studentized_interval(values, np.full(40, 4.0))
    assert np.array(scaled) * 4 == pytest.approx(studentized_interval(values))


def test_values_proportional_to_the_divisors_give_an_interval_of_no_width():
    per = np.array([1.0, 2.0, 4.0])
    assert studentized_interval(0.25 * per, per) == (0.25, 0.25)


def test_it_does_not_depend_on_scale_and_order_of_signs():
    random = np.random.default_rng(3)
    u, v = random.normal(1, 1, 50), random.uniform(1, 2, 50)
    low, high = studentized_interval(u, v)
    assert studentized_interval(1000 * u, 1000 * v) == pytest.approx((low, high))
    assert studentized_interval(-u, v) == pytest.approx((-high, -low), abs=0.1 * (high - low))


@pytest.mark.parametrize("shape", ["skewed", "zeros", "ratio"])
def test_it_covers_the_truth_of_skewed_values(shape):
    """Of 300 trials at 95 %, fewer than 0.92 have a probability of 1 %."""
    random, hits = np.random.default_rng(4), 0
    for trial in range(TRIALS):
        per = random.beta(1, 2, 60) if shape == "ratio" else np.ones(60)
        values = {
            "skewed": random.exponential(size=60),
            "zeros": random.exponential(size=60) * (random.random(60) < 0.3),
        }
        u = values.get(shape, per * random.uniform(0.2, 1, 60))
        truth = {"skewed": 1.0, "zeros": 0.3}.get(shape, 0.6)
        low, high = studentized_interval(u, per, seed=trial, resamples=500)
        hits += low <= truth <= high
    assert hits >= 0.92 * TRIALS
