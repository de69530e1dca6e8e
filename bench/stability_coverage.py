"""Coverage of the 95 % intervals of the stability tables with five seeds, by simulation.

    python bench/stability_coverage.py [TRIALS]

The vanilla models of a setting serve as the population: the true ratio is 1, the true difference 0.  One trial draws
five of them with replacement as the technique and as many as there are as vanilla.
"""

import sys

import numpy as np

from stability_plan import SEEDS
from stability_records import STUDY, read
from stability_statistics import Estimate, Values, difference, paired, ratio
from stability_table import ORDERS, SHIFTS, rows_of, table, values

TRIALS = 1000


def coverage(population: Values, differences: bool, trials: int) -> tuple[float, float]:
    """Shares of trials in which the bootstrap, and the t interval over seeds alone, cover the truth."""
    rng = np.random.default_rng(0)
    known = {s: np.asarray(sample, np.float64) for s, sample in population.items()}
    truth = 0.0 if differences else 1.0
    center = {s: np.exp(np.log(sample).mean()) for s, sample in known.items()}
    hits = np.zeros(2)
    for _ in range(trials):
        ours = {s: rng.choice(sample, SEEDS) for s, sample in known.items()}
        plain = {s: rng.choice(sample, len(sample)) for s, sample in known.items()}
        estimate = (difference if differences else ratio)(ours, plain)
        alone = paired(ours, {s: np.full(SEEDS, center[s]) for s in ours})
        hits += [_covers(estimate, truth), _covers(alone, 1.0)]
    return float(hits[0] / trials), float(hits[1] / trials)


def _covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


def main() -> None:
    _, records = read(STUDY)
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    runs = rows_of(records)["vanilla"]
    lines = []
    for name, key in {**SHIFTS, "τ 3 held-out": ORDERS["τ 3 held-out"]}.items():
        population = values(runs, key, list(runs)) or {}
        differences = name.startswith("τ")
        all_settings = coverage(population, differences, trials)
        single = [coverage({s: sample}, differences, trials) for s, sample in population.items()]
        cells = [f"{share:.3f}" for i in range(2) for share in (all_settings[i], min(pair[i] for pair in single))]
        lines.append([name, *cells])
    header = [f"{way}, {which}" for way in ("bootstrap", "t") for which in ("all settings", "lowest of one setting")]
    print(table(["", *header], lines))


if __name__ == "__main__":
    main()
