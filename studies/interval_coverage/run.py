"""Coverage of the 95 % intervals of `compare`, by simulation.

A model of seed s is right about text i with probability σ(1 + 1.5 d_i + b_s + t_s y_i); d_i is the difficulty of the
text, b_s and t_s come with the seed, and y_i is the class (0 or 1; three texts in ten are of class 1).  A trial draws
texts and seeds.  The truth is the mean macro-F1 of many seeds on many texts; for differences of two techniques with
equal distributions it is 0.  The other measure is a mean: a value per text, shifted with each seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.maths.macro_f1 import confusion_counts, macro_f1_of
from steadygaze.results.intervals import Interval, Values, bootstrap_means
from steadygaze.results.seed_intervals import mean_intervals
from steadygaze.study.seed_statistics import Outcomes, macro_f1_interval
from studies import jobs

SEEDS, TEXTS = (3, 5), (60, 200)
SEED_EFFECTS = (0.2, 0.8)
"""Standard deviations of b_s and t_s: macro-F1 of seeds then varies by about 0.04 and 0.14."""
KINDS = ("seeds only", "texts × seeds, not stretched", "texts × seeds", "its difference", "mean, not stretched", "mean")
"""Intervals: those of a mean of seeds, of macro-F1, of its difference and of a mean over texts."""


@dataclass(frozen=True)
class Simulation(jobs.Job):
    effect: float
    seeds: int
    texts: int
    trials: int


def plan(trials: int) -> list[Simulation]:
    return [Simulation(*case, trials) for case in product(SEED_EFFECTS, SEEDS, TEXTS)]


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    trials: int = 120


def run(options: Options) -> None:
    jobs.run(options, lambda: plan(options.trials), simulate)


def simulate(case: Simulation) -> dict[str, Any]:
    """The share of trials whose interval contains the truth, for each kind of interval."""
    truth = true_macro_f1(case.effect)
    true_values = (truth, truth, truth, 0.0, 0.1, 0.1)
    rng, hits = np.random.default_rng(0), np.zeros(len(KINDS))
    for _ in range(case.trials):
        several = intervals(rng, case.effect, case.seeds, case.texts)
        hits += [low <= value <= high for (low, high), value in zip(several, true_values, strict=True)]
    shares = (round(share, 3) for share in (hits / case.trials).tolist())
    return {"coverage": dict(zip(KINDS, shares, strict=True))}


def models(
    rng: np.random.Generator, effect: float, seeds: int, label: NDArray[np.int64], difficulty: Values
) -> list[Outcomes]:
    """The labels and predictions of models that differ by their seeds."""
    overall, of_class = effect * rng.normal(size=(2, seeds))
    logits = 1 + 1.5 * difficulty + overall[:, None] + of_class[:, None] * label
    right = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    return [(label, np.where(row, label, 1 - label)) for row in right]


def texts(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], Values]:
    return (rng.random(n) < 0.3).astype(np.int64), rng.normal(size=n)


def macro_f1(label: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    return float(macro_f1_of(confusion_counts(label, predicted, 2)))


@cache
def true_macro_f1(effect: float) -> float:
    rng = np.random.default_rng(1)
    return float(np.mean([macro_f1(*models(rng, effect, 1, *texts(rng, 5_000))[0]) for _ in range(4_000)]))


def intervals(rng: np.random.Generator, effect: float, seeds: int, n: int) -> Iterator[Interval]:
    """One trial: an interval of each of KINDS; the mean has the true value 0.1."""
    label, difficulty = texts(rng, n)
    ours, theirs = (models(rng, effect, seeds, label, difficulty) for _ in range(2))
    scores = np.array([[macro_f1(*outcome)] for outcome in ours])
    values = (
        rng.gamma(1.0, 0.1, size=n) + 0.1 * effect * rng.normal(size=(seeds, 1)) + 0.03 * rng.normal(size=(seeds, n))
    )
    several = (
        *bootstrap_means(scores[None]),
        macro_f1_interval(ours, stretched=False),
        macro_f1_interval(ours),
        macro_f1_interval(ours, minus=theirs),
        *bootstrap_means(values[None]),
        mean_intervals({"": values})[""],
    )
    for interval in several:
        assert interval is not None
        yield interval
