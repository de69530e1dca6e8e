"""Means, intervals and tests against numbers worked by hand, enumerations and SciPy."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from steadygaze.core.maths.macro_f1 import confusion_counts, macro_f1_of
from steadygaze.results.intervals import bootstrap_means
from steadygaze.results.seed_intervals import by_model, seed_stretch
from steadygaze.study.seed_statistics import (
    across_seeds,
    holm,
    macro_f1_interval,
    mean,
    seed_means,
    sign_flips,
)

NAN = np.nan


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def test_the_mean_is_that_of_the_seeds_means():
    """Seed 0: (1 + 3) / 2 = 2, the third text having no number.  Seed 1: (4 + 5 + 9) / 3 = 6.  Together 4."""
    values = np.array([[1.0, 3.0, NAN], [4.0, 5.0, 9.0]])
    assert seed_means(values).tolist() == [2.0, 6.0]
    assert mean(values) == 4.0
    assert across_seeds(values).tolist() == [2.5, 4.0, 9.0]


def test_a_seed_without_any_number_has_no_mean():
    assert np.isnan(seed_means(np.array([[NAN, NAN]]))).all()


def test_two_seeds_of_one_number_each():
    """Drawn twice out of {0, 1}: both 0 in a quarter of all draws, both 1 in a quarter; so 0 to 1."""
    assert bootstrap_means(np.array([[[0.0], [1.0]]])) == [(0.0, 1.0)]


def test_without_numbers_there_is_no_interval():
    assert bootstrap_means(np.full((1, 2, 4), NAN)) == [None]


def test_with_one_seed_it_is_the_usual_bootstrap():
    values = np.exp(drawn(60))
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    (ours,) = bootstrap_means(values[None, None], resamples=40_000)
    assert ours is not None
    assert np.allclose(ours, tuple(theirs), atol=0.02 * (theirs.high - theirs.low))


def test_two_levels_are_drawn_as_an_enumeration_draws_them():
    """All 2² draws of seeds times all 3³ of texts.  Between two of its 108 values an end may lie on either side."""
    values = drawn(2, 3)
    draws = product(product(range(2), repeat=2), product(range(3), repeat=3))
    every = [values[np.ix_(seeds, texts)].mean() for seeds, texts in draws]
    ((low, high),) = bootstrap_means(values[None], resamples=50_000)
    assert np.quantile(every, 0.015) <= low <= np.quantile(every, 0.035)
    assert np.quantile(every, 0.965) <= high <= np.quantile(every, 0.985)


def test_seeds_that_are_all_alike_add_nothing():
    values = drawn(1, 50)
    assert np.allclose(bootstrap_means(np.repeat(values, 4, axis=0)[None]), bootstrap_means(values[None]), rtol=1e-12)


def test_seeds_that_differ_make_it_wider():
    texts, seeds = drawn(1, 200), np.array([[-1.0], [0.0], [1.0]])
    narrow, wide = bootstrap_means(np.stack([texts + 0 * seeds, texts + seeds]))
    assert wide[1] - wide[0] > 4 * (narrow[1] - narrow[0])


def test_all_numbers_are_drawn_alike():
    """The same texts and seeds for all: what differs by a constant does so in every draw."""
    values = drawn(3, 40)
    interval, other, gap = bootstrap_means(np.stack([values, values + 2, (values + 2) - values]))
    assert np.allclose(np.subtract(other, interval), 2)
    assert np.allclose(gap, 2)
    assert bootstrap_means(values[None]) == [interval]


def test_texts_without_a_number_are_left_out():
    values = drawn(2, 80)
    holed = values.copy()
    holed[:, ::2] = NAN
    (low, high), (low_, high_) = bootstrap_means(values[None, :, 1::2])[0], bootstrap_means(holed[None])[0]
    assert np.allclose([low, high], [low_, high_], atol=0.15 * (high - low))


def test_few_seeds_are_stretched_as_students_t_is():
    """t(1) at 97.5 % is 12.706, z 1.960, √(2 / 1) = 1.414: 9.17.  Of {0, 1}: ½ ± 9.17 · ½.  One seed: not at all."""
    assert seed_stretch(2) == pytest.approx(9.168, abs=1e-3)
    assert seed_stretch(3) == pytest.approx(4.3027 / 1.95996 * 1.5**0.5, abs=1e-3)
    assert 1 < seed_stretch(1000) < 1.01
    ((low, high),) = bootstrap_means(np.array([[[0.0], [1.0]]]), stretch=seed_stretch(2))
    assert (low, high) == (pytest.approx(0.5 - 4.584, abs=1e-3), pytest.approx(0.5 + 4.584, abs=1e-3))
    values = drawn(1, 1, 30)
    assert bootstrap_means(values, stretch=seed_stretch(1)) == bootstrap_means(values)


def test_macro_f1_is_resampled_over_seeds_and_texts_as_an_enumeration_does():
    """All 2² draws of seeds times all 4⁴ of texts; the stretch of two seeds is 9.17."""
    label, predicted = np.array([0, 0, 1, 1]), np.array([[0, 1, 1, 1], [0, 1, 0, 0]])
    other = np.array([[0, 0, 1, 0], [1, 1, 1, 0]])

    def every(stretch: float, minus: np.ndarray | None) -> list[float]:
        draws = []
        for texts in product(range(4), repeat=4):
            rows = list(texts)
            ours, theirs = (
                [0.0, 0.0] if several is None else [f1(label[rows], one[rows]) for one in several]
                for several in (predicted, minus)
            )
            scores = np.subtract(ours, theirs)
            for seeds in product(range(2), repeat=2):
                draws.append(scores.mean() + stretch * (scores[list(seeds)].mean() - scores.mean()))
        return draws

    def f1(truth: np.ndarray, guess: np.ndarray) -> float:
        return float(macro_f1_of(confusion_counts(truth, guess, 2)))

    models, others = [(label, one) for one in predicted], [(label, one) for one in other]
    for stretched, minus in ((False, None), (True, None), (True, other)):
        interval = macro_f1_interval(models, others if minus is not None else (), stretched=stretched)
        draws = every(seed_stretch(2) if stretched else 1.0, minus)
        assert interval is not None
        for end, share in zip(interval, (0.025, 0.975), strict=True):
            low, high = np.quantile(draws, [share - 0.012, share + 0.012])
            assert low - 1e-9 <= end <= high + 1e-9


@pytest.mark.slow
def test_seeds_and_texts_decide_whether_the_interval_of_macro_f1_contains_the_truth():
    """Texts of one difficulty, seeds right in 70, 80 or 90 % of them: 60 comparisons of 3 seeds on 60 texts."""
    generator, held, held_by_seeds = np.random.default_rng(6), 0, 0
    for _ in range(60):
        label = generator.integers(2, size=60)
        right = generator.random((3, 60)) < generator.choice([0.7, 0.8, 0.9], size=(3, 1))
        models = [(label, np.where(row, label, 1 - label)) for row in right]
        interval = macro_f1_interval(models)
        assert interval is not None
        held += interval[0] <= 0.8 <= interval[1]
        ((low, high),) = bootstrap_means(right.mean(-1)[None, :, None], resamples=200)
        held_by_seeds += low <= 0.8 <= high
    assert held >= 57
    assert held_by_seeds < 51


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("seeds", [3, 6])
def test_techniques_that_do_not_differ_are_seldom_called_different_whatever_the_seed_does(seeds):
    """Texts differ by 0.5 and by 0.5 more in each model, the mean of a model by 0.2 with its seed; 500 times."""
    generator = np.random.default_rng(4)
    parts = [0.2 * generator.normal(size=(500, seeds, 1)), 0.5 * generator.normal(size=(500, 1, 60))]
    gaps = sum(parts) + 0.5 * generator.normal(size=(500, seeds, 60))
    plain, stretched = (
        np.mean([not low <= 0 <= high for low, high in bootstrap_means(gaps, stretch=stretch, resamples=500)])
        for stretch in (1.0, seed_stretch(seeds))
    )
    assert stretched <= 0.07
    assert plain > stretched


def test_what_each_model_adds_to_the_distance_between_models():
    """Of three: θ = (1 + 2 + 6) / 3 = 3.  Without the first 6 is left: 9 − 2 · 6 = −3; then 9 − 4 and 9 − 2."""
    pairs = {(0, 1): np.array([1.0]), (0, 2): np.array([2.0]), (1, 2): np.array([6.0])}
    assert by_model(pairs, 3).tolist() == [[-3.0], [5.0], [7.0]]
    assert mean(by_model(pairs, 3)) == 3.0
    assert by_model({(0, 1): np.array([4.0, 5.0])}, 2).tolist() == [[4.0, 5.0]]


@pytest.mark.slow
def test_groups_of_models_alike_are_seldom_called_different_by_the_distances_within_them():
    """Each of 5 + 5 models is its own amount away from all others, whatever the text; 400 times at 5 %."""
    generator, places, wrong = np.random.default_rng(5), list(combinations(range(5), 2)), 0
    for _ in range(400):
        own, texts = generator.gamma(2.0, size=(2, 5)), generator.normal(size=(2, 10, 40))
        distances, other = (
            by_model({(i, j): own[k, i] + own[k, j] + 0.3 * texts[k, n] for n, (i, j) in enumerate(places)}, 5)
            for k in range(2)
        )
        ((low, high),) = bootstrap_means((distances - other)[None], stretch=seed_stretch(5), resamples=400)
        wrong += not low <= 0 <= high
    assert wrong <= 0.08 * 400


def test_signs_of_three_texts():
    """1 + 2 + 3 = 6: of the 8 patterns +++ and −−− are as far from 0; 2 / 8.

    3 + 1 − 1 = 3: |±3 ± 1 ± 1| is 5, 3, 3, 1 and the same again; 6 / 8.  A text without a number adds nothing.
    """
    assert sign_flips(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, -1.0]])).tolist() == [0.25, 0.75]
    assert sign_flips(np.array([[1.0, 2.0, 3.0, NAN]])).tolist() == [0.25]


def test_sign_flips_of_zeros_give_p_1_and_of_nan_give_nan():
    assert sign_flips(np.zeros((1, 30))).tolist() == [1.0]
    assert sign_flips(np.zeros((1, 3))).tolist() == [1.0]
    assert np.isnan(sign_flips(np.full((1, 30), NAN))).all()


@pytest.mark.parametrize(("texts", "within"), [(10, 1e-12), (60, 0.015)])
def test_p_is_that_of_a_paired_permutation_test(texts, within):
    ours, theirs = drawn(texts) + 0.3, drawn(texts, seed=1)
    result = stats.permutation_test(
        (ours, theirs),
        lambda x, y, axis: (x - y).mean(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=9_999,
        rng=np.random.default_rng(2),
    )
    assert sign_flips((ours - theirs)[None])[0] == pytest.approx(result.pvalue, abs=within)


def test_p_does_not_depend_on_the_order_or_on_who_is_subtracted():
    gap = drawn(1, 12)
    assert sign_flips(gap) == sign_flips(gap[:, ::-1]) == sign_flips(-gap)


def test_p_is_under_a_tenth_in_a_tenth_of_the_cases_where_nothing_differs():
    """500 times; five standard deviations of a share of 500 are 0.067."""
    p = sign_flips(np.random.default_rng(3).laplace(size=(500, 40)))
    assert abs((p < 0.1).mean() - 0.1) < 0.067
    assert 0.4 < p.mean() < 0.6


def test_p_is_never_0():
    assert sign_flips(np.ones((1, 400))).tolist() == [1 / 10_000]


def test_holm_by_hand():
    """Sorted: 0.005 · 4 = 0.02;  0.01 · 3 = 0.03;  0.03 · 2 = 0.06;  0.04 · 1 = 0.04, never below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9, 0.6]) == [1.0, 1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_holm_does_not_count_what_was_not_tested():
    result = holm([0.01, NAN, 0.04])
    assert result[0] == pytest.approx(0.02)
    assert np.isnan(result[1])
    assert result[2] == 0.04
