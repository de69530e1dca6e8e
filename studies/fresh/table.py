"""Accuracy, agreement and readers of rationalizers: tables of docs/results/rationales.md."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from studies.fresh.run import MOVIE_ROWS, MOVIES, PLANTED_ROWS, SETTINGS
from studies.tables import RECORDS, markdown, mean_and_deviation, minus_signs, read_records

HEADING = "texts", "row", "n", "accuracy, validation", "accuracy", "full text", "P", "R", "F1", "X1", "reader", "gap"


def rows(paths: Iterable[Path | str]) -> list[list[str]]:
    """Means over seeds and standard deviations, in %."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in read_records(paths):
        groups[record["corpus"], record["row"]].append(record)
    lines = []
    for corpus in (*MOVIES, *SETTINGS):
        for row in dict.fromkeys((*MOVIE_ROWS, *PLANTED_ROWS)):
            if records := groups.get((corpus, row)):
                tests = [record["chosen"]["test"] for record in records]
                cells = [
                    _percent([record["chosen"]["validation"]["accuracy"] for record in records]),
                    _percent([test["accuracy"] for test in tests]),
                    _percent([record["full"]["test"] for record in records if record["full"]]),
                    *(_percent([test[name] for test in tests if name in test]) for name in ("p", "r", "f1", "x1")),
                    *(
                        _percent([record["reader"][name] for record in records if name in record["reader"]])
                        for name in ("independent-reader-accuracy", "leakage-gap")
                    ),
                ]
                lines.append([corpus, row, str(len(records)), *cells])
    return lines


def _percent(shares: list[float]) -> str:
    return minus_signs(f" {mean_and_deviation([100 * share for share in shares])}").strip()


def table(records: list[Path] = [RECORDS / "fresh.jsonl"]) -> str:  # noqa: B006
    return markdown([HEADING, *rows(records)])
