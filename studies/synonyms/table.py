"""Numbers and tables of docs/results/synonym-groups.md.

Ratios are to vanilla without groups: means over seeds, then geometric means over data sets.  Δ macro-F1, entropy,
top-7 overlap and τ are means.
"""

import math
from collections.abc import Callable, Iterator
from operator import ge, gt, le
from pathlib import Path
from statistics import geometric_mean

from steadygaze.results.intervals import Interval
from studies.numbers import Number
from studies.study import Data
from studies.synonyms.plan import GROUP_NAMES, LONG, SHORT, THREE, TWO, WEIGHT_8, name_of
from studies.synonyms.runs import (
    AGAIN,
    BASE,
    FIRST,
    PARTS,
    SHARPER,
    Part,
    Records,
    Row,
    control_ratios,
    study_records,
)
from studies.tables import RECORDS, markdown, minus_signs

PROBES = {"cf3": "cf", "wn3": "wn", "cf-only3": "cf only", "wn-only3": "wn only", "typo3": "typos"}
SHIFTS = {"jensen-shannon": "JSD", "label-flip": "flips", "prediction-change": "Δp"}
RATIOS = {"label-flip/deletion3": "deletion, flips", "seeds": "seeds", "comprehensiveness": "comp."}
LEVELS = {"normalized-entropy": "entropy", "top-7-overlap/cf3": "top-7 cf", "kendall/cf3": "τ cf"}
TARGETS = (
    ("flips under cf", "both", "label-flip/cf3", "≤ 0.30"),
    ("Δp under cf", "both", "prediction-change/cf3", "≤ 0.30"),
    ("JSD under cf", "both", "jensen-shannon/cf3", "≤ 0.15"),
    ("unused table: flips under wn", "cf", "label-flip/wn3", "≤ 0.80"),
    ("unused table: JSD under wn", "cf", "jensen-shannon/wn3", "≤ 0.45"),
    ("unused table: flips under cf", "wn", "label-flip/cf3", "≤ 0.80"),
    ("unused table: JSD under cf", "wn", "jensen-shannon/cf3", "≤ 0.45"),
    ("merged tables: flips under wn", "both", "label-flip/wn3", "≤ 0.50"),
    ("JSD between seeds", "both", "seeds", "≤ 0.20"),
    ("macro-F1", "both", "macro-f1", "≥ +0.015"),
    ("comprehensiveness", "both", "comprehensiveness", "≥ 0.93"),
    ("top-7 overlap under cf", "both", "top-7-overlap/cf3", "> +0"),
    ("τ under cf", "both", "kendall/cf3", "> +0"),
)
"""Name, groups, measure, target; a target with a sign is a difference from vanilla, others are ratios."""
MAX_RATIOS = {
    measure: float(target.split()[1]) for _, groups, measure, target in TARGETS if (groups, target[0]) == ("both", "≤")
}
"""Largest ratios to vanilla of groups from both tables."""
MEASURES = (
    *(f"label-flip/{probe}" for probe in ("cf3", "wn3", "cf-only3", "wn-only3")),
    *("jensen-shannon/cf3", "jensen-shannon/wn3", "prediction-change/cf3", "seeds", "comprehensiveness"),
)
"""Ratios to vanilla among the numbers."""


def decimal(value: float, form: str = ".2f") -> str:
    """The number, or an empty cell if it is NaN."""
    return "" if math.isnan(value) else f"{value:{form}}"


def main_table(records: Records) -> list[list[str]]:
    shifts = [f"{measure}/{probe}" for probe in PROBES for measure in SHIFTS]
    columns = [f"{probe} {shift}" for probe in PROBES.values() for shift in SHIFTS.values()]
    heading = ["row", "groups", "models", "data sets", "Δ macro-F1", *columns, *RATIOS.values()]
    table = [[*heading, "comp. at equal confidence", *LEVELS.values(), "cost", "name in plan.py"]]
    for row in records.rows:
        ratios = [records.ratio(row, measure) for measure in (*shifts, *RATIOS)]
        levels = [records.level(row, measure) for measure in LEVELS]
        numbers = [*ratios, records.equal_confidence(row), *levels, records.cost(row)]
        counts = str(records.count(row)), str(len(records.present(row)))
        start = [name_of(row[0]), GROUP_NAMES.get(row[1], row[1]), *counts, decimal(records.gain(row), ".3f")]
        table.append([*start, *map(decimal, numbers), row[0]])
    return table


def tempered_table(records: Records) -> list[list[str]]:
    """Every row beside vanilla at its entropy, as ratios to vanilla without temperature."""
    measures = {f"{m}/{p}": f"{PROBES[p]} {SHIFTS[m]}" for p in ("cf3", "wn3", "wn-only3") for m in SHIFTS}
    measures |= {"seeds": "seeds", "top-7-overlap/cf3": "top-7 cf", "kendall/cf3": "τ cf", "comprehensiveness": "comp."}
    table = [["row", "groups", "entropy", *measures.values()]]
    for row in records.rows[1:]:
        level = f"{records.level(row, 'normalized-entropy'):.2f}"
        own = [geometric_mean(own_ratios(records, row, measure)) for measure in measures]
        flat = [geometric_mean(control_ratios(records, row, measure)) for measure in measures]
        for name, values in ((name_of(row[0]), own), (f"vanilla, tempered to {name_of(row[0])}", flat)):
            table.append([name, GROUP_NAMES.get(row[1], row[1]), level, *map(decimal, values)])
    return table


def own_ratios(records: Records, row: Row, measure: str) -> list[float]:
    """Ratios to vanilla, by data set."""
    return [records.average(c, row, measure) / records.average(c, BASE, measure) for c in records.present(row)]


def shortfall(records: Records, row: Row, margin: float = 0.0) -> float:
    """Sum of the relative amounts by which a row misses the targets; `margin` makes ratios stricter."""
    ratios = [records.ratio(row, measure) / bar for measure, bar in MAX_RATIOS.items()]
    ratios = [(1 + margin) * ratio for ratio in (*ratios, 0.93 / records.ratio(row, "comprehensiveness"))]
    return sum(max(0.0, ratio - 1) for ratio in (*ratios, 2 - records.gain(row) / 0.015))


def targets_table(records: Records, technique: str, groups: str = "both") -> list[list[str]]:
    """The row's value for each target, its 95 % t interval over seeds, and whether the value meets the target.

    `groups`: instead of those of both tables.
    """
    checks: dict[str, Callable[[float, float], bool]] = {"≤": le, "≥": ge, ">": gt}
    table = [["row", "measure", "groups", "data sets", "target", "value", "low", "high", "met"]]
    for name, of, measure, target in TARGETS:
        row, (sign, bar) = (technique, groups if of == "both" else of), target.split()
        if not (corpora := records.present(row)) or "both" != groups != row[1]:
            continue
        estimate = (records.estimated_difference if "+" in bar else records.estimated_ratio)(row, measure)
        numbers = [decimal(number, ".3f") for number in estimate[:3]]
        met = "yes" if checks[sign](estimate.value, float(bar)) else "no"
        start = [name_of(technique), name, GROUP_NAMES.get(row[1], row[1]), str(len(corpora)), target]
        table.append([*start, *numbers, met])
    return table


def confidence_table() -> list[list[str]]:
    """Comprehensiveness and over-confidence with linked groups; vanilla of the first run has no confidence."""
    heading = ["row", "models", "comp., validation", "comp., test", "equal conf., test"]
    table = [[*heading, "excess, SST-2", "excess, Rotten Tomatoes", "Δ macro-F1", "cf flips", "wn flips", "seeds"]]
    for run in ("tempered", "five_seeds"):
        test, validation = (study_records(run, TWO, split) for split in ("test", "validation"))
        for row in test.rows:
            if row[1] != "linked" and (row != BASE or run != "tempered"):
                continue
            ratios = [part.ratio(row, "comprehensiveness") for part in (validation, test)]
            excess = [test.average(c, row, "confidence") - test.average(c, row, "accuracy") for c in TWO]
            others = [test.ratio(row, measure) for measure in ("label-flip/cf3", "label-flip/wn3", "seeds")]
            cells = [*map(decimal, (*ratios, test.equal_confidence(row), *excess)), decimal(test.gain(row), ".3f")]
            name = name_of(row[0]) + (", no groups" if row == BASE else "")
            table.append([name, str(test.count(row)), *cells, *map(decimal, others)])
    return table


def all_rows() -> list[list[str]]:
    """The main tables of all parts; the shortfall is that of ratios made 10 % stricter."""
    table: list[list[str]] = []
    for name, part in PARTS.items():
        heading, *lines = main_table(records := part.records)
        table = table or [["texts", *heading, "shortfall"]]
        for row, line in zip(records.rows, lines, strict=True):
            has_targets = name == "validation" and row[1] == "both"
            table.append([part.label, *line, f"{shortfall(records, row, 0.1):.2f}" if has_targets else ""])
    return table


def data() -> Data:
    first, second = study_records("five_seeds", THREE), PARTS["second"].records
    targets = [
        *(targets_table(second, name) for name in (LONG, WEIGHT_8)),
        *(targets_table(first, SHORT, groups) for groups in ("both", "linked")),
    ]
    return {
        "synonym-groups.csv": all_rows(),
        "synonym-flatness.csv": tempered_table(first),
        "synonym-confidence.csv": confidence_table(),
        "synonym-targets.csv": [targets[0][0], *(line for part in targets for line in part[1:])],
    }


def ratio_interval(records: Records, row: Row, measure: str) -> Interval | None:
    """None: a data set has a single value."""
    if min(len(records.values(corpus, of, measure)) for corpus in records.present(row) for of in (row, BASE)) < 2:
        return None
    return records.estimated_ratio(row, measure)[1:3]


def row_numbers(prefix: str, part: Part, records: Records) -> Iterator[Number]:
    """Ratios with their intervals, equal confidence, macro-F1, entropy and cost of the rows that the page names."""
    for row in part.rows:
        origin, name, count = AGAIN if "-own-" in row[0] else part.origin, ".".join(row), records.count(row)
        for measure in MEASURES:
            if row != BASE and not math.isnan(value := records.ratio(row, measure)):
                interval = ratio_interval(records, row, measure)
                yield origin.number(f"{prefix}.{measure}.{name}", value, interval, count)
        gain = records.estimated_difference(row, "macro-f1")
        yield origin.number(f"{prefix}.macro-f1.{name}", gain.value, gain[1:3] if count > 1 else None, count)
        others = {"equal-confidence": records.equal_confidence(row), "cost": records.cost(row)}
        others["entropy"] = records.level(row, "normalized-entropy")
        for measure, value in others.items():
            if not math.isnan(value):
                yield origin.number(f"{prefix}.{measure}.{name}", value, n=count)


def other_numbers(first: Records, imdb: Records) -> Iterator[Number]:
    """Rates of flips; flips by data set, fewer than vanilla's, as shares; vanilla with flatter attention."""
    for row in (BASE, ("word-at", "both")):
        for probe in ("cf3", "wn3"):
            yield FIRST.number(f"flip-rate.{probe}.{'.'.join(row)}", first.level(row, f"label-flip/{probe}"))
    yield SHARPER.number("flip-rate.cf3.imdb", imdb.level(BASE, "label-flip/cf3"))
    second = study_records(PARTS["second"].files, THREE)
    for row in (("vanilla", "both"), (LONG, "both"), (LONG, "cf"), (LONG, "wn")):
        for probe in ("cf3", "wn3"):
            ratios = own_ratios(second, row, f"label-flip/{probe}")
            for corpus, value in zip(second.present(row), ratios, strict=True):
                yield AGAIN.number(f"fewer-flips.{probe}.{'.'.join(row)}.{corpus}", 1 - value)
    for row in ((SHORT, "both"), (SHORT, "none")):
        for measure in ("jensen-shannon/cf3", "label-flip/cf3"):
            value = geometric_mean(control_ratios(first, row, measure))
            yield FIRST.number(f"tempered-vanilla.{measure}.{'.'.join(row)}", value)


def numbers() -> list[Number]:
    records = {name: part.records for name, part in PARTS.items() if part.rows}
    rows = (number for name, runs in records.items() for number in row_numbers(name, PARTS[name], runs))
    return [*rows, *other_numbers(records["first"], records["imdb"])]


def table(
    records: list[Path] = [RECORDS / "synonym_groups_five_seeds.jsonl"],  # noqa: B006
    *,
    split: str = "test",
    corpora: str = "",
) -> str:
    """Records: files or folders; a record replaces that of the same job in an earlier file."""
    runs = Records(records, split, [corpus for corpus in corpora.split(",") if corpus])
    return minus_signs(markdown(main_table(runs)))
