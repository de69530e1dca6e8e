"""How far a mean may be trusted: the percentile bootstrap over examples (Efron 1979), and the Row that carries it.

    m* = mean of n values drawn from the n with replacement;   interval = the (1 ± level)/2 quantiles of many m*

Values that are all alike give an interval of no width: it describes these examples, not the ones nobody has seen.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from steadygaze.record import Row

_DRAWS = 1_000_000  # drawn at a time: 16 MB whatever n is


def bootstrap(
    values: Sequence[float], *, seed: int = 0, level: float = 0.95, resamples: int = 2_000
) -> tuple[float, float]:
    """The interval in which the mean lies with confidence `level`; the same seed gives the same interval."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; a confidence lies strictly between 0 and 1")
    sample = _finite(values)
    random, step = np.random.default_rng(seed), max(1, _DRAWS // len(sample))
    means = [
        sample[random.integers(len(sample), size=(min(step, resamples - done), len(sample)))].mean(axis=1)
        for done in range(0, resamples, step)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


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


def _finite(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    sample = np.asarray(values, dtype=np.float64).reshape(-1)
    if not len(sample):
        raise ValueError("there is no mean of no values")
    if wrong := int((~np.isfinite(sample)).sum()):
        raise ValueError(f"{wrong} of {len(sample)} values are not finite: leave them out, and say so in the note")
    return sample
