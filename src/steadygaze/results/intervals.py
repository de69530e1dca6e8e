"""Confidence intervals: two bootstraps, Student's interval of a mean, and Wilson's of a proportion.

Studentized bootstrap (Efron 1979, 1982) of a ratio of sums over texts; for a mean, v = 1:

    ratio      θ = Σ_i u_i / Σ_i v_i
    error      s = √(n/(n − 1) Σ_i (u_i − θ v_i)²) / |Σ_i v_i|
    resample   t* = (θ* − θ) / max(s*, s/10)
    interval   [θ − s q₊, θ − s q₋], with the (1 ± level)/2 quantiles q of t*

With skewed values and with many zeros it covers more often than percentiles do (studies/interval_coverage).  s/10 is
ours: resamples with hardly any variation would make the interval infinite.

Percentile bootstrap (Efron 1979) of means over texts and seeds:

    v[s,i]     one number for the model of seed s and text i; NaN if it does not apply
    mean       1/S Σ_s mean_i v[s,i]
    resample   N texts drawn with replacement, the same for every seed, and S seeds drawn with replacement
    interval   the (1 ± level)/2 quantiles of the means of many resamples

`stretch` multiplies the difference between the mean of the drawn seeds and the mean of all seeds.

Owen 2007, "The pigeonhole bootstrap" (arXiv:0712.1111).  Departs from Owen: the stretch, which is ours.

Constant values give an interval of width 0: it describes these texts, not unseen ones.

Wilson's score interval (1927) of a proportion: unlike a bootstrap, it has a width if all n outcomes are equal.

center ± half, with z the (1 + level)/2 quantile of the normal distribution and p the observed proportion:

center = (p + z²/2n) / (1 + z²/n)        half = z √(p(1 − p)/n + z²/4n²) / (1 + z²/n)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Interval = tuple[float, float]
LEVEL = 0.95
RESAMPLES = 2_000
LEAST_ERROR = 0.1
"""Least standard error of a resample, as a share of that of the sample."""
_CHUNK = 2_000_000  # numbers per chunk: 16 MB for every N
_KEPT = 500_000  # numbers of resamples that are kept: 4 MB


def bootstrap_mean(
    values: Sequence[float], *, seed: int = 0, level: float = LEVEL, resamples: int = RESAMPLES
) -> Interval:
    """The interval of the mean over texts; the same seed gives the same interval."""
    sample = finite_values(values)
    interval = bootstrap_means(sample[None, None], seed=seed, level=level, resamples=resamples)[0]
    assert interval is not None  # the values are finite
    return interval


def studentized_interval(
    values: Sequence[float] | Values,
    per: Sequence[float] | Values | None = None,
    *,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Interval:
    """The interval of the sum of the values divided by the sum of `per`; None: of their mean.  The sum is not 0."""
    u = finite_values(values)
    v = np.ones(len(u)) if per is None else finite_values(per)
    value, error = _ratio(u, v)
    if not error:
        return value, value
    rest = u - value * v  # its ratio is 0: the sums of squares below lose no digits
    products, n = np.stack([rest, v, rest * rest, rest * v, v * v], -1), len(u)
    parts = []
    for counts in drawn_counts(n, resamples, seed):
        total, divisor, squares, mixed, divisors = (counts @ products).T
        divisor = np.where(divisor == 0, np.nan, divisor)
        shift = total / divisor  # θ* − θ
        square = np.maximum(squares - 2 * shift * mixed + shift**2 * divisors, 0) * n / max(n - 1, 1)
        parts.append(shift / np.maximum(np.sqrt(square) / np.abs(divisor), LEAST_ERROR * error))
    draws = np.concatenate(parts)
    low, high = percentile_bounds(draws[np.isfinite(draws)], level)
    return float(value - high * error), float(value - low * error)


def _ratio(u: Values, v: Values) -> tuple[float, float]:
    """The ratio of the sums and its standard error; the divisor is not 0.  (n,), (n,)"""
    n, divisor = len(u), v.sum()
    value = u.sum() / divisor
    square = ((u - value * v) ** 2).sum() * n / max(n - 1, 1)
    return float(value), float(np.sqrt(square) / np.abs(divisor))


def bootstrap_means(
    values: Values, *, stretch: float = 1.0, seed: int = 0, level: float = LEVEL, resamples: int = RESAMPLES
) -> list[Interval | None]:
    """The intervals of M means over seeds and texts, with the same resamples; None: all values are NaN.  (M,S,N)"""
    measures, seeds, texts = values.shape

    def means(draws: NDArray[np.int64]) -> Values:
        flat = _resampled_means(values.reshape(measures * seeds, texts), draws)
        return flat.reshape(len(draws), measures, seeds)

    return bootstrap_scores(means, (seeds, texts), stretch=stretch, seed=seed, level=level, resamples=resamples)


SeedScores = Callable[[NDArray[np.int64]], Values]
"""M scores of every seed on resampled texts, from the indices of the texts.  (D,N) -> (D,M,S)"""


def bootstrap_scores(
    scores: SeedScores,
    shape: tuple[int, int],
    *,
    stretch: float = 1.0,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> list[Interval | None]:
    """The intervals of M means over seeds of scores of whole sets, such as macro-F1; None: no score is finite.

    `shape`: the numbers of seeds and texts.
    """
    (seeds, texts), random, parts = shape, np.random.default_rng(seed), []
    for size in chunks(resamples, texts):
        per_seed = scores(random.integers(texts, size=(size, texts)))
        seed_draws = random.integers(seeds, size=(size, 1, seeds))
        all_seeds, drawn_seeds = per_seed.mean(-1), np.take_along_axis(per_seed, seed_draws, axis=2).mean(-1)
        parts.append(all_seeds + stretch * (drawn_seeds - all_seeds))
    draws = np.concatenate(parts)
    return [_percentile_interval(draws[:, i], level) for i in range(draws.shape[1])]


def bootstrap_statistic(
    statistic: Callable[[NDArray[np.int64]], Values],
    n: int,
    *,
    seed: int = 0,
    level: float = LEVEL,
    resamples: int = 1_000,
) -> Interval:
    """The interval of a score of n examples, such as macro-F1.

    `statistic`: the scores of several resamples from the indices of their examples, (R,n) -> (R,).
    """
    if n < 1:
        raise ValueError(f"n is {n}; there is nothing to draw from")
    random = np.random.default_rng(seed)
    draws = np.concatenate([statistic(random.integers(n, size=(size, n))) for size in chunks(resamples, n)])
    interval = _percentile_interval(finite_values(draws), level)
    assert interval is not None  # the draws are finite
    return interval


def finite_values(values: Sequence[float] | Values) -> Values:
    """The values as an array; an error if there are none, or if one is not finite."""
    sample = np.asarray(values, dtype=np.float64).reshape(-1)
    if not len(sample):
        raise ValueError("there are no values to average")
    if not_finite := int((~np.isfinite(sample)).sum()):
        raise ValueError(
            f"{not_finite} of {len(sample)} values are not finite: leave them out and mention it in the note"
        )
    return sample


def chunks(total: int, width: int) -> Iterator[int]:
    """Sizes of chunks of `total` rows of `width` numbers, so that memory stays constant."""
    step = max(1, _CHUNK // max(width, 1))
    for start in range(0, total, step):
        yield min(step, total - start)


def _resampled_means(values: Values, draws: NDArray[np.int64]) -> Values:
    """The mean of each row of values over each draw of texts; NaN if it has none.  (R,N), (D,N) -> (D,R)"""
    finite = np.isfinite(values)
    if len(values) == 1 and finite.all():
        return np.asarray(values[0][draws].mean(axis=1, keepdims=True))
    counts = _counts(draws)
    total, number = counts @ np.where(finite, values, 0.0).T, counts @ finite.T.astype(np.float64)
    return np.where(number > 0, total / np.maximum(number, 1.0), np.nan)


def drawn_counts(n: int, resamples: int, seed: int) -> Iterable[Values]:
    """`resample_counts`; those of few texts are kept, because all rows of a report draw the same."""
    return _kept_counts(n, resamples, seed) if n * resamples <= _KEPT else resample_counts(n, resamples, seed)


@lru_cache(maxsize=4)
def _kept_counts(n: int, resamples: int, seed: int) -> list[Values]:
    return list(resample_counts(n, resamples, seed))


def resample_counts(n: int, resamples: int, seed: int) -> Iterator[Values]:
    """Chunks of resamples: how often each of n texts was drawn.  (R,n)"""
    random = np.random.default_rng(seed)
    for size in chunks(resamples, n):
        yield _counts(random.integers(n, size=(size, n)))


def _counts(draws: NDArray[np.int64]) -> Values:
    """How often each draw has each text.  (D,N) -> (D,N)"""
    size, texts = draws.shape
    places = draws + texts * np.arange(size)[:, None]
    return np.bincount(places.ravel(), minlength=size * texts).reshape(size, texts).astype(np.float64)


def _percentile_interval(draws: Values, level: float) -> Interval | None:
    """The middle `level` of the finite draws; None if there are none."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; a confidence lies strictly between 0 and 1")
    finite = draws[np.isfinite(draws)]  # a draw of few texts may contain only NaN
    if not len(finite):
        return None
    low, high = percentile_bounds(finite, level)
    return float(low), float(high)


def percentile_bounds(draws: Values, level: float = LEVEL) -> tuple[Values, Values]:
    """The ends of the middle `level` of the draws.  (R,…) -> (…), (…)"""
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def t_interval(values: Sequence[float] | Values, level: float = LEVEL) -> Interval:
    """Student's interval of the mean of independent values, such as seeds; of one value, of width 0.

    >>> low, high = t_interval([0.1, 0.3])
    >>> round(low, 3), round(high, 3)
    (-1.071, 1.471)
    """
    from scipy.special import stdtrit

    sample = finite_values(values)
    mean, n = float(sample.mean()), len(sample)
    half = float(stdtrit(n - 1, (1 + level) / 2) * sample.std(ddof=1) / n**0.5) if n > 1 else 0.0
    return mean - half, mean + half


def wilson_interval(successes: float, n: int, level: float = LEVEL) -> Interval:
    """The interval of a proportion of n outcomes; too wide for the mean of n values between 0 and 1.

    >>> low, high = wilson_interval(8, 8)
    >>> round(low, 3), high
    (0.676, 1.0)
    """
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} of {n} is not a proportion")
    z, p = NormalDist().inv_cdf((1 + level) / 2), successes / n
    center = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    return (0.0 if successes == 0 else center - half, 1.0 if successes == n else center + half)
