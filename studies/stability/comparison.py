"""The models of the study by row, and comparisons of a row with vanilla."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from studies.stability.plan import SEEDS
from studies.stability.records import Record
from studies.stability.statistics import Estimate, Values, difference, paired, paired_difference, ratio

PROBES = {
    "noise": "noise",
    "FGM": "fgm-label",
    "PGD": "pgd-attention",
    "1 syn": "1-synonym",
    "3 syn": "3-synonyms",
    "3 held-out": "3-held-out",
    "1 WordNet": "1-wordnet",
}
"""Name in the tables -> name in the records."""
Statistic = Callable[[Values, Values], Estimate]
FIRST_SEEDS = "vanilla, seeds 0–4"
"""The row of the vanilla models with the seeds of most techniques."""

Rows = dict[str, dict[str, dict[int, Record]]]
"""Row -> setting -> seed -> record."""


def rows_of(records: Iterable[Record]) -> Rows:
    rows: Rows = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record["phase"] == "test":
            rows[record["row"]][record["setting"]][record["seed"]] = record | _lost(record)
    return rows


def _lost(record: Record) -> Record:
    """Shares of the seven top-weighted words that a perturbation replaces."""
    overlaps = {name: value for name, value in record.items() if name.startswith("top-k-overlap/")}
    return {name.replace("overlap", "lost"): 1 - value for name, value in overlaps.items()}


def with_first_seeds(rows: Rows) -> Rows:
    """The row FIRST_SEEDS, and all other rows."""
    first = {s: {seed: runs[seed] for seed in range(SEEDS)} for s, runs in rows["vanilla"].items()}
    return {FIRST_SEEDS: first, **rows}


def values(runs: dict[str, dict[int, Record]], key: str, settings: Iterable[str]) -> Values | None:
    """Setting -> the measure of every seed; None if a setting lacks it."""
    numbers = {s: [r[key] for _, r in sorted(runs[s].items()) if r.get(key) is not None] for s in settings if s in runs}
    return numbers if numbers and all(numbers.values()) else None


def compare_with_vanilla(statistic: Statistic, rows: Rows, row: str, key: str, settings: list[str]) -> Estimate | None:
    present = [s for s in settings if s in rows[row]]
    ours, plain = values(rows[row], key, present), values(rows["vanilla"], key, present)
    return None if ours is None or plain is None or ours.keys() != plain.keys() else statistic(ours, plain)


def compare_with_start(
    statistic: Statistic, rows: Rows, row: str, key: str, settings: Iterable[str]
) -> Estimate | None:
    """The row's models against the vanilla models of the same seeds; None if no setting has the measure."""
    runs = {s: rows[row][s] for s in settings if s in rows[row]}
    own = {s: {seed: rows["vanilla"][s][seed] for seed in runs[s]} for s in runs}
    ours, plain = values(runs, key, runs), values(own, key, runs)
    return statistic(ours, plain) if ours and plain else None


DIFFERENCES = ("macro-f1", "sufficiency", "pearson", "normalized-entropy", "kendall", "top-k-overlap")
"""Measures that are subtracted; others are divided."""


def is_difference(measure: str) -> bool:
    return measure.partition("/")[0] in DIFFERENCES


def compare(
    rows: Rows,
    row: str,
    measure: str,
    settings: list[str],
    own_start: bool = False,
    statistic: Statistic | None = None,
) -> Estimate | None:
    """A ratio or a difference: to all vanilla models, or to those that the row's models start from."""
    if own_start:
        own = paired_difference if is_difference(measure) else paired
        return compare_with_start(statistic or own, rows, row, measure, settings)
    unpaired = difference if is_difference(measure) else ratio
    return compare_with_vanilla(statistic or unpaired, rows, row, measure, settings)
