"""Tables of docs/results/rationales.md about planted reviews."""

from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from studies.rationales.plan import (
    ASPECTS,
    CORE_SETTINGS,
    FEW_SEEDS,
    LAMBDAS,
    MAIN_REGIME,
    OTHER_REGIMES,
    RATES,
    SETTINGS,
    SLOW_RATES,
    TRAINING,
    rnp_row,
)
from studies.rationales.runs import FILES, PlantedRecords, load
from studies.tables import Records, markdown, spread, values

Table = list[list[str]]
PAPER = {  # Yu et al. 2021, Table 2, BeerAdvocate: F1 and X1 of RNP, F1 and X1 of A2R, in %
    ("aroma", "skewed10"): (61.5, 14.5, 69.2, 10.4),
    ("aroma", "skewed15"): (49.3, 31.2, 51.7, 35.7),
    ("aroma", "skewed20"): (11.0, 80.5, 46.3, 41.5),
    ("palate", "skewed10"): (5.5, 63.9, 45.5, 27.5),
    ("palate", "skewed15"): (1.3, 83.1, 27.7, 58.0),
    ("palate", "skewed20"): (0.6, 100.0, 0.6, 97.0),
    ("aroma", "biased70"): (63.4, 12.6, 69.0, 12.2),
    ("aroma", "biased75"): (52.3, 25.3, 60.5, 20.9),
    ("aroma", "biased80"): (3.4, 99.9, 53.2, 29.8),
    ("palate", "biased70"): (47.3, 24.3, 50.1, 18.8),
    ("palate", "biased75"): (0.6, 100.0, 47.9, 22.0),
    ("palate", "biased80"): (0.6, 100.0, 43.5, 29.6),
    ("appearance", "standard"): (72.8, None, 72.9, None),  # Table 3, like the next two
    ("aroma", "standard"): (65.9, None, 70.0, None),
    ("palate", "standard"): (51.0, None, 58.0, None),
}
BOLD_CELLS = (("palate", "skewed20"), ("palate", "biased80"))
REGIME_NAMES = {
    MAIN_REGIME: "as above",
    "many": "15,000 reviews",
    "large": "**15,000 reviews, batches of 200, 11 epochs**",
    "dropout": "dropout 0.2",
    "negated": "15 of 100 opinions negated",
    "apart": "aspects independent",
    "shared": "adjectives shared",
}


def setting_name(setting: str) -> str:
    """skewed20 -> skewed 20, biased75 -> biased 0.75"""
    if setting.startswith("biased"):
        return f"biased {int(setting.removeprefix('biased')) / 100:g}"
    return setting.replace("skewed", "skewed ")


def rate_name(rate: float) -> str:
    """0.0003 -> 3e-4"""
    return f"{rate:.0e}".replace("e-0", "e-")


def percent(number: float) -> str:
    return f"{number:.1f}".replace("100.0", "100")


def average(runs: Records, measure: str, when: str = "chosen", split: str = "test") -> str:
    """The mean over seeds; an empty cell if there are no runs."""
    numbers = values(runs, measure, when, split)
    return percent(mean(numbers)) if numbers else ""


def joined_averages(runs: Records, *measures: str, when: str = "chosen") -> str:
    return " / ".join(average(runs, measure, when) for measure in measures) if runs else ""


def main_table(records: PlantedRecords) -> Table:
    paper = ["paper F1, RNP / A2R", "paper X1"]
    models = [f"{model} {measure}" for model in ("RNP", "A2R") for measure in ("accuracy", "F1", "X1")]
    return [["aspect", "setting", "RNP learning rate", *models, *paper], *_main_rows(records)]


def _main_rows(records: PlantedRecords) -> Iterator[list[str]]:
    for aspect in ASPECTS:
        for setting in SETTINGS:
            mark = "**" if (aspect, setting) in BOLD_CELLS else ""
            cells = []
            for runs in (records.rnp(aspect, setting), records.of(aspect, setting, "a2r")):
                cells += [spread(runs, "accuracy"), *(f"{mark}{spread(runs, name)}{mark}" for name in ("f1", "x1"))]
            numbers = PAPER.get((aspect, setting), (None,) * 4)
            published = [
                " / ".join(percent(x) for x in pair if x is not None) for pair in (numbers[::2], numbers[1::2])
            ]
            rate = rate_name(records.rate(aspect, setting)) if records.rnp(aspect, setting) else ""
            yield [aspect, setting_name(setting), rate, *cells, *published]


def slow_rates_table(records: PlantedRecords) -> Table:
    """RNP with SLOW_RATES, at the selected epoch and at the last."""
    epochs = {"chosen": "selected epoch", "last": f"epoch {TRAINING['epochs']}"}
    table = [
        ["F1 / X1", *(f"{setting_name(setting)}, {name}" for setting in CORE_SETTINGS for name in epochs.values())]
    ]
    for rate in SLOW_RATES:
        runs = [records.of("palate", setting, rnp_row(rate)) for setting in CORE_SETTINGS]
        table.append(
            [rate_name(rate), *(joined_averages(cell, "f1", "x1", when=when) for cell in runs for when in epochs)]
        )
    return table


def lambda_table(records: PlantedRecords) -> Table:
    """λ of A2R, and the learning rate of its generator.  Bold: it interlocks."""
    rows = {f"{x:g}": "a2r" if x == 1 else f"a2r-lambda-{x:g}" for x in sorted([*LAMBDAS, 1.0])}
    rows |= {f"λ = 1, generator at {rate_name(rate)}": f"a2r-{rate:g}" for rate in RATES[1:]}
    table = [["λ", *map(setting_name, CORE_SETTINGS)]]
    for name, row in rows.items():
        cells = [records.of("palate", setting, row, seeds=FEW_SEEDS) for setting in CORE_SETTINGS]
        marks = ["**" if runs and mean(values(runs, "x1")) > 50 else "" for runs in cells]
        table.append(
            [name, *(f"{m}{joined_averages(runs, 'f1', 'x1')}{m}" for m, runs in zip(marks, cells, strict=True))]
        )
    return table


def regime_table(records: PlantedRecords) -> Table:
    """The main regime and the others; regimes without all runs are left out."""
    table = [["", *(f"{model} {setting_name(setting)}" for setting in CORE_SETTINGS for model in ("RNP", "A2R"))]]
    for regime in (MAIN_REGIME, *OTHER_REGIMES):
        seeds = None if regime == MAIN_REGIME else FEW_SEEDS
        cells = []
        for setting in CORE_SETTINGS:
            mark = "**" if (regime, setting) == ("large", "skewed20") else ""
            a2r = records.of("palate", setting, "a2r", regime, seeds)
            for runs in (records.rnp("palate", setting, regime, seeds), a2r):
                complete = len(runs) >= FEW_SEEDS
                cells.append(f"{mark}{joined_averages(runs, 'accuracy', 'f1', 'x1')}{mark}" if complete else "")
        if all(cells):
            table.append([REGIME_NAMES[regime], *cells])
    return table


def rates_table(records: PlantedRecords) -> Table:
    """RNP by learning rate: accuracy on validation texts, F1 and X1 on test texts.  Not on the page."""
    table = [["aspect", "setting", *map(rate_name, RATES)]]
    for aspect in ASPECTS:
        for setting in SETTINGS:
            cells = [records.of(aspect, setting, rnp_row(rate)) for rate in RATES]
            shown = [
                f"{average(runs, 'accuracy', split='validation')} / {joined_averages(runs, 'f1', 'x1')} (n {len(runs)})"
                for runs in cells
            ]
            table.append([aspect, setting_name(setting), *shown])
    return table


TABLES = (main_table, slow_rates_table, lambda_table, regime_table)
"""The tables of the page."""


def table(records: list[Path] = FILES) -> str:
    """Folders or files; default: the records of the repository."""
    runs = load(records)
    return "\n\n".join(markdown(build(runs)) for build in (*TABLES, rates_table))
