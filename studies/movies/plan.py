"""Rows, learning rates and jobs of the study of movie reviews."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from studies.tables import folder_records

SHARE, SPANS = 0.2, 10
SELECTION: dict[str, Any] = {"granularity": "token", "share": SHARE, "spans": SPANS}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "a2r": ("a2r", SELECTION),
    "rnp": ("rnp", SELECTION),
    "three-player": ("three-player", SELECTION),
    "hardkuma": ("hardkuma", {}),
    "hardkuma-tuned": ("hardkuma", {}),
    "hardkuma-multipliers": ("hardkuma", SELECTION | {"sparsity": 1e-3, "continuity": 1e-3}),
    "rnp-straight-through": ("rnp", SELECTION | {"estimator": "straight-through"}),
    "a2r-released": ("a2r", SELECTION | {"variant": "released"}),
    "attention": ("vanilla", {}),
}
"""Row -> technique and its settings.  HardKuma's multipliers start from 1e-3, for runs of 800 steps.  From the usual
1e-5, they act after all gates have opened; from 1e-2, before the model has learned anything."""
MINILM = {f"{row}-minilm": row for row in ("a2r", "rnp", "rnp-straight-through", "a2r-released", "attention")}
TUNED_ROWS = (
    "a2r-minilm",
    "rnp-minilm",
    "rnp-straight-through-minilm",
    "a2r",
    "rnp",
    "three-player",
    "hardkuma-tuned",
    "hardkuma-multipliers",
    "rnp-straight-through",
)
RATES = (1e-4, 3e-4, 1e-3, 3e-3)
"""Learning rates of the generator.  That of the predictor is 1e-3, that of MiniLM 5e-5."""
TUNING_SEEDS = 2
BASELINES = ("random", "random-tokens", "first", "last", "all")
TRAINING: dict[str, Any] = {"epochs": 20, "batch_size": 40, "precision": "no"}
MINILM_TRAINING: dict[str, Any] = {"epochs": 6, "batch_size": 8, "precision": "bf16", "schedule": "linear"}
SUPERVISED_SEEDS = 3


@dataclass(frozen=True)
class Job:
    row: str
    seed: int
    rate: float | None = None
    """Learning rate of the generator; None: the default of the technique."""

    @property
    def id(self) -> str:
        return f"{self.row}.s{self.seed}" if self.rate is None else f"{self.row}-{self.rate:g}.s{self.seed}"


def job_plan(out: Path, seeds: int) -> list[Job]:
    """All jobs whose learning rate is known, the longest first."""
    rates = selected_rates(folder_records(out / "records"))
    others = [Job(row, seed, rates[row]) for seed in range(TUNING_SEEDS, seeds) for row in TUNED_ROWS if row in rates]
    return [*plan(seeds), *others]


def plan(seeds: int) -> list[Job]:
    """Jobs that do not depend on records."""
    untuned = [row for row in (*MINILM, *ROWS) if row not in TUNED_ROWS]
    return [
        *(Job(row, seed, rate) for row in TUNED_ROWS for rate in RATES for seed in range(min(TUNING_SEEDS, seeds))),
        *(Job(row, seed) for row in untuned for seed in range(seeds)),
        *(Job("supervised", seed) for seed in range(min(SUPERVISED_SEEDS, seeds))),
        *(Job(row, 0) for row in BASELINES),
    ]


def selected_rates(records: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Row -> the best rate, of rows with records of all rates; of equal rates the lowest."""
    scores: dict[str, dict[float, list[float]]] = {row: {rate: [] for rate in RATES} for row in TUNED_ROWS}
    for record in records:
        if record["row"] in TUNED_ROWS and record["seed"] < TUNING_SEEDS and "chosen" in record:
            scores[record["row"]][record["rate"]].append(record["chosen"]["validation"]["accuracy"])
    return {
        row: max(by_rate, key=lambda rate: mean(by_rate[rate]))
        for row, by_rate in scores.items()
        if all(len(accuracies) == TUNING_SEEDS for accuracies in by_rate.values())
    }
