"""How far a number may be trusted: the percentile bootstrap over examples (Efron 1979), and the Row that carries it.

    m* = mean of n values drawn from the n with replacement;   interval = the (1 ± level)/2 quantiles of many m*

A number that is no mean over examples, such as macro-F1, is computed anew from every draw: `bootstrap_rows`.

Values that are all alike give an interval of no width: it describes these examples, not the ones nobody has seen.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steadygaze.record import Row

_DRAWS = 1_000_000  # drawn at a time: 16 MB whatever n is


def bootstrap(
    values: Sequence[float], *, seed: int = 0, level: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """The interval in which the mean lies with confidence `level`; the same seed gives the same interval."""
    sample = _finite(values)
    random, step = np.random.default_rng(seed), max(1, _DRAWS // len(sample))
    means = [
        sample[random.integers(len(sample), size=(min(step, resamples - done), len(sample)))].mean(axis=1)
        for done in range(0, resamples, step)
    ]
    return _middle(np.concatenate(means), level)


def bootstrap_rows(
    statistic: Callable[[NDArray[np.int64]], float],
    n: int,
    *,
    seed: int = 0,
    level: float = 0.95,
    resamples: int = 1_000,
) -> tuple[float, float]:
    """The interval of any number computed from n examples: `statistic` is given which of them were drawn, (n,)."""
    if n < 1:
        raise ValueError(f"n is {n}; there is nothing to draw from")
    random = np.random.default_rng(seed)
    return _middle(_finite([statistic(random.integers(n, size=n)) for _ in range(resamples)]), level)


def mean_row(
    measure: str,
    values: Sequence[float],
    settings: Mapping[str, str | int | float] | None = None,
    *,
    note: str = "",
    seed: int = 0,
) -> Row:
    """The mean of one number per example, with its interval.  A single example has none: it says nothing of spread."""
    sample = _finite(values)
    interval = bootstrap(values, seed=seed) if len(sample) > 1 else None
    return Row(measure, float(sample.mean()), len(sample), interval, settings or {}, note)


def _middle(draws: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Between which two numbers the middle `level` of the draws lies."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; a confidence lies strictly between 0 and 1")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64).reshape(-1)
    if not len(sample):
        raise ValueError("there is no mean of no values")
    if wrong := int((~np.isfinite(sample)).sum()):
        raise ValueError(f"{wrong} of {len(sample)} values are not finite: leave them out, and say so in the note")
    return sample
