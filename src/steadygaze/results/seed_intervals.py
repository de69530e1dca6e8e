"""Intervals of means over texts and models of several seeds, for `compare` and for audits.

    v[s,i]       one number for the model of seed s and text i; NaN if it does not apply
    interval     bootstrap over seeds and texts (results/intervals.py).  Its variation between seeds is stretched by
                 t(S−1) / z · √(S / (S−1)), as Student's t does (×9 for 2 seeds, 2.7 for 3, 1.6 for 5, 1.2 for 10)

Tukey 1958 for pseudo-values.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from steadygaze.results.intervals import LEVEL, Interval, Values, bootstrap_means

Name = TypeVar("Name", bound=Hashable)


def seed_stretch(seeds: int, level: float = LEVEL) -> float:
    """The factor by which few seeds underestimate the variation between seeds; 1 for one seed."""
    if seeds < 2:
        return 1.0
    from scipy.special import stdtrit

    tail = (1 + level) / 2
    return float(stdtrit(seeds - 1, tail) / NormalDist().inv_cdf(tail) * (seeds / (seeds - 1)) ** 0.5)


def mean_intervals(values: Mapping[Name, Values]) -> dict[Name, Interval | None]:
    """Intervals of means over seeds and texts; None for a single number.  {(S,N)}

    Arrays of the same shape use the same resamples.
    """
    shapes: dict[tuple[int, ...], list[Name]] = defaultdict(list)
    for name, array in values.items():
        shapes[array.shape].append(name)
    intervals: dict[Name, Interval | None] = {}
    for (seeds, texts), names in shapes.items():
        arrays = np.stack([values[name] for name in names])
        known = bootstrap_means(arrays, stretch=seed_stretch(seeds)) if seeds * texts > 1 else [None] * len(names)
        intervals |= zip(names, known, strict=True)
    return intervals


def by_model(pairs: Mapping[tuple[int, int], Values], models: int) -> Values:
    """The contribution of each model to the mean over all pairs of models.  {(s,s′): (N,)} -> (S,N)

        θ = mean over pairs;   row s = S·θ − (S−1)·θ without the pairs of s       (Tukey's pseudo-values)

    The mean of the rows is θ, and their variance is that of the models.  Two models have one pair and one row.
    """
    values = np.stack(list(pairs.values()))
    if models < 3:
        return values
    leave_one_out_means = [
        np.stack([value for pair, value in pairs.items() if s not in pair]).mean(0) for s in range(models)
    ]
    rows: Values = models * values.mean(0) - (models - 1) * np.stack(leave_one_out_means)
    return rows
