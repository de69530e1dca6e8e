"""Measures of the models of the study by data set and row, and ratios to vanilla without groups."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any, NamedTuple

import numpy as np

from studies.numbers import Origin
from studies.stability.statistics import Estimate, Values, difference, ratio
from studies.synonyms.plan import FACTORS, IMDB, JOB_FIELDS, LONG, MINILM, SHORT, THREE, TWO, WEIGHT_8, row_of
from studies.tables import RECORDS, read_records

STEP_COSTS = {"vanilla": 1.0, "word-at": 1.98, "consensus": 2.61}
"""Cost of a step on a GPU, over that of vanilla: docs/methods/details.md."""


Row = tuple[str, str]
"""Technique and groups."""
BASE = ("vanilla", "none")


class Records:
    """The measures of all models, by data set and row.  A record replaces that of the same job in an earlier file."""

    def __init__(self, paths: Iterable[str | Path], split: str = "test", corpora: Sequence[str] = ()) -> None:
        self.split = split
        self.cells: dict[tuple[str, Row], list[dict[str, Any]]] = defaultdict(list)
        self.full: dict[tuple[str, Row], list[dict[str, Any]]] = defaultdict(list)
        jobs = {tuple(record.get(name) for name in JOB_FIELDS): record for record in read_records(paths)}
        for record in jobs.values():
            key = record["corpus"], (record["technique"], record["groups"])
            if not corpora or record["corpus"] in corpora:
                self.full[key].append(record)
                if split in record:  # teachers are not always measured
                    self.cells[key].append(record[split])
        self.corpora = list(dict.fromkeys(corpus for corpus, _ in self.cells))
        self.rows = sorted({row for _, row in self.cells}, key=lambda row: (row != BASE, row))

    def present(self, row: Row) -> list[str]:
        return [corpus for corpus in self.corpora if self.cells.get((corpus, row))]

    def count(self, row: Row) -> int:
        """Number of models in the data set with the fewest."""
        return min(len(self.cells[corpus, row]) for corpus in self.present(row))

    def values(self, corpus: str, row: Row, measure: str) -> list[float]:
        """One number per seed; the first seed has no distance to other seeds."""
        return [cell[measure] for cell in self.cells[corpus, row] if cell.get(measure) is not None]

    def average(self, corpus: str, row: Row, measure: str) -> float:
        values = self.values(corpus, row, measure)
        return mean(values) if values else float("nan")

    def level(self, row: Row, measure: str) -> float:
        return mean(self.average(corpus, row, measure) for corpus in self.present(row))

    def ratio(self, row: Row, measure: str) -> float:
        """Geometric mean of the ratios to vanilla without groups."""
        pairs = [(self.average(c, row, measure), self.average(c, BASE, measure)) for c in self.present(row)]
        ratios = [max(a, 1e-6) / b for a, b in pairs if b > 0 and a == a]
        return geometric_mean(ratios) if ratios else float("nan")

    def _pairs(self, row: Row, measure: str) -> tuple[Values, Values]:
        ours, vanilla = ({c: self.values(c, key, measure) for c in self.present(row)} for key in (row, BASE))
        return ours, vanilla

    def estimated_ratio(self, row: Row, measure: str) -> Estimate:
        """The ratio with its 95 % t interval over seeds."""
        return ratio(*self._pairs(row, measure))

    def estimated_difference(self, row: Row, measure: str) -> Estimate:
        return difference(*self._pairs(row, measure))

    def equal_confidence(self, row: Row) -> float:
        """Geometric mean of the ratios of comprehensiveness to vanilla's, all models at vanilla's mean confidence.

        A factor multiplies the logits of every model, so that its mean confidence is that of vanilla without groups.
        """
        ratios = []
        for corpus in self.present(row):
            models, base = ([c["scaled"] for c in self.cells[corpus, key] if "scaled" in c] for key in (row, BASE))
            if models and base:
                target = mean(points[FACTORS.index(1.0)][0] for points in base)
                own, vanilla = (mean(_interpolated(target, points) for points in m) for m in (models, base))
                ratios.append(own / vanilla)
        return geometric_mean(ratios) if len(ratios) == len(self.present(row)) else float("nan")

    def gain(self, row: Row) -> float:
        return mean(self.average(c, row, "macro-f1") - self.average(c, BASE, "macro-f1") for c in self.present(row))

    def cost(self, row: Row) -> float:
        """Epochs × cost of a step, with the teachers, over that of vanilla; NaN if no model has epochs."""
        technique, groups = row
        if (plan := row_of(technique)) is None:
            return float("nan")
        costs = []
        for corpus in self.present(row):
            own, vanilla = (self._steps(corpus, key) for key in (row, BASE))
            teachers = plan.teachers * self._steps(corpus, (plan.teacher, groups)) if plan.teachers else 0.0
            costs.append((own + teachers) / vanilla)
        return mean(costs)

    def _steps(self, corpus: str, row: Row) -> float:
        """Mean cost of one run in epochs of vanilla."""
        plan = row_of(row[0])
        assert plan is not None
        own = STEP_COSTS.get(plan.technique, STEP_COSTS["word-at"])
        runs = [record["epochs"] for record in self.full[corpus, row] if "epochs" in record]
        costs = [sum(n * (STEP_COSTS["consensus"] if s == "student" else own) for s, n in run.items()) for run in runs]
        return mean(costs) if costs else float("nan")


def control_ratios(records: Records, row: Row, measure: str) -> list[float]:
    """Ratios to vanilla of vanilla at the normalized entropy of the row, by data set.

    A temperature divides the attention scores of vanilla; measures between two temperatures are interpolated.
    """
    ratios = []
    for corpus in records.present(row):
        target = records.average(corpus, row, "normalized-entropy")
        flat = at_entropy(records.full[corpus, BASE], records.split, measure, target)
        ratios.append(flat / records.average(corpus, BASE, measure))
    return ratios


def study_records(parts: str, corpora: Sequence[str], split: str = "test") -> Records:
    """Records of the repository.  Parts: names of files, separated by spaces; a later one takes precedence."""
    files = (RECORDS / f"synonym_groups{f'_{part}' if part != 'cheaper' else ''}.jsonl" for part in parts.split())
    return Records(files, split, corpora)


def _interpolated(target: float, points: Iterable[tuple[float, float]]) -> float:
    x, y = np.array(list(points)).T
    return float(np.interp(target, x, y))


def at_entropy(models: list[dict[str, Any]], split: str, measure: str, target: float) -> float:
    """The measure of vanilla at a normalized entropy, interpolated between temperatures; constant beyond them."""
    names = [split, *sorted(name for name in models[0] if name.startswith("temperature "))]
    models = [model for model in models if len([n for n in model if n in names]) == len(names)]

    def average(name: str, key: str) -> float:
        return float(mean(model[name][key] for model in models if model[name].get(key) is not None))

    return _interpolated(target, [(average(name, "normalized-entropy"), average(name, measure)) for name in names])


RUN = "python -m studies run synonyms --tables TABLES --data-dir DATA --glove FILE --out DIR --device cuda --workers 14"
FIRST = Origin("5e22e09c", f"{RUN} --student {SHORT}")
AGAIN = Origin("a5b95bcf", f"{RUN} --unmeasured fast- --rows vanilla:none,{LONG}:both,{LONG}:cf,{LONG}:wn")
CHEAPER = Origin("287f5fe9", f"{RUN} --cheaper --corpora {','.join(THREE)}")
SHARPER = Origin("8ce29bc8", f"{RUN} --unmeasured fast- --rows vanilla:none,word-at:both,{SHORT}-x0.5:both")
REPEATED = Origin("db9835f", f"{RUN} --corpora {MINILM} --minilm FOLDER --rows vanilla:none,{LONG}:both")
FOUR = (*THREE, IMDB)
OWN_ROWS = tuple(f"4-4-t2-e{student}-own-x{t}" for student, t in ((2, 0.5), (4, 0.35), (8, 0.5)))
WEIGHTS = tuple(f"{OWN_ROWS[-1]}-s{weight}" for weight in (2, 4, 8, 16))


class Part(NamedTuple):
    """Records that are compared with the same vanilla models."""

    label: str
    files: str
    corpora: Sequence[str]
    split: str
    origin: Origin
    rows: Sequence[Row]
    """Rows whose numbers the page names."""

    @property
    def records(self) -> Records:
        return study_records(self.files, self.corpora, self.split)


def _both(*techniques: str) -> list[Row]:
    return [(technique, "both") for technique in techniques]


PARTS = {
    "first": Part(
        "three data sets, first run",
        "long_student five_seeds",
        THREE,
        "test",
        FIRST,
        [(row, groups) for row in ("vanilla", "word-at", SHORT) for groups in ("none", "both", "linked", "cf", "wn")]
        + [(LONG, groups) for groups in ("both", "cf", "wn")],
    ),
    "second": Part(
        "four data sets, second run",
        "five_seeds tempered long_student",
        FOUR,
        "test",
        AGAIN,
        [*_both("vanilla", "word-at", *OWN_ROWS, *WEIGHTS), (LONG, "cf"), (LONG, "wn"), (WEIGHT_8, "linked")],
    ),
    "imdb": Part(
        "IMDB",
        "tempered imdb-3a7fb79 long_student",
        [IMDB],
        "test",
        SHARPER,
        [("word-at", "none"), *_both("vanilla", "word-at", f"{SHORT}-x0.5", LONG)],
    ),
    "minilm": Part("MiniLM", "tempered", [MINILM], "test", SHARPER, _both("vanilla", "word-at", f"{SHORT}-x0.5")),
    "minilm-second": Part("MiniLM, second run", "minilm-db9835f", [MINILM], "test", REPEATED, _both(LONG)),
    "cheaper-test": Part("cheaper students", "cheaper", THREE, "test", CHEAPER, []),
    "cheaper": Part(
        "cheaper students, validation",
        "cheaper",
        THREE,
        "validation",
        CHEAPER,
        _both(SHORT, "t1-e2", "t2-e2", "t3-e2", "t5-e2", "self-anchor"),
    ),
    "validation": Part("long student, validation", "five_seeds tempered long_student", FOUR, "validation", AGAIN, []),
    "sharper": Part(
        "two data sets, linked",
        "tempered",
        TWO,
        "test",
        SHARPER,
        [(row, "linked") for row in (f"{SHORT}-x0.5", "4-4-t2-e1-mean-logits", "scorers-4-4-e2")],
    ),
    "linked": Part(
        "two data sets, first run", "five_seeds", TWO, "test", FIRST, [("vanilla", "linked"), (SHORT, "linked")]
    ),
}
