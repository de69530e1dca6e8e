"""Effects of the main techniques by data set: ranges, predictions for other data, and the table of techniques.

A range has the lowest and the highest data set without hate speech.
studies/stability/statistics.py defines predictions.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import geometric_mean, mean

from stability_page import tempered_log_ratio
from stability_table import format_number, table
from studies.stability.comparison import Rows, compare_with_vanilla, rows_of
from studies.stability.plan import HATE, MAIN_SETTINGS
from studies.stability.records import study_records
from studies.stability.statistics import prediction, ratio
from studies.synonyms.runs import BASE, Records, control_ratios

RECORDS = Path(__file__).parents[1] / "studies" / "records"
PROBES = ("3-synonyms", "3-held-out", "1-wordnet")
"""Substitutes of the table used in training, of its held-out pairs, of WordNet."""
TECHNIQUES = {
    "word-at-groups": ("`word-at` with [synonym groups]({link})", "2"),
    "consensus-groups": ("`consensus` with synonym groups", "8"),
    "vanilla-groups": ("synonym groups alone", "1"),
    "word-at": ("`word-at`", "2"),
    "consensus": ("`consensus` with a synonym table", "8"),
    "consensus-word-at": ("`consensus`, `teacher=word-at`", "13"),
    "synonym-augmentation": ("`synonym-augmentation`", "2"),
    "ensemble": ("ensemble of five vanilla models", "5"),
}
"""Row -> its name in the table, its cost in vanilla runs."""
GROUPED = {
    "grouped-word-at": ("word-at", "`word-at` with synonym groups†", "2"),
    "long-student": ("4-4-t2-e8-own-x0.5-s4", "[long student]({link}#long-student)†", "4.9"),
    "two-teachers": ("4-4-t2-e2", "`consensus`, [two short teachers]({link}#cheaper-students), groups†", "3.6"),
}
"""Row -> that of the study of synonym groups, its name, its training time over vanilla's."""
BOTH_TABLES, OTHER_TABLE = ("cf3", "both"), ("wn3", "cf")
"""Probe and groups in that study: the counter-fitted table, or WordNet, which took no part in training."""
GROUPED_PROBES = {PROBES[0]: BOTH_TABLES, PROBES[2]: OTHER_TABLE}
FLIPS, LOST, SHIFT, ORDER = "label-flip", "top-k-lost", "jensen-shannon", "kendall"
HEADER = [
    *("technique", "cost", "label flips: table; held-out; WordNet", "top-7 words lost: table; held-out; WordNet"),
    *("Kendall's τ: table; held-out; WordNet", "shift (JSD): table; held-out; WordNet"),
    *("shift of vanilla made as flat", "normalized entropy", "macro-F1"),
    "on hate speech: flips<br>lost<br>shift<br>macro-F1",
]
SHORT_ROWS = ("word-at-groups", "consensus-groups", "word-at", "synonym-augmentation")
SHORT_COLUMNS = (0, 1, 2, 3, 5, 6, 9)
NOT_MEASURED = "not measured"


@cache
def rows() -> Rows:
    return rows_of(study_records())


def change(ratio: float) -> str:
    """
    >>> change(0.39), change(1.16), change(0.999)
    ('−61', '+16', '0')
    """
    return format_number(100 * (ratio - 1), "+.0f").replace("-", "−")


def span(ratios: Sequence[float]) -> str:
    """From the smallest effect to the largest.

    >>> span([0.47, 0.31, 0.42]), span([0.4, 1.16]), span([0.5, 0.5])
    ('−53…−69', '+16…−60', '−50')
    """
    return _ends([change(number) for number in sorted(ratios, reverse=mean(ratios) < 1)])


def difference_span(numbers: Sequence[float], form: str) -> str:
    return _ends([format_number(number, form).replace("-", "−") for number in sorted(numbers)])


def _ends(texts: Sequence[str]) -> str:
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]}…{texts[-1]}"


def by_setting(row: str, measure: str, settings: Sequence[str] = MAIN_SETTINGS) -> list[float]:
    """Ratios to vanilla."""
    estimates = [compare_with_vanilla(ratio, rows(), row, measure, [setting]) for setting in settings]
    return [estimate.value for estimate in estimates if estimate is not None]


def differences(row: str, measure: str, settings: Sequence[str] = MAIN_SETTINGS) -> list[float]:
    def average(name: str, setting: str) -> float:
        return mean(record[measure] for record in rows()[name][setting].values())

    return [average(row, setting) - average("vanilla", setting) for setting in settings]


def predicted(row: str, measure: str, settings: Sequence[str] = MAIN_SETTINGS) -> tuple[float, float, float]:
    """The ratio, and where that of another data set lies with 95 % probability; also of the rows of GROUPED."""
    if row in GROUPED:
        kind, _, probe = measure.partition("/")
        key, groups = GROUPED_PROBES[probe]
        return prediction(*_grouped_values((GROUPED[row][0], groups), kind, key))[:3]
    estimate = compare_with_vanilla(prediction, rows(), row, measure, list(settings))
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row}")
    return estimate[:3]


def technique_table(link: str, short: str = "") -> str:
    """Changes from vanilla in %, entropy and macro-F1 as differences; `link`: the page about synonym groups.

    `short`: the rows and columns of README.
    """
    if short:
        lines = [HEADER, *(_technique(name, link) for name in SHORT_ROWS)]
        lines = [[line[column] for column in SHORT_COLUMNS] for line in lines]
    else:
        lines = [
            HEADER,
            *(_technique(name, link) for name in TECHNIQUES),
            *(_of_groups(name, link) for name in GROUPED),
        ]
    header, *rows = lines
    return table(header, rows)


PREDICTED = {
    f"{name}, {probe}": f"{kind}/{key}"
    for name, kind in (("flips", FLIPS), ("top-7 lost", LOST), ("shift", SHIFT))
    for probe, key in zip(("table", "held-out", "WordNet"), PROBES, strict=True)
}


def prediction_table() -> str:
    """Mean without hate speech, and 95 % prediction interval of another data set, in %."""
    lines = []
    for row, (name, _) in TECHNIQUES.items():
        lines.append([_plain(name), *(_predicted_cell(predicted(row, key)) for key in PREDICTED.values())])
    for row, (_, name, _) in GROUPED.items():
        cells = [
            _predicted_cell(predicted(row, key)) if key.partition("/")[2] in GROUPED_PROBES else NOT_MEASURED
            for key in PREDICTED.values()
        ]
        lines.append([_plain(name), *cells])
    return table(["technique", *PREDICTED], lines)


def _plain(name: str) -> str:
    """The name without links."""
    return re.sub(r"\[|\]\(.*?\)", "", name)


def _predicted_cell(estimate: tuple[float, float, float]) -> str:
    value, low, high = map(change, estimate)
    return f"{value} [{low}, {high}]"


def hate_outside_predictions() -> tuple[int, int, int]:
    """Cells of the table of predictions in which hate lies below the interval, above it, and all cells."""
    cells = [(row, key) for row in TECHNIQUES for key in PREDICTED.values()]
    ratios = [(by_setting(row, key, [HATE])[0], *predicted(row, key)[1:]) for row, key in cells]
    return sum(hate < low for hate, low, _ in ratios), sum(hate > high for hate, _, high in ratios), len(cells)


def _technique(row: str, link: str) -> list[str]:
    name, cost = TECHNIQUES[row]
    measured = [
        "; ".join(span(by_setting(row, f"{kind}/{probe}")) for probe in PROBES) for kind in (FLIPS, LOST, SHIFT)
    ]
    flat = [mean(tempered_log_ratio(rows(), row, s, f"{SHIFT}/{probe}") for s in MAIN_SETTINGS) for probe in PROBES]
    measured.insert(2, "; ".join(difference_span(differences(row, f"{ORDER}/{probe}"), "+.2f") for probe in PROBES))
    hate = [
        "; ".join(change(*by_setting(row, f"{kind}/{probe}", [HATE])) for probe in PROBES)
        for kind in (FLIPS, LOST, SHIFT)
    ]
    return [
        *(name.format(link=link), cost, *measured, "; ".join(change(math.exp(log)) for log in flat)),
        difference_span(differences(row, "normalized-entropy"), "+.2f"),
        difference_span(differences(row, "macro-f1"), "+.3f"),
        "<br>".join([*hate, difference_span(differences(row, "macro-f1", [HATE]), "+.3f")]),
    ]


@cache
def _grouped() -> Records:
    files = [str(RECORDS / f"synonym_groups_{name}.jsonl") for name in ("five_seeds", "tempered", "long_student")]
    return Records(files, "test", ["sst2", "rotten_tomatoes", "tweet_emotion"])


def _grouped_values(row: tuple[str, str], kind: str, probe: str) -> tuple[dict[str, list[float]], ...]:
    """Data set -> one number per seed, of the row and of vanilla."""
    study, key, lost = _grouped(), f"{kind}/{probe}".replace(LOST, "top-7-overlap"), kind == LOST
    return tuple(
        {c: [1 - value if lost else value for value in study.values(c, name, key)] for c in study.present(row)}
        for name in (row, BASE)
    )


def _of_groups(row: str, link: str) -> list[str]:
    """A row of the study of synonym groups: groups of both tables, and under WordNet those of the other table alone."""
    study, (technique, name, cost) = _grouped(), GROUPED[row]

    def gains(measure: str, groups: str = BOTH_TABLES[1]) -> list[float]:
        of = technique, groups
        return [study.average(c, of, measure) - study.average(c, BASE, measure) for c in study.present(of)]

    def ratios(kind: str, groups: str, probe: str) -> list[float]:
        ours, plain = _grouped_values((technique, groups), kind, probe)
        return [mean(ours[c]) / mean(plain[c]) for c in ours]

    probes = (BOTH_TABLES, OTHER_TABLE)
    known = [[span(ratios(kind, groups, probe)) for probe, groups in probes] for kind in (FLIPS, LOST, SHIFT)]
    known.insert(2, [difference_span(gains(f"{ORDER}/{probe}", groups), "+.2f") for probe, groups in probes])
    flat = [geometric_mean(control_ratios(study, (technique, groups), f"{SHIFT}/{probe}")) for probe, groups in probes]
    entropy, macro = difference_span(gains("normalized-entropy"), "+.2f"), difference_span(gains("macro-f1"), "+.3f")
    cells = [f"{table}; {NOT_MEASURED}; {wordnet}" for table, wordnet in (*known, map(change, flat))]
    return [name.format(link=link), cost, *cells, entropy, macro, NOT_MEASURED]
