"""Statistics over texts and seeds: means, pseudo-values, sign-flip tests and Holm's correction.

    v[s,i]       one number for the model of seed s and text i; NaN if it does not apply
    mean         1/S Σ_s mean_i v[s,i]
    difference   v − v′, seed by seed and text by text
    interval     bootstrap over seeds and texts (results/seed_intervals.py)
    macro-F1     a score of a set: every resample scores its own texts, seed by seed; then as above
    p            sign-flip test: d_i = mean over seeds of v[s,i] − v′[s,i];  p is the share of random signs for which
                 |Σ ±d_i| ≥ |Σ d_i|.  Few texts: all 2^N signs; else SIGN_FLIPS random ones and the observed one
    Holm         the k-th smallest of m p-values times (m − k + 1), not below the previous one, at most 1

p is about texts: whether these models would differ on other texts of the same kind.  It is valid for any number of
seeds; a test over seeds needs six of them to reach 0.05 at all (2 / 2^6).  It is not about retrained models: the
interval of the difference covers both.  A difference is significant (`comparison_table.py`) if the corrected p is small
*and* the interval excludes 0.

Error rates at 5 % come from a simulation with equal techniques, 3 seeds, 300 texts, and a seed effect of a tenth of the
variation between texts.  They are 45 % for p alone, 16 % for the plain bootstrap interval, 2 % for the stretched one.
The last stays below 6 % for 2 to 10 seeds and larger seed effects.  One seed compares two models only.
studies/interval_coverage measures how often the intervals of means and of macro-F1 contain the true value.

Fisher 1935 for sign flips; Holm 1979.  Tested by tests/study/test_statistics.py.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.maths.macro_f1 import macro_f1_of_resamples
from steadygaze.results.comparison import Difference
from steadygaze.results.intervals import Interval, Values, bootstrap_scores, chunks
from steadygaze.results.seed_intervals import mean_intervals, seed_stretch

Name = TypeVar("Name", bound=Hashable)
Outcomes = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The label and one model's predicted class of each text, as indices.  (N,), (N,)"""

SIGN_FLIPS = 9_999
"""Resamples of a sign-flip test: the smallest p is 1 / 10,000."""
EXACT = 13
"""Texts for which all patterns of signs are tried: 2^13 is less than SIGN_FLIPS."""
_ROUNDING = 1e-12  # of Σ|d|: sums that are mathematically equal count as equal


def seed_means(values: Values) -> Values:
    """The mean of every seed over its texts; NaN if it has none.  (S,N) -> (S,)"""
    finite = np.isfinite(values)
    count = finite.sum(-1)
    total = np.where(finite, values, 0.0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def mean(values: Values) -> float:
    """(S,N) -> one number"""
    return float(seed_means(values).mean())


def macro_f1_interval(
    models: Sequence[Outcomes], minus: Sequence[Outcomes] = (), *, stretched: bool = True
) -> Interval | None:
    """The interval of the mean macro-F1 of one model per seed, over seeds and texts.

    `minus`: the models of a baseline with the same seeds and texts; the interval is then that of the difference.
    """
    seeds, texts = len(models), len(models[0][0])
    classes = 1 + max(int(codes.max()) for codes in (*sum(models, ()), *sum(minus, ())))

    def scores(draws: NDArray[np.int64]) -> Values:
        ours, theirs = (
            [macro_f1_of_resamples(draws, label, predicted, classes) for label, predicted in several]
            for several in (models, minus)
        )
        return (np.stack(ours, -1) - (np.stack(theirs, -1) if theirs else 0.0))[:, None]

    (interval,) = bootstrap_scores(scores, (seeds, texts), stretch=seed_stretch(seeds) if stretched else 1.0)
    return interval


def tested_differences(differences: Mapping[Name, Values]) -> dict[Name, Difference]:
    """Mean, interval and sign-flip test of differences; Holm's method corrects for all of them together.  {(S,N)}"""
    intervals, p_values = mean_intervals(differences), _p_values(differences)
    tested = {}
    for name, values in differences.items():
        value = mean(values)
        agree = int((np.sign(seed_means(values)) == np.sign(value)).sum())
        tested[name] = Difference(value, intervals[name], agree, *p_values.get(name, (None, None)))
    return tested


def _p_values(differences: Mapping[Name, Values]) -> dict[Name, tuple[float, float]]:
    """p and corrected p, for measures with a value per text."""
    names = [name for name, values in differences.items() if values.shape[1] > 1]
    if not names:
        return {}
    p = sign_flips(np.stack([across_seeds(differences[name]) for name in names])).tolist()
    return dict(zip(names, zip(p, holm(p), strict=True), strict=True))


def across_seeds(differences: Values) -> Values:
    """The mean of every text over the seeds that have it.  (S,N) -> (N,)"""
    return seed_means(differences.T)


def sign_flips(differences: Values, *, seed: int = 0, resamples: int = SIGN_FLIPS) -> Values:
    """The sign-flip p of each row; NaN if it has no values.  (M,N) -> (M,)"""
    finite = np.where(np.isfinite(differences), differences, 0.0)
    observed = np.abs(finite.sum(-1)) - _ROUNDING * np.abs(finite).sum(-1)  # (M,)
    texts = differences.shape[1]
    if texts <= EXACT:
        p = (np.abs(_all_signs(texts) @ finite.T) >= observed).sum(0) / 2**texts
    else:
        random = np.random.default_rng(seed)
        count = np.zeros(len(finite))
        for size in chunks(resamples, texts):
            signs = 2.0 * random.integers(2, size=(size, texts), dtype=np.int8) - 1
            count += (np.abs(signs @ finite.T) >= observed).sum(0)
        p = (count + 1) / (resamples + 1)
    return np.where(np.isfinite(differences).any(-1), p, np.nan)


def holm(p: Sequence[float]) -> list[float]:
    """Holm-corrected p-values; NaN values are not counted.

    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    """
    corrected = np.array(p, dtype=np.float64)
    order = np.argsort(corrected, kind="stable")[: int(np.isfinite(corrected).sum())]  # NaN comes last
    scaled = corrected[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in corrected]


def _all_signs(texts: int) -> Values:
    """All patterns of signs.  -> (2^N,N)"""
    bits = (np.arange(2**texts)[:, None] >> np.arange(texts)) & 1
    return 2 * bits.astype(np.float64) - 1
