"""Answers of audits by data set, row and explainer: how many seeds are a yes, undecided, a no or not meaningful."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from steadygaze.properties import PROPERTIES
from studies.numbers import Number, Origin
from studies.study import Data
from studies.tables import RECORDS, markdown, read_records
from studies.verdicts.plan import CORPORA, DECIDED, EXPLAINERS, ROWS

FILE = RECORDS / "verdicts.jsonl.gz"
COMMIT = "c396a2b4, dde5f318"
"""The commit of the code that made the records."""
RUN = "python -m studies run verdicts --tables TABLES --glove FILE --out DIR --workers 15"
ORIGIN = Origin(COMMIT, RUN)
ANSWERS = ("yes", "undecided", "no", "not meaningful", "not measured")
VERDICTS = ("faithfulness", "stability", "stability-unused", "robustness", "seed-consistency", "shortcut-leakage")
ORDER = (
    *("vanilla", "tempered", "vanilla-groups", "word-at", "word-at-groups", "consensus", "consensus-groups"),
    *("anchored", "seat"),
)
"""Rows as in the tables."""
NAMES = {
    "attention": "attention",
    "integrated-gradients": "integrated gradients",
    "leave-one-out": "leave-one-out",
    "input-x-gradient": "input × gradient",
}
UNUSED = "-unused"
BEST = "best"
Record = dict[str, Any]
Cells = dict[tuple[str, str], list[Record]]
"""Data set and row -> the audits of all seeds."""


def cells_of(records: Iterable[Record]) -> Cells:
    cells: Cells = {(corpus, row): [] for corpus in CORPORA for row in ORDER}
    for record in records:
        if record["kind"] == "audit":
            cells[record["corpus"], record["row"]].append(record)
    return cells


def answers(audits: Iterable[Record], verdict: str, explainer: str) -> Counter[str]:
    return Counter(audit["answers"][explainer][verdict] for audit in audits)


def is_yes(counts: Counter[str]) -> bool:
    """The rule of plan.py."""
    return counts["yes"] > 0 and counts["yes"] >= DECIDED * counts.total()


def best_explainer(audits: Sequence[Record], verdict: str) -> str:
    """The explainer with the most yes; of equals, the one with the fewest no, then the first."""

    def rank(explainer: str) -> tuple[int, int]:
        counts = answers(audits, verdict, explainer)
        return counts["yes"], -(counts.total() - counts["yes"] - counts["undecided"])

    return max(EXPLAINERS, key=rank)


def limits(verdict: str) -> dict[str, tuple[float, float]]:
    """Deciding row -> thresholds of yes and of no; those of faithfulness, on which it depends, included."""
    name = verdict.removesuffix(UNUSED)
    pairs = {}
    for item in dict.fromkeys((name, "faithfulness")):
        rule = PROPERTIES[item].rule
        assert rule is not None
        for row, pair in rule.limits.items():
            exchanged = verdict.endswith(UNUSED) and row.startswith("weight-correlation/reworded")
            pairs[row + UNUSED if exchanged else row] = pair
    return pairs


def obstacle(audits: Sequence[Record], verdict: str, explainer: str) -> tuple[str, list[float]] | None:
    """The deciding row farthest from a yes: its name, and its value, interval and number of texts, means over seeds."""
    farthest: tuple[float, str, list[float]] | None = None
    for row, (good, bad) in limits(verdict).items():
        entries = [audit["numbers"][explainer].get(row) for audit in audits]
        entries = [entry for entry in entries if entry is not None and entry[1] is not None]
        if good <= bad or not entries:
            continue
        means = [mean(entry[i] for entry in entries) for i in range(4)]
        if farthest is None or means[1] - good < farthest[0]:
            farthest = (means[1] - good, row, means)
    return None if farthest is None else farthest[1:]


def numbers() -> list[Number]:
    return list(numbers_of(read_records([FILE])))


def numbers_of(records: list[Record]) -> Iterator[Number]:
    cells = cells_of(records)
    audits = [audit for group in cells.values() for audit in group]
    yield ORIGIN.number("models", len(audits))
    yield ORIGIN.number("seeds", min((len(group) for group in cells.values() if group), default=0))
    for name in ("texts", "training texts"):
        yield ORIGIN.number(name, max(audit[name] for audit in audits))
    yield ORIGIN.number("cpu", sum(record["cpu"] for record in records if "cpu" in record))
    yield from _whole_audits(audits)
    for verdict in VERDICTS:
        for row in ROWS:
            yield from _data_sets(cells, verdict, row)
    for (corpus, row), group in cells.items():
        yield ORIGIN.number(f"audits.{corpus}.{row}", len(group))
        if group:
            yield from _cell(f"{corpus}.{row}", group)


def _whole_audits(audits: Sequence[Record]) -> Iterator[Number]:
    """Answers of whole audits, and how many of them differ from those of the deciding checks alone."""
    pairs = [
        (answer, audit["answers"][explainer][verdict])
        for audit in audits
        if "full" in audit
        for explainer, of_explainer in audit["full"].items()
        for verdict, answer in of_explainer.items()
    ]
    yield ORIGIN.number("whole.audits", sum("full" in audit for audit in audits))
    yield ORIGIN.number("whole.answers", len(pairs))
    yield ORIGIN.number("whole.different", sum(whole != part for whole, part in pairs))


def _data_sets(cells: Cells, verdict: str, row: str) -> Iterator[Number]:
    """On how many data sets the row is a yes, for each explainer and for any; `with`: by which explainers."""
    groups = [cells[corpus, row] for corpus in CORPORA if cells[corpus, row]]
    counts = {name: sum(is_yes(answers(group, verdict, name)) for group in groups) for name in EXPLAINERS}
    for name, count in counts.items():
        yield ORIGIN.number(f"data-sets.{verdict}.{row}.{name}", count, n=len(groups))
    some = sum(any(is_yes(answers(group, verdict, name)) for name in EXPLAINERS) for group in groups)
    yield ORIGIN.number(f"data-sets.{verdict}.{row}.any", some, n=len(groups))
    listed = [f"{NAMES[name]} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]) if count]
    yield ORIGIN.number(f"with.{verdict}.{row}", ", ".join(listed) or "none")


def _cell(prefix: str, group: Sequence[Record]) -> Iterator[Number]:
    for name in ("accuracy", "flips-own", "flips-unused"):
        yield ORIGIN.mean(f"{name}.{prefix}", [audit[name] for audit in group])
    for verdict in VERDICTS:
        best = best_explainer(group, verdict)
        yield ORIGIN.number(f"best.{verdict}.{prefix}", NAMES[best])
        for explainer in (*EXPLAINERS, BEST):
            counts = answers(group, verdict, best if explainer == BEST else explainer)
            cell = "/".join(str(counts[answer]) for answer in ANSWERS[:4])
            none = counts["not measured"] == counts.total()
            yield ORIGIN.number(f"seeds.{verdict}.{prefix}.{explainer}", "–" if none else cell, n=counts.total())
    for verdict in ("stability", "stability-unused"):
        if (reason := obstacle(group, verdict, best_explainer(group, verdict))) is not None:
            name, (value, low, high, texts) = reason
            yield ORIGIN.number(f"obstacle.{verdict}.{prefix}", value, (low, high), round(texts))
            yield ORIGIN.number(f"obstacle.name.{verdict}.{prefix}", name.removesuffix(UNUSED))
            yield ORIGIN.number(f"obstacle.threshold.{verdict}.{prefix}", limits(verdict)[name][0])


def data() -> Data:
    return {"verdicts.csv": lines_of(read_records([FILE]))}


def lines_of(records: list[Record]) -> list[list[str]]:
    """Number of seeds with each answer, and the means of the deciding rows."""
    lines = [["data", "row", "explainer", "verdict", *ANSWERS, "deciding rows, means"]]
    for (corpus, row), group in cells_of(records).items():
        for explainer in EXPLAINERS if group else ():
            for verdict in VERDICTS:
                counts = answers(group, verdict, explainer)
                means = _means(group, verdict, explainer)
                lines.append([corpus, row, explainer, verdict, *(str(counts[name]) for name in ANSWERS), means])
    return lines


def _means(group: Sequence[Record], verdict: str, explainer: str) -> str:
    own = limits(verdict).keys() - (() if verdict == "faithfulness" else limits("faithfulness").keys())
    texts = []
    for row in sorted(own):
        values = [audit["numbers"][explainer][row][0] for audit in group if row in audit["numbers"][explainer]]
        texts += [f"{row.removesuffix(UNUSED)} {mean(values):.3f}"] if values else []
    return "; ".join(texts)


def table(records: list[Path] | None = None) -> str:
    """The answers of the records of the repository, or of these."""
    return markdown(lines_of(read_records(records or [FILE])))
