"""Stability of consensus relative to vanilla, for models of a stack and for models that are trained one by one.

    python bench/stacked_stability.py run FOLDER [--single] [--data sst2] [--seeds 5] [--limit 500] [--synonyms FILE]
    python bench/stacked_stability.py table FOLDER SINGLE_FOLDER

`run` is `compare DATA --techniques vanilla,consensus --seeds 5` on a GPU; with --single every model is trained alone.
Several processes with --single can share one folder.  `table` prints the mean of consensus over the mean of vanilla
for each measure, with 95 % bootstrap intervals that resample the seeds of both, and the p-value of a permutation test
of the seeds of consensus between the two ways of training.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000


def run(arguments: argparse.Namespace) -> None:
    import torch

    from steadygaze.study import compare
    from steadygaze.study.compare_config import CompareConfig
    from steadygaze.training import stacked_stages

    if arguments.single:
        stacked_stages.can_stack = lambda _: False
        compare.best_device = lambda _: torch.device("cpu")  # cells do not train the models of other cells
    config = CompareConfig(
        data=arguments.data,
        techniques=("vanilla", "consensus"),
        seeds=arguments.seeds,
        epochs=arguments.epochs,
        limit=arguments.limit,
        encoder=arguments.encoder,
        synonyms=arguments.synonyms,
        settings={} if arguments.synonyms is None else {"synonyms": arguments.synonyms},
    )
    on_progress = lambda activity, done, total: print(f"{done}/{total} {activity}", flush=True)  # noqa: E731
    compare.compare(config, compare.StudyRuntime(arguments.folder, arguments.data_dir, arguments.device, on_progress))


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
    low, high = np.quantile(means[0] / means[1], [0.025, 0.975])
    return float(values["consensus"].mean() / values["vanilla"].mean()), float(low), float(high)


def permutation_p(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Two-sided p-value of the difference of means."""
    draw, pooled = np.random.default_rng(0), np.concatenate([first, second])
    orders = draw.permuted(np.tile(pooled, (DRAWS, 1)), axis=1)
    differences = orders[:, : len(first)].mean(1) - orders[:, len(first) :].mean(1)
    return float((np.abs(differences) >= abs(first.mean() - second.mean()) - 1e-15).mean())


def table(arguments: argparse.Namespace) -> None:
    stacked, single = seeds_of(arguments.folder), seeds_of(arguments.single_folder)
    print("| measure | stacked: consensus / vanilla | one by one | p |\n|---|---|---|---|")
    for measure in stacked:
        cells = []
        for values in (stacked[measure], single.get(measure, {})):
            if {"vanilla", "consensus"} <= values.keys():
                cells.append("{:.3f} ({:.3f}–{:.3f})".format(*ratio(values)))
        if len(cells) == 2:
            p = permutation_p(stacked[measure]["consensus"], single[measure]["consensus"])
            print(f"| {measure} | {' | '.join(cells)} | {p:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("run")
    part.set_defaults(work=run)
    part.add_argument("folder", type=Path)
    part.add_argument("--single", action="store_true")
    part.add_argument("--data", default="sst2")
    part.add_argument("--data-dir", type=Path)
    part.add_argument("--seeds", type=int, default=5)
    part.add_argument("--epochs", type=int)
    part.add_argument("--limit", type=int, default=500)
    part.add_argument("--encoder", default="bilstm")
    part.add_argument("--synonyms")
    part.add_argument("--device", default="cuda")
    part = parts.add_parser("table")
    part.set_defaults(work=table)
    part.add_argument("folder", type=Path)
    part.add_argument("single_folder", type=Path)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()
