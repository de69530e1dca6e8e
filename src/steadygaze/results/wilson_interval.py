"""Wilson's score interval (1927) of a proportion: unlike a bootstrap, it has a width if all n outcomes are equal.

center ± half, with z the (1 + level)/2 quantile of the normal distribution and p the observed proportion:

center = (p + z²/2n) / (1 + z²/n)        half = z √(p(1 − p)/n + z²/4n²) / (1 + z²/n)
"""

from collections.abc import Sequence
from statistics import NormalDist

from steadygaze.results.bootstrap import LEVEL, Interval

PROPORTIONS = frozenset({"accuracy", "label-flip", "first-sentence-pick"})
"""Measures that are true or false for each text."""


def is_proportion(measure: str, values: Sequence[float]) -> bool:
    """Whether the mean of these values of a measure is a share of texts.

    >>> is_proportion("label-flip/noise", [0.0, 1.0]), is_proportion("jensen-shannon/noise", [0.0, 0.0])
    (True, False)
    """
    return measure.split("/")[0] in PROPORTIONS and {*values} <= {0.0, 1.0}


def wilson_interval(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The interval of a proportion of n outcomes.

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
