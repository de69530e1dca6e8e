"""Regimes, settings, rows and jobs of the study of rationalizers on planted reviews."""

from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from studies.tables import Records, folder_records

SIZES = (15_000, 1_000, 2_000)
LABEL_NOISE = {"appearance": 0.04, "aroma": 0.04, "palate": 0.06}
"""Share of labels that contradict their review, in all regimes but `plain`."""
EASY: dict[str, Any] = {"negation": 0.0, "agreement": 0.8, "own": 20}
REGIMES: dict[str, dict[str, Any]] = {
    "easy": EASY,
    "many": EASY,
    "large": EASY,
    "dropout": EASY,
    "negated": {"agreement": 0.8, "own": 20},
    "apart": {"negation": 0.0, "own": 20},
    "shared": {"negation": 0.0, "agreement": 0.8},
    "plain": {},
}
"""Options of planted_reviews.  The first regime is that of the main tables.  The next three differ from it in their
training (REGIME_TRAINING).  `negated`, `apart` and `shared` restore one default of planted_reviews, `plain` all.
"""
MAIN_REGIME, OTHER_REGIMES = "easy", ("many", "large", "dropout", "negated", "apart", "shared")
TRAINING: dict[str, Any] = {
    "hidden": 100,
    "score": "additive",
    "dropout": 0.0,
    "max_texts": 6_000,
    "batch_size": 50,
    "epochs": 8,
}
REGIME_TRAINING: dict[str, dict[str, Any]] = {
    "many": {"max_texts": 15_000},
    "large": {
        "max_texts": 15_000,
        "batch_size": 200,
        "epochs": 11,
    },  # 825 steps; the others: 960
    "dropout": {"dropout": 0.2},
}
ASPECTS = ("palate", "aroma", "appearance")
SKEW_EPOCHS = {"skewed10": 10, "skewed15": 15, "skewed20": 20}
BIAS_AGREEMENT = {"biased70": 0.7, "biased75": 0.75, "biased80": 0.8}
SETTINGS = ("standard", *SKEW_EPOCHS, *BIAS_AGREEMENT)
CORE_SETTINGS = ("standard", "skewed20", "biased80")
RATES = (1e-4, 3e-4, 1e-3)
SLOW_RATES = (1e-5, 3e-5)
TUNING_SEEDS = 2
LAMBDAS = (0.0, 0.001, 0.01, 0.1, 0.5, 2.0, 10.0)
"""Values of λ besides 1, which is the row `a2r`."""
LAMBDA_REGIME = "negated"
"""A harder regime in which LAMBDAS run too."""
FEW_SEEDS = 3
"""Seeds of the rows of LAMBDAS and of OTHER_REGIMES."""


@dataclass(frozen=True)
class Job:
    aspect: str
    setting: str
    row: str
    seed: int
    regime: str = MAIN_REGIME

    @property
    def id(self) -> str:
        return f"{self.regime}.{self.aspect}.{self.setting}.{self.row}.s{self.seed}"


def rnp_row(rate: float) -> str:
    return f"rnp-{rate:g}"


def technique_settings(row: str, setting: str) -> tuple[str, dict[str, Any]]:
    """The name of the technique of a row, and its settings."""
    name, _, rest = row.partition("-")
    settings: dict[str, Any] = {"skewed": SKEW_EPOCHS.get(setting, 0)}
    if rest.startswith("lambda-"):
        settings["agreement"] = float(rest.removeprefix("lambda-"))
    elif rest:
        settings["generator_learning_rate"] = float(rest)
    return name, settings


def plan(seeds: int) -> list[Job]:
    """Jobs that do not depend on records, the most important first."""
    cells = [(aspect, setting) for aspect in ASPECTS for setting in SETTINGS]
    rows = [(seed, row) for seed in range(min(TUNING_SEEDS, seeds)) for row in ("a2r", *map(rnp_row, RATES))]
    tuning = [Job(*cell, row, seed) for cell in cells for seed, row in rows]
    a2r = [Job(*cell, "a2r", seed) for cell in cells for seed in range(TUNING_SEEDS, seeds)]
    few = range(min(FEW_SEEDS, seeds))
    lambda_rows = [f"a2r-lambda-{strength:g}" for strength in LAMBDAS]
    variants = [*(f"a2r-{rate:g}" for rate in RATES[1:]), *lambda_rows, *map(rnp_row, SLOW_RATES)]
    variant_jobs = [Job("palate", setting, row, seed) for seed in few for row in variants for setting in CORE_SETTINGS]
    lambda_jobs = [Job("palate", "biased80", row, seed, LAMBDA_REGIME) for row in lambda_rows for seed in few]
    rnp = [(rnp_row(rate), seed) for rate in RATES for seed in few if seed < TUNING_SEEDS]
    regime_jobs = [
        Job("palate", setting, *row, regime)
        for row in (*(("a2r", seed) for seed in few), *rnp)
        for regime in OTHER_REGIMES
        for setting in CORE_SETTINGS
    ]
    return [*tuning, *a2r, *variant_jobs, *lambda_jobs, *regime_jobs]


def plan_selected_rates(out: Path, seeds: int) -> list[Job]:
    """RNP with the remaining seeds, for cells in which all rates have records."""
    ends = {MAIN_REGIME: seeds, **dict.fromkeys(OTHER_REGIMES, min(FEW_SEEDS, seeds))}
    selected = selected_rows(folder_records(out / "records"), min(TUNING_SEEDS, seeds))
    return [
        Job(aspect, setting, row, seed, regime)
        for (regime, aspect, setting), row in selected.items()
        for seed in range(TUNING_SEEDS, ends.get(regime, 0))
    ]


def selected_rows(records: Records, seeds: int = TUNING_SEEDS) -> dict[tuple[str, str, str], str]:
    """Regime, aspect, setting -> the best row of RNP, for cells in which every rate has every seed."""
    cells: dict[tuple[str, str, str], dict[tuple[str, int], float]] = {}
    for record in records:
        if record["row"] in map(rnp_row, RATES) and record["seed"] < seeds and "chosen" in record:
            cell = cells.setdefault((record["regime"], record["aspect"], record["setting"]), {})
            cell[record["row"], record["seed"]] = record["chosen"]["validation"]["accuracy"]
    return {cell: best_row(scores) for cell, scores in cells.items() if len(scores) == len(RATES) * seeds}


def best_row(scores: dict[tuple[str, int], float]) -> str:
    """The row with the highest mean over seeds; among equal ones, that with the lowest rate."""
    return max(map(rnp_row, RATES), key=lambda name: mean(value for (row, _), value in scores.items() if row == name))
