"""Comparison of a technique with vanilla over several settings: one denominator per setting, t intervals over seeds.

    ratio        exp( 1/S Σ_s ln( mean_i t_si / mean_j v_sj ) )      geometric mean over settings s
    difference   1/S Σ_s ( mean_i t_si − mean_j v_sj )

t_si: a measure of the technique's model of seed i in setting s; v_sj: that of the vanilla model of seed j.  The
denominator of a setting is the mean over all its vanilla seeds, for every technique.

    paired              exp( 1/S Σ_s 1/n_s Σ_i d_si ),   d_si = ln( t_si / v_si )
    paired_difference        1/S Σ_s 1/n_s Σ_i d_si,     d_si = t_si − v_si

Here v_si is the vanilla model that the technique's model of seed i starts from.  What is special to a vanilla seed is
in t_si and v_si alike, and cancels.

All have 95 % t intervals over seeds.  The variance is 1/S² times the sum over independent samples: var / n for a mean,
var / (n · mean²) for its logarithm.  The degrees of freedom are those of Welch and Satterthwaite.  p is of the same t.
studies/stability_coverage measures the coverage.  These intervals are about other seeds on the same data sets.

    prediction   exp( m ± t_{S−1} · s · √(1 + 1/S) ),   m, s: mean and standard deviation of ln( mean t_s / mean v_s )

It is about another data set of the same kind: where its ratio lies with 95 % probability, if logarithms of ratios vary
normally between data sets.  With S = 3 the half width is 4.97 s, with S = 4 it is 3.56 s.  Ratios of few seeds
vary between data sets at least as much as between seeds: s² is not below the mean over s of the variances of
ln( mean t_s / mean v_s ).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Numbers = NDArray[np.float64]
Values = Mapping[str, Sequence[float]]
"""Setting -> one number per seed."""
MIN_VALUE = 1e-12
"""Collapsed attention never shifts: its logarithm is taken of this."""


class Estimate(NamedTuple):
    value: float
    low: float
    high: float
    p: float
    """Two-sided p of no difference, without correction."""


class Mean(NamedTuple):
    """The mean of a sample, or its logarithm."""

    value: float
    variance: float
    free: int


def ratio(technique: Values, vanilla: Values) -> Estimate:
    return _exponential(_unpaired(technique, vanilla, _log_mean))


def difference(technique: Values, vanilla: Values) -> Estimate:
    return _unpaired(technique, vanilla, _mean)


def paired(technique: Values, vanilla: Values) -> Estimate:
    """The values of both are of the same seeds, in the same order; two seeds or more in every setting."""
    return paired_logs({s: _log(technique[s]) - _log(vanilla[s]) for s in technique})


def paired_logs(logs: Mapping[str, Numbers]) -> Estimate:
    """The ratio of logarithms of ratios, one per seed."""
    return _exponential(_over_settings([[_mean(numbers)] for numbers in logs.values()]))


def paired_difference(technique: Values, vanilla: Values) -> Estimate:
    return _over_settings([[_mean(np.subtract(technique[s], vanilla[s]))] for s in technique])


def prediction(technique: Values, vanilla: Values) -> Estimate:
    """The ratio, and where that of another data set lies with 95 % probability; two settings or more."""
    pairs = [(_log_mean(technique[s]), _log_mean(vanilla[s])) for s in technique]
    logs, count = np.array([ours.value - plain.value for ours, plain in pairs]), len(pairs)
    between_seeds = np.mean([ours.variance + plain.variance for ours, plain in pairs])
    deviation = np.sqrt(max(logs.var(ddof=1), between_seeds))
    half = float(student.ppf(0.975, count - 1) * deviation * np.sqrt(1 + 1 / count))
    return _exponential(Estimate(logs.mean(), logs.mean() - half, logs.mean() + half, float("nan")))


def over_settings(technique: Values, vanilla: Values) -> Estimate:
    """The difference, with a 95 % t interval over settings instead of seeds; two settings or more."""
    return _over_settings([[_mean([float(np.mean(technique[s]) - np.mean(vanilla[s])) for s in technique])]])


def _unpaired(technique: Values, vanilla: Values, mean: Callable[[Sequence[float]], Mean]) -> Estimate:
    return _over_settings([[mean(technique[s]), _negative(mean(vanilla[s]))] for s in technique])


def _over_settings(settings: Sequence[Sequence[Mean]]) -> Estimate:
    """The mean over settings of sums of independent means."""
    value = sum(part.value for parts in settings for part in parts) / len(settings)
    variances = np.array([part.variance for parts in settings for part in parts]) / len(settings) ** 2
    free = np.array([part.free for parts in settings for part in parts])
    total = variances.sum()
    if not total > 0:  # equal numbers; one seed has no variance
        return Estimate(value, value, value, float(value == 0)) if total == 0 else Estimate(value, *[float("nan")] * 3)
    degrees, error = total**2 / (variances**2 / free).sum(), float(total) ** 0.5
    half = float(student.ppf(0.975, degrees)) * error
    return Estimate(value, value - half, value + half, float(2 * student.sf(abs(value) / error, degrees)))


def _mean(numbers: Sequence[float] | Numbers) -> Mean:
    sample = np.asarray(numbers, np.float64)
    variance = sample.var(ddof=1) / len(sample) if len(sample) > 1 else float("nan")
    return Mean(float(sample.mean()), float(variance), len(sample) - 1)


def _log_mean(numbers: Sequence[float] | Numbers) -> Mean:
    value, variance, free = _mean(numbers)
    value = max(value, MIN_VALUE)
    return Mean(float(np.log(value)), variance / value**2, free)


def _negative(mean: Mean) -> Mean:
    return mean._replace(value=-mean.value)


def _log(numbers: Sequence[float]) -> Numbers:
    logs: Numbers = np.log(np.maximum(numbers, MIN_VALUE))
    return logs


def _exponential(estimate: Estimate) -> Estimate:
    value, low, high = map(float, np.exp(estimate[:3]))
    return Estimate(value, low, high, estimate.p)
