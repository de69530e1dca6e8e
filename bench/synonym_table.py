"""Tables of bench/synonym_groups.py.

    python bench/synonym_table.py RECORDS... [--split validation] [--corpora sst2,imdb]
                                             [--by-corpus | --tempered | --targets ROW | --select GROUPS [--margin 0.1]]

A record replaces that of the same job in an earlier file.

The main table has ratios to vanilla without groups: means over seeds, then geometric means over corpora.  Δ macro-F1,
entropy, top-7 overlap and τ are means.  `--tempered` compares every row with vanilla at the same normalized entropy: a
temperature divides its attention scores; measures between two temperatures are interpolated.

`--targets` compares a row with the targets of the study, with 95 % t intervals (studies/stability/statistics.py).

Comprehensiveness at equal confidence: a factor multiplies the logits of every model, so that its mean confidence is the
mean of vanilla's without groups.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from operator import ge, gt, le
from statistics import geometric_mean, mean, stdev
from typing import Any

from studies.tables import minus_signs, read_records

PROBES = ("cf3", "wn3", "cf-only3", "wn-only3", "typo3")
SHIFTS = ("jensen-shannon", "label-flip", "prediction-change")
BASE = ("vanilla", "none")
FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
"""Factors of the logits; `scaled` of a record has (confidence, comprehensiveness) for each."""
STEP_COSTS = {"vanilla": 1.0, "word-at": 1.98, "consensus": 2.61}
"""Cost of a step on a GPU, over that of vanilla: docs/methods/details.md."""
JOB_FIELDS = ("corpus", "technique", "groups", "seed")
Row = tuple[str, str]


class Records:
    """The measures of all models, by corpus and row."""

    def __init__(self, paths: Sequence[str], split: str, corpora: Sequence[str]) -> None:
        self.cells: dict[tuple[str, Row], list[dict[str, Any]]] = defaultdict(list)
        self.full: dict[tuple[str, Row], list[dict[str, Any]]] = defaultdict(list)
        jobs = {tuple(r.get(name) for name in JOB_FIELDS): r for r in read_records(paths)}
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

    def equal_confidence(self, row: Row) -> float:
        """Geometric mean of the ratios of comprehensiveness to vanilla's, all models at vanilla's mean confidence."""
        import numpy as np

        ratios = []
        for corpus in self.present(row):
            models, base = ([c["scaled"] for c in self.cells[corpus, key] if "scaled" in c] for key in (row, BASE))
            if models and base:
                target = mean(points[FACTORS.index(1.0)][0] for points in base)
                values = [
                    [float(np.interp(target, *zip(*points, strict=True))) for points in m] for m in (models, base)
                ]
                ratios.append(mean(values[0]) / mean(values[1]))
        return geometric_mean(ratios) if len(ratios) == len(self.present(row)) else float("nan")

    def gain(self, row: Row) -> float:
        return mean(self.average(c, row, "macro-f1") - self.average(c, BASE, "macro-f1") for c in self.present(row))

    def cost(self, row: Row) -> float:
        """Epochs × cost of a step, with the teachers, over that of vanilla; NaN if no model has epochs."""
        from cheaper_consensus import ROWS

        if row[0] not in ROWS or row[0] == "self-anchor":
            return float("nan")
        costs, plan = [], ROWS[row[0]]
        for corpus in self.present(row):
            own, vanilla = (self._steps(corpus, key) for key in (row, BASE))
            teachers = plan.teachers * self._steps(corpus, (plan.teacher, row[1])) if plan.teachers else 0.0
            costs.append((own + teachers) / vanilla)
        return mean(costs)

    def _steps(self, corpus: str, row: Row) -> float:
        """Mean cost of one run in epochs of vanilla."""
        from cheaper_consensus import ROWS

        own = STEP_COSTS.get(str(ROWS[row[0]].technique), STEP_COSTS["word-at"])
        runs = [record["epochs"] for record in self.full[corpus, row] if "epochs" in record]
        costs = [sum(n * (STEP_COSTS["consensus"] if s == "student" else own) for s, n in run.items()) for run in runs]
        return mean(costs) if costs else float("nan")


def main_table(records: Records) -> list[list[str]]:
    probes = [p for p in PROBES if records.level(BASE, f"label-flip/{p}") == records.level(BASE, f"label-flip/{p}")]
    heading = ["technique", "groups", "models", "Δ macro-F1", *(f"{p} JSD / flips / Δp" for p in probes), "deletion"]
    table = [[*heading, "seeds", "comp.", "comp. at equal confidence", "entropy", "top-7 cf3", "τ cf3", "cost"]]
    for row in records.rows:
        count = min(len(records.cells[corpus, row]) for corpus in records.present(row))
        shifts = [" / ".join(f"{records.ratio(row, f'{m}/{p}'):.2f}" for m in SHIFTS) for p in probes]
        ratios = [records.ratio(row, m) for m in ("label-flip/deletion3", "seeds", "comprehensiveness")]
        levels = [records.level(row, m) for m in ("normalized-entropy", "top-7-overlap/cf3", "kendall/cf3")]
        ratios.append(records.equal_confidence(row))
        numbers = [f"{value:.2f}" for value in (*ratios, *levels, records.cost(row))]
        missing = [] if records.present(row) == records.corpora else [f" ({', '.join(records.present(row))})"]
        table.append(["".join([row[0], *missing]), row[1], str(count), f"{records.gain(row):+.3f}", *shifts, *numbers])
    return table


def corpus_table(records: Records) -> list[list[str]]:
    measures = ("macro-f1", "label-flip/cf3", "label-flip/wn3", "label-flip/wn-only3")
    table = [["corpus", "technique", "groups", "models", "macro-F1", "flips cf3", "flips wn3", "flips wn-only3"]]
    for corpus in records.corpora:
        for row in records.rows:
            if cells := records.cells.get((corpus, row)):
                values = [[100 * cell[measure] for cell in cells] for measure in measures]
                cells_of_row = [f"{mean(v):.1f} ± {stdev(v) if len(v) > 1 else 0:.1f}" for v in values]
                table.append([corpus, *row, str(len(cells)), *cells_of_row])
    return table


def tempered_table(records: Records, split: str) -> list[list[str]]:
    """Every row beside vanilla at its entropy, as ratios to vanilla at temperature 1."""
    measures = [f"{m}/{p}" for p in ("cf3", "wn3", "wn-only3") for m in SHIFTS]
    measures += ["seeds", "top-7-overlap/cf3", "kendall/cf3", "comprehensiveness"]
    table = [["row", "groups", "entropy", *measures]]
    for row in records.rows:
        own: dict[str, list[float]] = defaultdict(list)
        for corpus in records.present(row):
            for measure in measures:
                own[measure].append(records.average(corpus, row, measure) / records.average(corpus, BASE, measure))
        control = {measure: control_ratios(records, row, measure, split) for measure in measures}
        level = f"{records.level(row, 'normalized-entropy'):.2f}"
        for name, values in ((row[0], own), ("vanilla, tempered", control)):
            table.append([name, row[1], level, *(f"{geometric_mean(values[m]):.2f}" for m in measures)])
    return table


def control_ratios(records: Records, row: Row, measure: str, split: str = "test") -> list[float]:
    """Ratios to vanilla of vanilla at the normalized entropy of the row, by corpus."""
    ratios = []
    for corpus in records.present(row):
        target = records.average(corpus, row, "normalized-entropy")
        flat = _at_entropy(records.full[corpus, BASE], split, measure, target)
        ratios.append(flat / records.average(corpus, BASE, measure))
    return ratios


TARGETS = (
    ("flips, 3 substitutions of cf", "both", "label-flip/cf3", "≤ 0.30"),
    ("Δp, the same", "both", "prediction-change/cf3", "≤ 0.30"),
    ("JSD, the same", "both", "jensen-shannon/cf3", "≤ 0.15"),
    ("unused table: flips, groups of cf under wn", "cf", "label-flip/wn3", "≤ 0.80"),
    ("JSD, the same", "cf", "jensen-shannon/wn3", "≤ 0.45"),
    ("unused table: flips, groups of wn under cf", "wn", "label-flip/cf3", "≤ 0.80"),
    ("JSD, the same", "wn", "jensen-shannon/cf3", "≤ 0.45"),
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


def shortfall(records: Records, row: Row, margin: float = 0.0) -> float:
    """Sum of the relative amounts by which a row misses the targets; `margin` makes ratios stricter."""
    ratios = [records.ratio(row, measure) / bar for measure, bar in MAX_RATIOS.items()]
    ratios = [(1 + margin) * ratio for ratio in (*ratios, 0.93 / records.ratio(row, "comprehensiveness"))]
    return sum(max(0.0, ratio - 1) for ratio in (*ratios, 2 - records.gain(row) / 0.015))


def targets_table(records: Records, technique: str) -> list[list[str]]:
    """The row's value for each target, its interval and whether the value meets the target."""
    from studies.stability.statistics import difference, ratio

    table = [["target", "groups", "data sets", "value", "95 % interval", "met"]]
    for name, groups, measure, target in TARGETS:
        row, (sign, bar) = (technique, groups), target.split()
        corpora = records.present(row)
        ours, vanilla = ({c: records.values(c, key, measure) for c in corpora} for key in (row, BASE))
        estimate = (difference if "+" in bar else ratio)(ours, vanilla)
        value, low, high = (f"{number:{'+' if '+' in bar else ''}.3f}" for number in estimate[:3])
        met = {"≤": le, "≥": ge, ">": gt}[sign](estimate.value, float(bar))
        cells_of_row = [value, f"{low} to {high}", "yes" if met else "no"]
        table.append([f"{name} {target}", groups, str(len(corpora)), *cells_of_row])
    return table


def _at_entropy(models: list[dict[str, Any]], split: str, measure: str, target: float) -> float:
    """The measure of vanilla at a normalized entropy, interpolated between temperatures; constant beyond them."""
    import numpy as np

    names = [split, *sorted(name for name in models[0] if name.startswith("temperature "))]
    models = [model for model in models if len([n for n in model if n in names]) == len(names)]

    def average(name: str, key: str) -> float:
        return mean(model[name][key] for model in models if model[name].get(key) is not None)

    points = [(average(name, "normalized-entropy"), average(name, measure)) for name in names]
    return float(np.interp(target, *zip(*points, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("records", nargs="+")
    parser.add_argument("--split", default="test")
    parser.add_argument("--corpora", default="")
    parser.add_argument("--by-corpus", action="store_true")
    parser.add_argument("--tempered", action="store_true")
    parser.add_argument("--targets", metavar="ROW", help="compare this technique with the targets")
    parser.add_argument("--select", metavar="GROUPS", help="print the student with the least shortfall, then cost")
    parser.add_argument("--margin", type=float, default=0.0, help="select by ratios that are stricter by this share")
    options = parser.parse_args()
    records = Records(options.records, options.split, [c for c in options.corpora.split(",") if c])
    if options.select:
        from cheaper_consensus import SELECTABLE

        rows = [(name, options.select) for name in SELECTABLE]
        rows = [row for row in rows if records.present(row) == records.corpora]
        missing = {row: round(shortfall(records, row, options.margin), 3) for row in rows}
        for row in rows:
            print(row[0], f"{missing[row]:.3f} {records.cost(row):.2f}", file=sys.stderr)
        print(min(rows, key=lambda row: (missing[row], records.cost(row)))[0])
        return
    if options.targets:
        table = targets_table(records, options.targets)
    elif options.by_corpus:
        table = corpus_table(records)
    else:
        table = tempered_table(records, options.split) if options.tempered else main_table(records)
    table.insert(1, ["---"] * len(table[0]))
    print(minus_signs("\n".join(f"| {' | '.join(line)} |" for line in table)))


if __name__ == "__main__":
    main()
