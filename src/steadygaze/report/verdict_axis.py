"""The scores that decide a verdict: descriptions, and axes with intervals and thresholds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steadygaze.results.formatting import direction, interval, number, short_number, span
from steadygaze.results.report import Report
from steadygaze.results.row import Row
from steadygaze.results.verdict import Fact, Verdict

AROUND = 0.25
"""Margin on either side of the axis, as a share of the range."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions are in percent of the width."""

    ends: tuple[str, str]
    """The ends of the axis; with … if the range of the measure is larger."""
    value: float
    low: float
    high: float
    yes: float
    no: float
    bounds: tuple[str, str]
    """The thresholds of yes and no, in words."""

    @property
    def upward(self) -> bool:
        return self.yes > self.no


def axis(row: Row, fact: Fact | None, limits: tuple[float, float] | None) -> Axis | None:
    """Return None without thresholds, without a value, or if a threshold is an end of the range."""
    if fact is None or limits is None or not math.isfinite(row.value):
        return None
    if not fact.low < min(limits) < max(limits) < fact.high:
        return None
    values = (row.value, *(row.interval or (row.value, row.value)), *limits)
    least, most = min(*values, 0.0), max(*values, 0.0)  # the axis includes 0
    margin = AROUND * (most - least)
    edges = ticks(least - margin, most + margin, 8)
    low, high = max(fact.low, edges[0]), min(fact.high, edges[-1])
    value, left, right, yes, no = (round(100 * min(1.0, max(0.0, (x - low) / (high - low))), 1) for x in values)
    ends = ("… " * (low > fact.low) + short_number(low), short_number(high) + " …" * (high < fact.high))
    return Axis(ends, value, left, right, yes, no, axis_words(limits))


def axis_words(limits: Sequence[float]) -> tuple[str, str]:
    """
    >>> axis_words((0.05, 0.1)), axis_words((0.05, 0.02))
    (('yes up to 0.05', 'no from 0.1 up'), ('yes from 0.05 up', 'no up to 0.02'))
    """
    good, bad = map(short_number, limits)
    upward = limits[0] > limits[1]
    return (f"yes from {good} up", f"no up to {bad}") if upward else (f"yes up to {good}", f"no from {bad} up")


def axis_sentence(row: Row, drawn: Axis) -> str:
    """Text alternative of an axis."""
    where = f"on an axis from {drawn.ends[0].strip('… ')} to {drawn.ends[1].strip('… ')}"
    return f"{number(row.value)} ({interval(row)}) {where}: {', '.join(drawn.bounds)}."


def ticks(low: float, high: float, most: int, least: float = 0.0) -> list[float]:
    """Round numbers from just below `low` to just above `high`, about `most` of them and no closer than `least`.

    >>> ticks(0.12, 0.93, 4)
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    span = (high - low) or max(abs(high), 1.0) / 2
    power = 10 ** math.floor(math.log10(span / most))
    step = max(least, next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice * most >= span * 0.999))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, max(last, first + 1) + 1)]


@dataclass(frozen=True, slots=True)
class DecidingRow:
    """A score that decides a verdict."""

    row: Row
    sentence: str
    limits: str
    """The thresholds of yes and no, in words."""


LABELS = ("accuracy", "macro-f1")
"""Measures of correctness, shown with those of the verdicts."""


def main_rows(report: Report) -> list[Row]:
    """Rows of a short report: correctness and the rows of the verdicts."""
    signatures = {signature for verdict in report.verdicts for signature in verdict.rows}
    return [row for row in report.rows if row.n and (row.measure in LABELS or row.signature in signatures)]


def deciding_rows(report: Report, verdict: Verdict) -> list[DecidingRow]:
    rows = {row.signature: row for row in report.rows}
    deciding = [rows[signature] for signature in verdict.rows if signature in rows]
    return [_decided(report, verdict, row) for row in deciding]


def _decided(report: Report, verdict: Verdict, row: Row) -> DecidingRow:
    limits = verdict.thresholds.get(row.measure)
    return DecidingRow(row, deciding_sentence(report, row), "" if limits is None else ", ".join(axis_words(limits)))


def deciding_sentence(report: Report, row: Row) -> str:
    """Describe a measure, its range and its better direction."""
    fact, better = report.meaning(row.measure), report.better(row.measure)
    if fact is None:
        return ""
    cite = f" ({fact.citation})" if fact.citation.strip("—") else ""
    probe = report.probes.get(row.key.probe, "")
    return f"{fact.sentence.rstrip('.')}{cite}. {probe} Range {span(fact)}; {direction(better)}.".replace("  ", " ")
