"""The numbers that decide a verdict: what each is, and where yes ends and no begins."""

from dataclasses import dataclass

from steadygaze.record import Row
from steadygaze.report.axis import in_words
from steadygaze.report.report import Report, Verdict
from steadygaze.report.words import direction, span


@dataclass(frozen=True, slots=True)
class Deciding:
    """A number that decides a verdict."""

    row: Row
    told: str
    limits: str
    """Where yes ends and no begins, in words."""


LABELS = ("accuracy", "macro-f1")
"""What is said of the labels, beside what decides the verdicts."""


def main_rows(report: Report) -> list[Row]:
    """The few numbers that a short account needs: how often the label is right, and what the verdicts rest on."""
    named = {signature for verdict in report.verdicts for signature in verdict.rows}
    return [row for row in report.rows if row.n and (row.measure in LABELS or row.signature in named)]


def deciding(report: Report, verdict: Verdict) -> list[Deciding]:
    rows = {row.signature: row for row in report.rows}
    found = [rows[signature] for signature in verdict.rows if signature in rows]
    return [_decided(report, verdict, row) for row in found]


def _decided(report: Report, verdict: Verdict, row: Row) -> Deciding:
    limits = verdict.limits.get(row.measure)
    return Deciding(row, told(report, row), "" if limits is None else ", ".join(in_words(limits)))


def told(report: Report, row: Row) -> str:
    """What a measure is, between which numbers it lies, and which end is the good one."""
    fact, better = report.meaning(row.measure), report.better(row.measure)
    if fact is None:
        return ""
    cite = f" ({fact.cite})" if fact.cite.strip("—") else ""
    probe = report.probes.get(row.measure.partition("/")[2], "")
    return f"{fact.about.rstrip('.')}{cite}. {probe} Range {span(fact)}; {direction(better)}.".replace("  ", " ")
