"""Numbers of docs/results/rationales.md about planted reviews."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import mean

from studies.numbers import Number, Origin
from studies.rationales.plan import (
    ASPECTS,
    CORE_SETTINGS,
    FEW_SEEDS,
    LAMBDA_REGIME,
    LAMBDAS,
    MAIN_REGIME,
    OTHER_REGIMES,
    RATES,
    SETTINGS,
    SLOW_RATES,
    rnp_row,
)
from studies.rationales.runs import FILES, PlantedRecords, load
from studies.study import Data
from studies.tables import Records, deviation_cells, values, with_deviation

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
REGIME_NAMES = {
    MAIN_REGIME: "main setting",
    "many": "15,000 reviews",
    "large": "15,000 reviews, batches of 200, 11 epochs",
    "dropout": "dropout 0.2",
    "negated": "15 of 100 opinions negated",
    "apart": "aspects independent",
    "shared": "adjectives shared",
}
LAMBDA_ROWS, LAMBDA_1 = [f"a2r-lambda-{strength:g}" for strength in LAMBDAS], "a2r-lambda-1"
MEASURES = {"accuracy": "accuracy", "f1": "F1", "x1": "X1"}
EPOCHS = {"chosen": "", "last": ", last epoch"}
ORIGIN = Origin("b3bf9c8a", "python -m studies run rationales --out DIR --device cuda --workers 14")


def setting_name(setting: str) -> str:
    """skewed20 -> skewed 20, biased75 -> biased 0.75"""
    if setting.startswith("biased"):
        return f"biased {int(setting.removeprefix('biased')) / 100:g}"
    return setting.replace("skewed", "skewed ")


def row_name(row: str) -> str:
    """rnp-0.0003 -> RNP, rate 3e-4; a2r-lambda-10 -> A2R, λ = 10"""
    name, _, rest = row.partition("-")
    if rest.startswith("lambda-"):
        return f"{name.upper()}, λ = {rest.removeprefix('lambda-')}"
    return name.upper() + (f", rate {float(rest):.0e}".replace("e-0", "e-") if rest else "")


def rows(records: PlantedRecords) -> list[list[str]]:
    """Every regime, aspect, setting and row: means and standard deviations over seeds, in %.

    RNP has one row for each rate; `selected` marks that with the best validation accuracy.
    """
    columns = [f"{name}{epoch}" for epoch in EPOCHS.values() for name in MEASURES.values()]
    scores = with_deviation([*columns, "validation accuracy"])
    table = [["regime", "aspect", "setting", "row", "seeds", "selected", *scores, "paper F1", "paper X1"]]
    names = [*map(rnp_row, (*SLOW_RATES, *RATES)), "a2r", *(f"a2r-{rate:g}" for rate in RATES[1:])]
    names += [*LAMBDA_ROWS, LAMBDA_1]
    for regime, aspect, setting, row in product(REGIME_NAMES, ASPECTS, SETTINGS, names):
        if runs := runs_of(records, aspect, setting, row, regime):
            cells = [x for when in EPOCHS for name in MEASURES for x in deviation_cells(values(runs, name, when))]
            cells += deviation_cells(values(runs, "accuracy", split="validation"))
            is_selected = bool(records.rnp(aspect, setting, regime)) and runs == records.rnp(aspect, setting, regime)
            start = [REGIME_NAMES[regime], aspect, setting_name(setting), row_name(row), str(len(runs))]
            has_paper = regime == MAIN_REGIME and (is_selected or row == "a2r")
            paper = published(aspect, setting, row) if has_paper else ["", ""]
            table.append([*start, "yes" if is_selected or row == "a2r" else "", *cells, *paper])
    return table


def runs_of(records: PlantedRecords, aspect: str, setting: str, row: str, regime: str = MAIN_REGIME) -> Records:
    """The runs of a row; λ = 1 is the row `a2r`, with as many seeds as other values of λ."""
    if row == LAMBDA_1:
        is_compared = setting in CORE_SETTINGS and records.of(aspect, setting, f"a2r-lambda-{LAMBDAS[0]:g}", regime)
        return records.of(aspect, setting, "a2r", regime, FEW_SEEDS) if is_compared else []
    return records.of(aspect, setting, row, regime)


def published(aspect: str, setting: str, row: str) -> list[str]:
    """The paper's F1 and X1 of RNP or A2R."""
    numbers = PAPER.get((aspect, setting), (None,) * 4)
    pair = numbers[2:] if row == "a2r" else numbers[:2]
    return ["" if number is None else f"{number:.1f}" for number in pair]


def cell_numbers(name: str, runs: Records, epochs: tuple[str, ...] = ("chosen",)) -> Iterator[Number]:
    """Means over seeds, in %; and how many seeds select the first sentence in most reviews."""
    for when in epochs:
        for measure in MEASURES:
            if numbers := values(runs, measure, when):
                key = measure if when == "chosen" else f"{when}-{measure}"
                yield ORIGIN.mean(f"{key}.{name}", numbers)
    yield ORIGIN.number(f"interlocked.{name}", sum(x > 50 for x in values(runs, "x1")), n=len(runs))
    yield ORIGIN.number(f"lowest-f1.{name}", min(values(runs, "f1")), n=len(runs))


def numbers() -> list[Number]:
    """Cells of the main regime by aspect, setting and row; those of other regimes begin with the regime."""
    records = load()
    entries: list[Number] = []
    for aspect, setting in product(ASPECTS, SETTINGS):
        entries += cell_numbers(f"{aspect}.{setting}.rnp", records.rnp(aspect, setting))
        entries += cell_numbers(f"{aspect}.{setting}.a2r", records.of(aspect, setting, "a2r"))
        entries.append(ORIGIN.number(f"rate.{aspect}.{setting}", records.rate(aspect, setting)))
    variants = [*map(rnp_row, SLOW_RATES), *(f"a2r-{rate:g}" for rate in RATES[1:])]
    for setting, row in product(CORE_SETTINGS, [*variants, *LAMBDA_ROWS, LAMBDA_1]):
        entries += cell_numbers(f"palate.{setting}.{row}", runs_of(records, "palate", setting, row), ("chosen", "last"))
    for row in (*LAMBDA_ROWS, LAMBDA_1):
        runs = runs_of(records, "palate", "biased80", row, LAMBDA_REGIME)
        entries += cell_numbers(f"{LAMBDA_REGIME}.palate.biased80.{row}", runs)
    for regime, setting in product(OTHER_REGIMES, CORE_SETTINGS):
        entries += cell_numbers(f"{regime}.palate.{setting}.rnp", records.rnp("palate", setting, regime, FEW_SEEDS))
        entries += cell_numbers(
            f"{regime}.palate.{setting}.a2r", records.of("palate", setting, "a2r", regime, FEW_SEEDS)
        )
    scores = [values(records.of(aspect, setting, "a2r"), "f1") for aspect in ASPECTS[:2] for setting in SETTINGS]
    return [
        *entries,
        ORIGIN.number("a2r.lowest-mean-f1", min(map(mean, scores))),
        ORIGIN.number("a2r.lowest-seed-f1", min(map(min, scores))),
    ]


def data(records: list[Path] = FILES) -> Data:
    return {"planted-reviews.csv": rows(load(records))}
