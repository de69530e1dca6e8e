"""The numbers that decide a verdict: what each is, where yes ends and no begins, and where it lies between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from steadygaze.record import Row
from steadygaze.report.report import Report, Verdict
from steadygaze.report.words import direction, short, span


@dataclass(frozen=True, slots=True)
class Gauge:
    """Where a number lies between its bounds, in per cent of the width; each of the three parts has a third of it."""

    value: float
    low: float
    high: float
    ends: tuple[str, str]
    """What lies between the parts."""
    upwards: bool
    """Whether the good part is on the right."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """A number that decides a verdict."""

    row: Row
    told: str
    limits: str
    gauge: Gauge | None


def deciding(report: Report, verdict: Verdict) -> list[Deciding]:
    rows = {row.signature: row for row in report.rows}
    found = [rows[signature] for signature in verdict.rows if signature in rows]
    return [_decided(report, verdict, row) for row in found]


def _decided(report: Report, verdict: Verdict, row: Row) -> Deciding:
    said, limits = told(report, row), verdict.limits.get(row.measure)
    if limits is None:
        return Deciding(row, said, "", None)
    good, bad = map(short, limits)
    upwards = report.better(row.measure) == "higher"
    counts = f"yes from {good} up, no up to {bad}" if upwards else f"yes up to {good}, no from {bad} up"
    return Deciding(row, said, counts, _gauge(report, row, limits))


def _gauge(report: Report, row: Row, limits: tuple[float, float]) -> Gauge | None:
    fact = report.meaning(row.measure)
    if fact is None or not all(map(math.isfinite, (fact.low, fact.high, row.value))):
        return None
    edges = (fact.low, *sorted(limits), fact.high)
    if not all(one < other for one, other in pairwise(edges)):
        return None  # of three parts one is a single point: words say it better
    low, high = row.interval or (row.value, row.value)
    places = [_place(value, edges) for value in (row.value, low, high)]
    first, second = map(short, sorted(limits))
    return Gauge(places[0], places[1], places[2], (first, second), limits[0] > limits[1])


def _place(value: float, edges: Sequence[float]) -> float:
    """In per cent: the three parts between four edges are drawn equally wide, whatever they measure."""
    for i, (low, high) in enumerate(pairwise(edges)):
        if value <= high:
            return round(100 * (i + max((value - low) / (high - low), 0.0)) / 3, 1)
    return 100.0


def told(report: Report, row: Row) -> str:
    """What a measure is, between which numbers it lies, and which end is the good one."""
    fact, better = report.meaning(row.measure), report.better(row.measure)
    if fact is None:
        return ""
    cite = f" ({fact.cite})" if fact.cite.strip("—") else ""
    probe = report.probes.get(row.measure.partition("/")[2], "")
    return f"{fact.about.rstrip('.')}{cite}. {probe} Range {span(fact)}; {direction(better)}.".replace("  ", " ")
