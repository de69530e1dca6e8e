"""The page of an audit: one HTML file that asks nobody for anything and runs nothing, from a Report alone.

In the order of its parts: the answers, what was audited, the numbers that decide them, texts before and after,
pictures, all numbers, what could not be asked, notes, and how it was made.  The templates are audit.html.jinja and what
it includes.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby

from markupsafe import Markup

from steadygaze.highlight import legend
from steadygaze.record import Row
from steadygaze.report.answers import COLLAPSED, meaning
from steadygaze.report.axis import Axis, aloud, axis
from steadygaze.report.cards import Deciding, deciding, told
from steadygaze.report.exchange import Pair, pair
from steadygaze.report.page import templates
from steadygaze.report.plots import MISSING, pictures
from steadygaze.report.report import Report, Shift, Verdict
from steadygaze.report.words import ICONS, interval, noun, number, whose

OTHER = "Other numbers"
OPEN = 2
"""Texts shown of each probe; the others are folded away."""


def render(report: Report) -> str:
    shown = [(shift, pair(shift)) for shift in report.shifts]
    named = noun(report.facts.get("explanation", ""))
    drawn, collapsed = pictures(report), _collapsed(report, named)
    html = (
        templates()
        .get_template("audit.html.jinja")
        .render(
            report=report,
            icons=ICONS,
            lead=_lead(report),
            summary=_summary(report),
            cards=[(one, meaning(one, bool(collapsed), named), _drawn(report, one)) for one in report.verdicts],
            noun=named,
            collapsed=collapsed,
            aloud=aloud,
            probes=_probes(shown),
            open=OPEN,
            legend=_legend([one for _, one in shown]),
            pictures=drawn,
            missing=MISSING if any(picture.svg is None for picture in drawn) else "",
            groups=_groups(report),
            absent=_absent(report),
            command=shlex.join(report.command),
            told=partial(told, report),
        )
    )
    return html.encode(errors="replace").decode()  # a lone surrogate in a text must not stop whoever writes the page


def _lead(report: Report) -> str:
    """What was audited, in a line; empty where too little is known."""
    facts = report.facts
    if not {"explanation", "model", "texts"} <= facts.keys():
        return ""
    texts = f"{facts['texts']} {'text' if facts['texts'] == '1' else 'texts'}"
    return f"Explanation: {facts['explanation']} · Model: {facts['model']} · {texts}"


def _summary(report: Report) -> dict[str, str]:
    """What to read first: date, gate, how often the label is right, and how much of the texts the model reads."""
    found = {"Date": report.date.replace("T", " ").replace("Z", " UTC")} if report.date else {}
    if report.gate is not None:
        found["Gate"] = report.gate.summary
        found["Policy"] = "; ".join(report.gate.requirements)
    row = report.find("accuracy")
    if row is not None and row.n:
        found["Accuracy"] = number(row.value) + ("" if row.interval is None else f" ({interval(row)})")
    shares = ("truncated texts", "unknown tokens")
    return found | {name.capitalize(): report.facts[name] for name in shares if name in report.facts}


def _drawn(report: Report, verdict: Verdict) -> list[tuple[Deciding, Axis | None]]:
    """The numbers that decide a verdict, each with its axis."""
    found = deciding(report, verdict)
    return [(one, axis(one.row, report.meaning(one.row.measure), verdict.limits.get(one.row.measure))) for one in found]


def _collapsed(report: Report, named: str) -> str:
    """An explanation that says the same of every text holds still, and explains nothing."""
    row = report.find(COLLAPSED)
    if row is None or not row.value > 0:
        return ""
    return row.note or f"The {named} says the same whatever the text."


def _probes(shown: Sequence[tuple[Shift, Pair]]) -> list[tuple[str, list[tuple[Shift, Pair]]]]:
    """By probe; the worst text first, and first the probe that has it."""
    worst = {shift.probe: max(s.distance for s, _ in shown if s.probe == shift.probe) for shift, _ in shown}
    ordered = sorted(shown, key=lambda one: (-worst[one[0].probe], one[0].probe, -one[0].distance))
    return [(name, list(found)) for name, found in groupby(ordered, key=lambda one: one[0].probe)]


def _legend(pairs: Sequence[Pair]) -> Markup:
    texts = [text for one in pairs for text in (one.before, one.after)]
    said = legend(texts).replace(": the known reason", ": the words that were exchanged")
    return Markup(said + (" &ensp; […]: words left out" if any(one.shortened for one in pairs) else ""))  # all ours


def _groups(report: Report) -> list[tuple[str, list[tuple[str, list[Row]]]]]:
    """Question -> whose number -> rows, in the order in which they were measured; the audited explanation first."""
    filed = {**_decided(report), **report.questions}
    found: dict[str, dict[str, list[Row]]] = {}
    for row in (row for row in report.rows if not math.isnan(row.value)):
        found.setdefault(_question(row.measure, filed), {}).setdefault(whose(row), []).append(row)
    main, last = report.facts.get("explanation"), found.pop(OTHER, None)
    if last is not None:
        found[OTHER] = last
    return [(question, sorted(rows.items(), key=lambda item: item[0] != main)) for question, rows in found.items()]


def _decided(report: Report) -> dict[str, str]:
    measures = {row.signature: row.measure for row in report.rows}
    return {measures[one]: v.question for v in report.verdicts for one in v.rows if one in measures}


def _question(measure: str, filed: Mapping[str, str]) -> str:
    """Where a measure is filed, else where all measures of its probe are, else all of its family."""
    if measure in filed:
        return filed[measure]
    family, _, probe = measure.partition("/")
    alike = {filed[name] for name in filed if probe and name.partition("/")[2] == probe}
    kin = {filed[name] for name in filed if name.partition("/")[0] == family}
    return next((min(found) for found in (alike, kin) if len(found) == 1), OTHER)


def _absent(report: Report) -> list[tuple[str, list[str]]]:
    """Why -> which measures, where a question could not be asked."""
    found: dict[str, dict[str, None]] = {}
    for row in report.rows:
        if math.isnan(row.value):
            found.setdefault(_capital(row.note or "no reason is known"), {})[f"{row.measure} ({whose(row)})"] = None
    return [(why, list(measures)) for why, measures in found.items()]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
