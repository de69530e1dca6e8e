"""The noise of repeated answers, by hand and by simulation."""

import math

import numpy as np
import pytest

from steadygaze.results.health import ProblemKind
from steadygaze.results.query_noise import NOISY, QueryNoise


def two_classes(*values):
    return np.stack([1 - np.array(values), np.array(values)], 1)


def test_noise_by_hand():
    """|Δp| of three pairs: 0.2, 0.1, 0.1 and 0.  Deviation of the first text: (0.6, 0.4, 0.5) -> 0.1."""
    noise = QueryNoise.of([two_classes(0.6, 0.9), two_classes(0.4, 0.9), two_classes(0.5, 0.9)])
    assert noise.change == pytest.approx((0.2 + 0.1 + 0.1) / 6, abs=1e-4)
    assert noise.spread == pytest.approx(math.sqrt(0.01 / 2), abs=1e-4)
    assert (noise.texts, noise.draws, noise.flips) == (2, 3, 1)
    assert noise.is_noisy
    assert "2 texts asked 3 times: probabilities differ by 0.067 on average" in noise.sentence
    assert "the label of 1 text changes" in noise.sentence


@pytest.mark.parametrize("size", [0.05, 0.3])
def test_the_size_of_uniform_noise_is_that_of_theory(size):
    """U(−a, a): the standard deviation is a/√3, and the mean difference of two answers 2a/3."""
    draw = np.random.default_rng(0)
    noise = QueryNoise.of([two_classes(*(0.5 + draw.uniform(-size, size, 4000))) for _ in range(3)])
    assert noise.spread == pytest.approx(size / math.sqrt(3), rel=0.03)
    assert noise.change == pytest.approx(2 * size / 3, rel=0.03)


def test_equal_answers_are_no_noise_and_small_differences_are_no_problem():
    same = two_classes(0.3, 0.8)
    assert QueryNoise.of([same, same]).sentence == "2 texts asked twice: the same answers"
    almost = QueryNoise.of([same, same + 0.9 * NOISY * np.array([[1, -1], [-1, 1]])])
    assert not almost.is_noisy
    assert almost.health.ok
    assert "differ by 0.009 on average" in almost.sentence


def test_noise_and_answers_without_a_label_are_known_bad_states():
    health = QueryNoise(8, 3, 0.2, 0.15, 2, unanswered=0.25).health
    assert [problem.kind for problem in health] == [ProblemKind.UNANSWERED, ProblemKind.NOISY]
    assert "names no label in 25.0 % of its answers" in health.sentence
    assert "differ by 0.200 on average (8 texts, each asked 3 times; labels change in 25 %)" in health.sentence
    assert type(health).from_list(health.to_list()) == health
