"""Differences between a report and a rerun of the same audit, as sentences."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steadygaze.results.formatting import explainer_name
from steadygaze.results.report import Report
from steadygaze.results.row import Row

ONCE = {"v": "the version of steadygaze", "model": "the model", "data": "the data"}
"""Settings that all rows of an audit share: a difference is listed once, and the rows are still compared."""
Key = tuple[str, tuple[tuple[str, Any], ...]]


def differences(old: Report, new: Report, tolerance: float = 1e-6) -> list[str]:
    """Return the differences beyond an absolute or relative `tolerance`."""
    return [
        *(f"version of {name}: was {was}, is {now}" for name, was, now in _changed(old.versions, new.versions)),
        *_once(old.rows, new.rows),
        *_verdicts(old, new),
        *_rows(_by_key(old.rows), _by_key(new.rows), tolerance),
    ]


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield name, old.get(name, "not known"), new.get(name, "not known")


def _once(old: Iterable[Row], new: Iterable[Row]) -> Iterator[str]:
    was, now = ({name: _values(rows, name) for name in ONCE} for rows in (list(old), list(new)))
    for name, one, other in _changed(was, now):
        yield f"{ONCE[name]}: was {one}, is {other}"


def _values(rows: Iterable[Row], name: str) -> str:
    return ", ".join(dict.fromkeys(str(row.settings[name]) for row in rows if name in row.settings)) or "not known"


def _verdicts(old: Report, new: Report) -> Iterator[str]:
    was, now = ({v.title: v.answer for v in report.verdicts} for report in (old, new))
    for title, one, other in _changed(was, now):
        yield f"{title}: the answer was {one!r}, is {other!r}"


def _rows(old: Mapping[Key, list[Row]], new: Mapping[Key, list[Row]], tolerance: float) -> Iterator[str]:
    for key in dict.fromkeys([*old, *new]):
        was, now = old.get(key, []), new.get(key, [])
        for one, other in zip(was, now, strict=False):
            yield from _row(one, other, tolerance)
        for left in was[len(now) :]:
            yield f"{_name(left)} is missing: it was {left.value:.6g} ({left.signature})"
        for more in now[len(was) :]:
            yield f"{_name(more)} is new: it is {more.value:.6g} ({more.signature})"


def _row(old: Row, new: Row, tolerance: float) -> Iterator[str]:
    if old.n != new.n:
        yield f"{_name(old)}: n was {old.n:,}, is {new.n:,} ({old.signature})"
    if not _alike(old.value, new.value, tolerance):
        yield f"{_name(old)}: was {old.value:.9g}, is {new.value:.9g} ({old.signature})"
    ends, others = old.interval or (), new.interval or ()
    if len(ends) != len(others) or not all(_alike(a, b, tolerance) for a, b in zip(ends, others, strict=True)):
        yield f"{_name(old)}: its interval was {_interval_text(ends)}, is {_interval_text(others)} ({old.signature})"


def _by_key(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    """Group rows that should be equal: same measure and settings, except n and ONCE."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        settings = tuple(
            sorted((name, str(value)) for name, value in row.settings.items() if name not in (*ONCE, "corpus"))
        )
        groups[row.measure, settings].append(row)
    return groups


def _alike(one: float, other: float, tolerance: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def _name(row: Row) -> str:
    return f"{row.measure} of {explainer_name(row)}"


def _interval_text(ends: Iterable[float]) -> str:
    return " to ".join(f"{end:.9g}" for end in ends) or "none"
