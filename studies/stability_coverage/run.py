"""Coverage of the 95 % intervals of the stability study with five seeds, by simulation.

The vanilla models of a setting serve as the population: the true ratio is 1, the true difference 0.  One trial draws
five of them with replacement as the technique and as many as there are as vanilla.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from studies import jobs
from studies.stability.comparison import PROBES, rows_of, values
from studies.stability.plan import MAIN_SETTINGS, SEEDS
from studies.stability.records import study_records
from studies.stability.statistics import difference, ratio

MEASURES = (*(f"jensen-shannon/{probe}" for probe in PROBES.values()), "label-flip/3-synonyms", "kendall/3-held-out")
DIFFERENCES = ("kendall",)
"""Measures that are subtracted instead of divided."""


@dataclass(frozen=True)
class Simulation(jobs.Job):
    measure: str


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    trials: int = 1000


def run(options: Options) -> None:
    jobs.run(options, lambda: [Simulation(measure) for measure in MEASURES], partial(simulate, options.trials))


def simulate(trials: int, case: Simulation) -> dict[str, Any]:
    """The coverage over all settings, and in each alone."""
    vanilla = values(rows_of(study_records())["vanilla"], case.measure, MAIN_SETTINGS)
    assert vanilla is not None, f"the records have no {case.measure}"
    differences = case.measure.startswith(DIFFERENCES)
    single = {s: coverage({s: sample}, differences, trials) for s, sample in vanilla.items()}
    return {"coverage": coverage(vanilla, differences, trials), "trials": trials, "by setting": single}


def coverage(population: Mapping[str, Sequence[float]], differences: bool, trials: int) -> float:
    """The share of trials whose interval covers the truth."""
    rng = np.random.default_rng(0)
    truth, hits = 0.0 if differences else 1.0, 0
    for _ in range(trials):
        ours = {s: rng.choice(sample, SEEDS).tolist() for s, sample in population.items()}
        plain = {s: rng.choice(sample, len(sample)).tolist() for s, sample in population.items()}
        estimate = (difference if differences else ratio)(ours, plain)
        hits += estimate.low <= truth <= estimate.high
    return hits / trials
