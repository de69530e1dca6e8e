"""Coverage of the 95 % intervals of the stability tables with five seeds, by simulation.

    python bench/stability_coverage.py [TRIALS]

The vanilla models of a setting serve as the population: the true ratio is 1, the true difference 0.  One trial draws
five of them with replacement as the technique and as many as there are as vanilla.
"""

import sys

import numpy as np

from stability_plan import MAIN_SETTINGS, SEEDS
from stability_records import STUDY, read
from stability_table import ORDERS, SHIFTS, rows_of, table, values
from studies.stability.statistics import Values, difference, ratio

TRIALS = 1000


def coverage(population: Values, differences: bool, trials: int) -> float:
    """The share of trials whose interval covers the truth."""
    rng = np.random.default_rng(0)
    known = {s: np.asarray(sample, np.float64) for s, sample in population.items()}
    truth, hits = 0.0 if differences else 1.0, 0
    for _ in range(trials):
        ours = {s: rng.choice(sample, SEEDS) for s, sample in known.items()}
        plain = {s: rng.choice(sample, len(sample)) for s, sample in known.items()}
        estimate = (difference if differences else ratio)(ours, plain)
        hits += estimate.low <= truth <= estimate.high
    return hits / trials


def main() -> None:
    _, records = read(STUDY)
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    runs = rows_of(records)["vanilla"]
    lines = []
    measures = {**SHIFTS, "flips 3 syn": "label-flip/3-synonyms", "τ 3 held-out": ORDERS["τ 3 held-out"]}
    for name, key in measures.items():
        population = values(runs, key, MAIN_SETTINGS) or {}
        differences = name.startswith("τ")
        single = [coverage({s: sample}, differences, trials) for s, sample in population.items()]
        shares = [coverage(population, differences, trials), min(single), max(single)]
        lines.append([name, *(f"{share:.3f}" for share in shares)])
    print(table(["", "all settings", "lowest of one setting", "highest"], lines))


if __name__ == "__main__":
    main()
