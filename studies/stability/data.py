"""All comparisons, means and configurations of the study, as CSV files."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from statistics import geometric_mean, mean, stdev
from typing import Any

from steadygaze.study.seed_statistics import holm
from studies.stability.comparison import PROBES, Rows, compare, is_difference, rows_of, with_first_seeds
from studies.stability.plan import GRID, MAIN_SETTINGS, SELECTION_PROBES, STARTS_FROM_VANILLA
from studies.stability.records import SELECTION, Record, read, study_records
from studies.stability.statistics import Estimate
from studies.study import Data

ON_THE_MODEL = (
    *("macro-f1", "sufficiency", "pearson/gradient", "normalized-entropy"),
    *(f"jensen-shannon/{probe}" for probe in PROBES.values()),
    *(f"prediction-change/{probe}" for probe in ("fgm-label", "3-synonyms", "3-held-out")),
    *("label-flip/3-synonyms", "label-flip/3-held-out", "comprehensiveness"),
)
ON_THE_ORDER = tuple(f"{measure}/{probe}" for measure in ("top-k-overlap", "kendall") for probe in PROBES.values())
FAMILIES = (ON_THE_MODEL, ON_THE_ORDER)
"""p is corrected for all comparisons of a family by Holm's method, for each data set and each base of comparison."""
LEVELS = ("macro-f1", "confidence", "normalized-entropy", "distance-to-uniform", "overlap", *ON_THE_MODEL[4:])
LEVELS += (*ON_THE_ORDER, "sufficiency", "pearson/gradient")
ALL_VANILLA, OWN_START = "all vanilla", "own start"
Lines = list[list[str]]


def files() -> Data:
    records = [record for record in study_records() if "same-as" not in record]  # no row with models of another
    rows = rows_of(records)
    return {
        "stability.csv": _comparisons(rows),
        "stability-means.csv": _means(with_first_seeds(rows)),
        "stability-seeds.csv": _between_seeds(records),
        "stability-substitutions.csv": _substitutions(rows),
        "stability-selection.csv": _selection(read(SELECTION)),
        "stability-configurations.csv": _configurations(rows),
    }


def _comparisons(rows: Rows) -> Lines:
    """Three data sets together, then each alone."""
    header = [
        "data",
        "technique",
        "compared with",
        "measure",
        "statistic",
        "value",
        "low",
        "high",
        "p (Holm)",
        "models",
    ]
    shown = with_first_seeds(rows)
    lines = [header]
    for place, settings in {"three data sets": MAIN_SETTINGS, **{s: [s] for s in rows["vanilla"]}}.items():
        for own in (False, True):
            names = [row for row in shown if row.startswith(STARTS_FROM_VANILLA) or not own]
            for family in FAMILIES:
                lines += compared(shown, place, settings, own, names, family)
    return lines


def compared(
    rows: Rows, place: str, settings: list[str], own: bool, names: Sequence[str], family: Iterable[str]
) -> Iterator[list[str]]:
    """Rows against vanilla, with p corrected for all these comparisons."""
    estimates: list[tuple[str, str, Estimate]] = []
    for row in names:
        for measure in family:
            present = [s for s in settings if s in rows[row]]
            estimate = compare(rows, row, measure, present, own) if row != "vanilla" and present else None
            if estimate is not None:
                estimates.append((row, measure, estimate))
    corrected = holm([estimate.p for _, _, estimate in estimates])
    for (row, measure, estimate), p in zip(estimates, corrected, strict=True):
        models = sum(len(rows[row][s]) for s in settings if s in rows[row])
        statistic, base = "difference" if is_difference(measure) else "ratio", OWN_START if own else ALL_VANILLA
        yield [place, row, base, measure, statistic, *_cells([*estimate[:3], p]), str(models)]


def _cells(values: Iterable[Any], digits: int = 4) -> list[str]:
    """Numbers with a few digits; what is not finite is an empty cell."""
    return [f"{value:.{digits}g}" if isfinite(value) else "" for value in values]


def _means(rows: Rows) -> Lines:
    lines = [["data", "technique", "measure", "mean", "standard deviation", "models"]]
    for setting in rows["vanilla"]:
        for row, runs in rows.items():
            present = list(runs.get(setting, {}).values())
            for measure in LEVELS:
                if values := [record[measure] for record in present if record.get(measure) is not None]:
                    deviation = stdev(values) if len(values) > 1 else float("nan")
                    lines.append([setting, row, measure, *_cells([mean(values), deviation]), str(len(values))])
            if present:
                share = mean(bool(record["collapsed"]) for record in present)
                lines.append([setting, row, "collapsed", *_cells([share]), "", str(len(present))])
    return lines


def _between_seeds(records: list[Record]) -> Lines:
    runs = [record for record in records if record["phase"] == "seeds"]
    plain = {record["setting"]: record for record in runs if record["row"] == "vanilla"}
    keys = ("jensen-shannon/seeds", "top-k-overlap/seeds", "prediction-change/seeds")
    lines = []
    for record in runs:
        ratios = [record[key] / plain[record["setting"]][key] for key in (keys[0], keys[2])]
        cells = _cells([*(record[key] for key in keys), *ratios])
        lines.append([record["setting"], record["row"], str(record["models"]), *cells])
    names = ["JSD", "top-7 overlap", "Δp", "JSD, ratio to vanilla's", "Δp, ratio to vanilla's"]
    return [["data", "technique", "models", *names], *sorted(lines)]


def _substitutions(rows: Rows) -> Lines:
    """Texts and substitutions of the word probes, of the first vanilla model."""
    header = ["texts", "texts measured", "substitutions per text", "with a function word", "with a negation"]
    lines = [["data", "substitution", *header]]
    for setting, runs in rows["vanilla"].items():
        first = runs[min(runs)]
        for probe in ("1-synonym", "3-synonyms", "3-held-out", "1-wordnet"):
            skipped = first.get("skipped", {}).get(f"jensen-shannon/{probe}", 0)
            keys = ("words-substituted", "function-words", "negations")
            shares = _cells([first[f"{kind}/{probe}"] for kind in keys])
            lines.append([setting, probe, str(first["n"]), str(first["n"] - skipped), *shares])
    return lines


def _selection(records: list[Record]) -> Lines:
    """Every configuration of the grids on the validation splits."""
    configurations: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record["phase"] == "select":
            configurations[record["row"], _written(record)].append(record)
    lines = [["technique", "configuration", "models", "macro-F1", "shift (JSD, geometric mean)"]]
    for row in ("vanilla", *GRID):
        for (name, config), runs in configurations.items():
            if name == row:
                shift = geometric_mean(run[f"jensen-shannon/{probe}"] for run in runs for probe in SELECTION_PROBES)
                lines.append([row, config, str(len(runs)), *_cells([mean(run["macro-f1"] for run in runs), shift])])
    return lines


def _configurations(rows: Rows) -> Lines:
    lines = [["technique", "configuration (others by default)", "data"]]
    for row, runs in rows.items():
        used: dict[str, set[str]] = defaultdict(set)
        for setting, records in runs.items():
            for record in records.values():
                used[_written(record)].add(setting)
        lines += [[row, config, " ".join(sorted(where))] for config, where in used.items()]
    return lines


def _written(record: Record) -> str:
    config = json.dumps(record.get("config", {})).strip("{}").replace('"', "")
    return config or "defaults"
