"""Numbers of docs/results/rationales.md about movie reviews."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from studies.movies.plan import BASELINES, MINILM, ROWS, SHARE, SPANS, selected_rates
from studies.numbers import Number, Origin
from studies.stability.statistics import difference
from studies.study import Data
from studies.tables import RECORDS, Records, deviation_cells, read_records, values, with_deviation

PAPER = {  # Yu et al. 2021, Table 4: P, R, F1, %; a penalty for more than 20 % of the words or 10 spans, but no limit
    "rnp": (35.6, 21.1, 24.1),
    "three-player": (38.2, 26.0, 28.0),
    "hardkuma": (31.1, 28.3, 27.0),
    "hardkuma-tuned": (31.1, 28.3, 27.0),
    "hardkuma-multipliers": (31.1, 28.3, 27.0),
    "a2r": (48.7, 31.9, 34.9),
}
FILE = RECORDS / "movies.jsonl"
ORDER = (*BASELINES, "attention", *(row for row in ROWS if row != "attention"), *MINILM, "supervised")
SCORES = {
    "P": ("p", "chosen", "test"),
    "R": ("r", "chosen", "test"),
    "F1": ("f1", "chosen", "test"),
    "F1, validation": ("f1", "chosen", "validation"),
    "accuracy": ("accuracy", "chosen", "test"),
    "F1, last epoch": ("f1", "last", "test"),
    "F1, validation, last epoch": ("f1", "last", "validation"),
}
"""Column -> measure, epoch and split."""
PAPER_COLUMNS = ("paper P", "paper R", "paper F1")
HEADING = ("row", "rate", "n", *with_deviation(SCORES), "share", "spans", "within", *PAPER_COLUMNS)
MEASURES = (("f1", "f1", "test"), ("f1-validation", "f1", "validation"), ("accuracy", "accuracy", "test"))
"""Name of the number, measure and split."""
ORIGIN = Origin("57d35b9a", "python -m studies run movies --out DIR --device cuda --workers 12")


def load(paths: Iterable[str | Path] = (FILE,)) -> dict[str, Records]:
    """Row -> its runs at the selected rate."""
    results: dict[str, Records] = defaultdict(list)
    records = read_records(paths)
    rates = selected_rates(records)
    for record in records:
        if record["rate"] == rates.get(record["row"]):  # both are None for a row without tuning
            results[record["row"]].append(record)
    return results


def is_within_limits(runs: Records) -> bool:
    """Whether the selection of every review is within SHARE and SPANS."""
    scores = [run["chosen"][split] for run in runs for split in ("validation", "test")]
    return all(score["most share"] <= SHARE + 1e-9 and score["most spans"] <= SPANS for score in scores)


def rows(results: dict[str, Records]) -> list[list[str]]:
    """Means and standard deviations over seeds, in %."""
    table = [list(HEADING)]
    for row in ORDER:
        if runs := results.get(row, []):
            scores = [cell for of in SCORES.values() for cell in deviation_cells(values(runs, *of))]
            extent = f"{mean(values(runs, 'share')):.1f}", f"{mean(values(runs, 'spans')) / 100:.1f}"
            rate = "" if runs[0]["rate"] is None else f"{runs[0]['rate']:g}"
            paper = map(str, PAPER.get(row, ("", "", "")))
            table.append(
                [row, rate, str(len(runs)), *scores, *extent, "yes" if is_within_limits(runs) else "NO", *paper]
            )
    return table


def numbers() -> list[Number]:
    """F1, accuracy and F1 on validation reviews of every row, as shares; p values of A2R and HardKuma."""
    results = load()
    entries: list[Number] = []
    for row, runs in results.items():
        for name, measure, split in MEASURES:
            if scores := values(runs, measure, split=split):
                entries.append(ORIGIN.mean(f"{name}.{row}", [score / 100 for score in scores]))
    for _, measure, split in MEASURES[:2]:
        ours, theirs = ({"": values(results[row], measure, split=split)} for row in ("a2r", "hardkuma-multipliers"))
        entries.append(ORIGIN.number(f"p.a2r.hardkuma-multipliers.{split}", difference(ours, theirs).p))
    return entries


def data(records: list[Path] = [FILE]) -> Data:  # noqa: B006
    return {"movie-rationales.csv": rows(load(records))}
