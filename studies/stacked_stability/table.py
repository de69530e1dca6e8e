"""The mean of consensus over the mean of vanilla for each measure, of stacked and of single trainings.

The 95 % bootstrap intervals resample the seeds of both; the p-value is that of a permutation test of the seeds of
consensus between the two ways of training.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.results.intervals import percentile_bounds
from studies.tables import markdown

DRAWS = 10_000


def seeds_of(folder: Path) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Measure -> technique -> value of each seed."""
    content: dict[str, Any] = json.loads((folder / "comparison.json").read_text())
    values: dict[str, dict[str, NDArray[np.float64]]] = {}
    for technique in content["techniques"]:
        for measure, cell in technique["numbers"].items():
            if cell["seeds"]:
                values.setdefault(measure, {})[technique["technique"]] = np.array(cell["seeds"], float)
    return values


def ratio(values: dict[str, NDArray[np.float64]]) -> tuple[float, float, float]:
    """The ratio of the means, and its interval."""
    draw = np.random.default_rng(0)
    means = [
        values[name][draw.integers(len(values[name]), size=(DRAWS, len(values[name])))].mean(1)
        for name in ("consensus", "vanilla")
    ]
    low, high = percentile_bounds(means[0] / means[1])
    return float(values["consensus"].mean() / values["vanilla"].mean()), float(low), float(high)


def permutation_p(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Two-sided p-value of the difference of means."""
    draw, pooled = np.random.default_rng(0), np.concatenate([first, second])
    orders = draw.permuted(np.tile(pooled, (DRAWS, 1)), axis=1)
    differences = orders[:, : len(first)].mean(1) - orders[:, len(first) :].mean(1)
    return float((np.abs(differences) >= abs(first.mean() - second.mean()) - 1e-15).mean())


def table(folder: Path, single_folder: Path) -> str:
    """The folders of two comparisons."""
    stacked, single = seeds_of(folder), seeds_of(single_folder)
    lines = [["measure", "stacked: consensus / vanilla", "one by one", "p"]]
    for measure in stacked:
        cells = []
        for values in (stacked[measure], single.get(measure, {})):
            if {"vanilla", "consensus"} <= values.keys():
                cells.append("{:.3f} ({:.3f}–{:.3f})".format(*ratio(values)))
        if len(cells) == 2:
            p = permutation_p(stacked[measure]["consensus"], single[measure]["consensus"])
            lines.append([measure, *cells, f"{p:.2f}"])
    return markdown(lines)
