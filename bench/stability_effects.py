"""Effects of the main techniques by data set: ranges, predictions for other data, and the table of techniques.

Hate speech stands apart: its test texts differ from its training texts, and vanilla has a macro-F1 below 0.5 there.
A range has the lowest and the highest data set of the others.  bench/stability_statistics.py defines predictions.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import geometric_mean, mean

from stability_page import tempered_log_ratio
from stability_plan import SETTINGS
from stability_records import study_records
from stability_statistics import prediction, ratio
from stability_table import Rows, compare_with_vanilla, format_number, rows_of, table
from synonym_table import BASE, Records, control_ratios

HATE = "hate-bilstm"
OTHERS = [setting for setting in SETTINGS if setting != HATE]
RECORDS = Path(__file__).parent / "records"
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
STUDENTS = {
    "4-4-t2-e8-own-x0.5-s4": ("[long student]({link}#long-student)", "4.9"),
    "4-4-t2-e2": ("`consensus`, [two short teachers]({link}#cheaper-students), groups", "3.6"),
}
"""Row of the study of synonym groups -> its name, its training time over vanilla's."""
FLIPS, LOST, SHIFT = "label-flip", "top-k-lost", "jensen-shannon"
HEADER = [
    *("technique", "cost", "label flips: table; held-out; WordNet", "top-7 words lost: table; held-out; WordNet"),
    *("shift (JSD): table; held-out; WordNet", "shift of vanilla made as flat", "normalized entropy"),
    *("macro-F1", "on hate speech: flips; macro-F1"),
]
SHORT_ROWS = (
    "word-at-groups",
    "4-4-t2-e8-own-x0.5-s4",
    "consensus-groups",
    "word-at",
    "consensus",
    "synonym-augmentation",
)
SHORT_COLUMNS = (0, 1, 2, 3, 4, 5, 8)
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


def by_setting(row: str, measure: str, settings: Sequence[str] = OTHERS) -> list[float]:
    """Ratios to vanilla."""
    estimates = [compare_with_vanilla(ratio, rows(), row, measure, [setting]) for setting in settings]
    return [estimate.value for estimate in estimates if estimate is not None]


def differences(row: str, measure: str, settings: Sequence[str] = OTHERS) -> list[float]:
    def average(name: str, setting: str) -> float:
        return mean(record[measure] for record in rows()[name][setting].values())

    return [average(row, setting) - average("vanilla", setting) for setting in settings]


def predicted(row: str, measure: str, settings: Sequence[str] = OTHERS) -> tuple[float, float, float]:
    """The ratio, and where that of another data set lies with 95 % probability."""
    estimate = compare_with_vanilla(prediction, rows(), row, measure, list(settings))
    if estimate is None:
        raise SystemExit(f"the records have no {measure} of {row}")
    return estimate[:3]


def technique_table(link: str, short: str = "") -> str:
    """Changes from vanilla in %, entropy and macro-F1 as differences; `link`: the page about synonym groups.

    `short`: the rows and columns of README.
    """
    names, columns = (SHORT_ROWS, SHORT_COLUMNS) if short else ((*TECHNIQUES, *STUDENTS), range(len(HEADER)))
    lines = [HEADER, *((_student if name in STUDENTS else _technique)(name, link) for name in names)]
    header, *rows = ([line[column] for column in columns] for line in lines)
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
        numbers = [[change(number) for number in predicted(row, key)] for key in PREDICTED.values()]
        lines.append([re.sub(r"\[|\]\(.*?\)", "", name), *(f"{value} [{low}, {high}]" for value, low, high in numbers)])
    return table(["technique", *PREDICTED], lines)


def _technique(row: str, link: str) -> list[str]:
    name, cost = TECHNIQUES[row]
    measured = [
        "; ".join(span(by_setting(row, f"{kind}/{probe}")) for probe in PROBES) for kind in (FLIPS, LOST, SHIFT)
    ]
    flat = [mean(tempered_log_ratio(rows(), row, s, f"{SHIFT}/{probe}") for s in OTHERS) for probe in PROBES]
    (flips,), hate = by_setting(row, f"{FLIPS}/3-synonyms", [HATE]), differences(row, "macro-f1", [HATE])
    return [
        *(name.format(link=link), cost, *measured, "; ".join(change(math.exp(log)) for log in flat)),
        difference_span(differences(row, "normalized-entropy"), "+.2f"),
        difference_span(differences(row, "macro-f1"), "+.3f"),
        f"{change(flips)}; {difference_span(hate, '+.3f')}",
    ]


@cache
def _grouped() -> Records:
    files = [str(RECORDS / f"synonym_groups_{name}.jsonl") for name in ("five_seeds", "tempered", "long_student")]
    return Records(files, "test", ["sst2", "rotten_tomatoes", "tweet_emotion"])


def _student(technique: str, link: str) -> list[str]:
    """A row of the study of synonym groups: groups of both tables, and under WordNet those of the other table alone."""
    study, (name, cost) = _grouped(), STUDENTS[technique]
    both, probes = (technique, "both"), {"cf3": (technique, "both"), "wn3": (technique, "cf")}

    def ratios(kind: str, row: tuple[str, str], probe: str) -> list[float]:
        key, lost = f"{kind}/{probe}".replace(LOST, "top-7-overlap"), kind == LOST
        pairs = [(study.average(c, row, key), study.average(c, BASE, key)) for c in study.present(row)]
        return [(1 - ours) / (1 - plain) if lost else ours / plain for ours, plain in pairs]

    def gains(measure: str) -> list[float]:
        return [study.average(c, both, measure) - study.average(c, BASE, measure) for c in study.present(both)]

    known = [[span(ratios(kind, row, probe)) for probe, row in probes.items()] for kind in (FLIPS, LOST, SHIFT)]
    flat = [change(geometric_mean(control_ratios(study, row, f"{SHIFT}/{probe}"))) for probe, row in probes.items()]
    entropy, macro = difference_span(gains("normalized-entropy"), "+.2f"), difference_span(gains("macro-f1"), "+.3f")
    cells = [f"{table}; {NOT_MEASURED}; {wordnet}†" for table, wordnet in (*known, flat)]
    return [name.format(link=link), cost, *cells, entropy, macro, NOT_MEASURED]
