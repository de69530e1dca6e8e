"""Comparison of a technique with vanilla over several settings: one denominator per setting, bootstrap over seeds.

    ratio        exp( 1/S Σ_s ln( mean_i t_si / mean_j v_sj ) )      geometric mean over settings s
    difference   1/S Σ_s ( mean_i t_si − mean_j v_sj )

t_si: a measure of the technique's model of seed i in setting s; v_sj: that of the vanilla model of seed j.  The
denominator of a setting is the mean over all its vanilla seeds, for every technique.  Intervals are 95 % percentile
intervals of a bootstrap stratified by setting: in each draw the seeds of the technique and those of vanilla are drawn
anew, with replacement and independently of each other, within every setting (Efron & Tibshirani 1993, §13.3).
With five seeds they cover less than 95 %: bench/stability_coverage.py.

    paired              exp( 1/S Σ_s 1/n_s Σ_i d_si ),   d_si = ln( t_si / v_si )
    paired_difference        1/S Σ_s 1/n_s Σ_i d_si,     d_si = t_si − v_si

Here v_si is the vanilla model that the technique's model of seed i starts from.  Both have t intervals over seeds: the
variance is 1/S² Σ_s var(d_s) / n_s, the degrees of freedom are those of Welch and Satterthwaite.  What is special to a
vanilla seed is in t_si and v_si alike, and cancels.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Numbers = NDArray[np.float64]
Values = Mapping[str, Sequence[float]]
"""Setting -> one number per seed."""
DRAWS = 2000
MIN_VALUE = 1e-12
"""Collapsed attention never shifts: its logarithm is taken of this."""


class Estimate(NamedTuple):
    value: float
    low: float
    high: float


def ratio(technique: Values, vanilla: Values) -> Estimate:
    def statistic(ours: Numbers, plain: Numbers) -> Numbers:
        return np.log(np.maximum(ours, MIN_VALUE)) - np.log(np.maximum(plain, MIN_VALUE))

    return Estimate(*np.exp(_estimate(technique, vanilla, statistic)))


def difference(technique: Values, vanilla: Values) -> Estimate:
    return Estimate(*_estimate(technique, vanilla, np.subtract))


def paired(technique: Values, vanilla: Values) -> Estimate:
    """The values of both are of the same seeds, in the same order; two seeds or more in every setting."""
    logs = {
        s: np.log(np.maximum(technique[s], MIN_VALUE)) - np.log(np.maximum(vanilla[s], MIN_VALUE)) for s in technique
    }
    return Estimate(*np.exp(t_interval(logs)))


def paired_difference(technique: Values, vanilla: Values) -> Estimate:
    return Estimate(*t_interval({s: np.subtract(technique[s], vanilla[s]) for s in technique}))


def t_interval(values: Mapping[str, Numbers]) -> Numbers:
    """Mean over settings of the means over seeds, and its 95 % t interval."""
    parts = np.array([numbers.var(ddof=1) / len(numbers) for numbers in values.values()]) / len(values) ** 2
    free = np.array([len(numbers) - 1 for numbers in values.values()])
    total, half = parts.sum(), 0.0
    if total > 0:
        half = float(student.ppf(0.975, total**2 / (parts**2 / free).sum())) * total**0.5
    value = np.mean([numbers.mean() for numbers in values.values()])
    return np.array([value, value - half, value + half])


def _estimate(technique: Values, vanilla: Values, statistic: Callable[[Numbers, Numbers], Numbers]) -> Numbers:
    settings = sorted(technique)
    ours = {s: np.asarray(technique[s], np.float64) for s in settings}
    plain = {s: np.asarray(vanilla[s], np.float64) for s in settings}
    value = np.mean([statistic(ours[s].mean(), plain[s].mean()) for s in settings])
    drawn = [statistic(_means(ours[s], f"technique {s}"), _means(plain[s], f"vanilla {s}")) for s in settings]
    return np.array([value, *np.quantile(np.mean(drawn, 0), [0.025, 0.975])])


def _means(values: Numbers, stream: str) -> Numbers:
    """Means of so many samples with replacement; each stream draws seeds of its own, the same in every call."""
    rng = np.random.default_rng(zlib.crc32(stream.encode()))
    means: Numbers = values[rng.integers(0, len(values), (DRAWS, len(values)))].mean(1)
    return means
