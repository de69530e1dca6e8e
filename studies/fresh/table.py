"""Accuracy, agreement and readers of rationalizers: numbers of docs/results/rationales.md."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from studies.fresh.run import MOVIE_ROWS, MOVIES, PLANTED_ROWS, SETTINGS
from studies.numbers import Number, Origin
from studies.study import Data
from studies.tables import RECORDS, Records, deviation_cells, read_records, with_deviation

FILE = RECORDS / "fresh.jsonl"
COLUMNS = ("validation", "accuracy", "full", "p", "r", "f1", "x1", "reader", "gap")
COLUMN_NAMES = ("accuracy, validation", "accuracy", "full text", "P", "R", "F1", "X1", "reader", "gap")
HEADING = ("texts", "row", "n", *with_deviation(COLUMN_NAMES))
ORIGIN = Origin("8587f04d", "python -m studies run fresh --out DIR --device cuda")


def groups_of(paths: Iterable[Path | str]) -> dict[tuple[str, str], Records]:
    """Texts and row -> runs, in the order of the table."""
    groups: dict[tuple[str, str], Records] = defaultdict(list)
    for record in read_records(paths):
        groups[record["corpus"], record["row"]].append(record)
    keys = product((*MOVIES, *SETTINGS), dict.fromkeys((*MOVIE_ROWS, *PLANTED_ROWS)))
    return {key: groups[key] for key in keys if key in groups}


def shares(runs: Records, measure: str) -> list[float]:
    """The measure of every run that has it."""
    scores = [_scores(run) for run in runs]
    return [score[measure] for score in scores if measure in score]


def _scores(run: dict[str, Any]) -> dict[str, float]:
    reader = run["reader"]
    scores: dict[str, float] = run["chosen"]["test"] | {"validation": run["chosen"]["validation"]["accuracy"]}
    scores |= {"full": run["full"]["test"]} if run["full"] else {}
    names = {"reader": "independent-reader-accuracy", "gap": "leakage-gap"}
    return scores | {name: reader[measure] for name, measure in names.items() if measure in reader}


def rows(paths: Iterable[Path | str]) -> list[list[str]]:
    """Means over seeds and standard deviations, in %."""
    return [
        [*key, str(len(runs)), *(cell for name in COLUMNS for cell in _percent(shares(runs, name)))]
        for key, runs in groups_of(paths).items()
    ]


def numbers() -> list[Number]:
    return [
        ORIGIN.mean(f"{name}.{corpus}.{row}", scores)
        for (corpus, row), runs in groups_of([FILE]).items()
        for name in ("accuracy", "f1", "x1", "reader", "gap")
        if (scores := shares(runs, name))
    ]


def data(records: list[Path] = [FILE]) -> Data:  # noqa: B006
    return {"fresh.csv": [list(HEADING), *rows(records)]}


def _percent(shares: list[float]) -> list[str]:
    return deviation_cells([100 * share for share in shares])
