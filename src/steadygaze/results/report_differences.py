"""Differences between a report and a rerun of the same audit, as sentences."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steadygaze.results.formatting import explainer_name
from steadygaze.results.report import Report
from steadygaze.results.row import Row

REPORT_WIDE = {
    "v": "the version of steadygaze",
    "model": "the model",
    "predictions": "the predictions of the black box (digest)",
    "data": "the data",
}
"""Settings that all rows of an audit share: a difference is listed once, and the rows are still compared."""
Key = tuple[str, tuple[tuple[str, Any], ...]]


def differences(old: Report, new: Report, tolerance: float = 1e-6) -> list[str]:
    """Return the differences beyond an absolute or relative `tolerance`."""
    return [
        *(
            f"version of {name}: was {old_version}, is {new_version}"
            for name, old_version, new_version in _changed(old.versions, new.versions)
        ),
        *_once(old.rows, new.rows),
        *_verdicts(old, new),
        *_rows(_by_key(old.rows), _by_key(new.rows), tolerance),
    ]


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield name, old.get(name, "not known"), new.get(name, "not known")


def _once(old: Iterable[Row], new: Iterable[Row]) -> Iterator[str]:
    old_values, new_values = ({name: _values(rows, name) for name in REPORT_WIDE} for rows in (list(old), list(new)))
    for name, old_value, new_value in _changed(old_values, new_values):
        yield f"{REPORT_WIDE[name]}: was {old_value}, is {new_value}"


def _values(rows: Iterable[Row], name: str) -> str:
    return ", ".join(dict.fromkeys(str(row.settings[name]) for row in rows if name in row.settings)) or "not known"


def _verdicts(old: Report, new: Report) -> Iterator[str]:
    old_answers, new_answers = map(_answers, (old, new))
    for title, old_answer, new_answer in _changed(old_answers, new_answers):
        yield f"{title}: the answer was {old_answer!r}, is {new_answer!r}"


def _answers(report: Report) -> dict[str, str]:
    """The answers by title; those about explainers after the first with their name."""
    others = {f"{v.title} ({name})": v.answer for name, verdicts in report.other_verdicts.items() for v in verdicts}
    return {**{v.title: v.answer for v in report.verdicts}, **others}


def _rows(old: Mapping[Key, list[Row]], new: Mapping[Key, list[Row]], tolerance: float) -> Iterator[str]:
    for key in dict.fromkeys([*old, *new]):
        old_rows, new_rows = old.get(key, []), new.get(key, [])
        for old_row, new_row in zip(old_rows, new_rows, strict=False):
            yield from _row(old_row, new_row, tolerance)
        for removed in old_rows[len(new_rows) :]:
            yield f"{_name(removed)} is missing: it was {removed.value:.6g} ({removed.signature})"
        for added in new_rows[len(old_rows) :]:
            yield f"{_name(added)} is new: it is {added.value:.6g} ({added.signature})"


def _row(old: Row, new: Row, tolerance: float) -> Iterator[str]:
    if old.n != new.n:
        yield f"{_name(old)}: n was {old.n:,}, is {new.n:,} ({old.signature})"
    if not _alike(old.value, new.value, tolerance):
        yield f"{_name(old)}: was {old.value:.9g}, is {new.value:.9g} ({old.signature})"
    old_ends, new_ends = old.interval or (), new.interval or ()
    if len(old_ends) != len(new_ends) or not all(
        _alike(a, b, tolerance) for a, b in zip(old_ends, new_ends, strict=True)
    ):
        change = f"was {_interval_text(old_ends)}, is {_interval_text(new_ends)}"
        yield f"{_name(old)}: its interval {change} ({old.signature})"


def _by_key(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    """Group rows that should be equal: same measure and settings, except n and REPORT_WIDE."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        settings = tuple(
            sorted((name, str(value)) for name, value in row.settings.items() if name not in (*REPORT_WIDE, "corpus"))
        )
        groups[row.measure, settings].append(row)
    return groups


def _alike(first: float, second: float, tolerance: float) -> bool:
    return (math.isnan(first) and math.isnan(second)) or math.isclose(
        first, second, rel_tol=tolerance, abs_tol=tolerance
    )


def _name(row: Row) -> str:
    return f"{row.measure} of {explainer_name(row)}"


def _interval_text(ends: Iterable[float]) -> str:
    return " to ".join(f"{end:.9g}" for end in ends) or "none"
