"""Simulations of the coverage of intervals: models that differ little or much by seed, few or many texts."""

from dataclasses import dataclass
from itertools import product

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
