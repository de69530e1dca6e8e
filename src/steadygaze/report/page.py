"""HTML pages: the page of explained texts, and what all pages share: templates, axes and deciding scores.

A Content-Security-Policy forbids scripts and external files.  Jinja2 escapes all text.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from steadygaze.core.output_paths import write_output
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import direction, interval, number, short_number, span
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.highlight import highlight_html, is_truncated, legend
from steadygaze.results.report import Report
from steadygaze.results.row import Better, Fact, Row, Verdict

WIDTH, HEIGHT = 360, 210  # of one panel, in SVG units
LEFT, RIGHT, TOP, BOTTOM = 48, 340, 40, 166  # of what is plotted in it


def render(
    title: str,
    *,
    lead: str = "",
    rows: Sequence[Row] = (),
    meaning: Mapping[str, str] | None = None,
    curve: Sequence[Mapping[str, float]] = (),
    chosen: float | None = None,
    explanations: Sequence[Explanation] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
    health: Health = HEALTHY,
) -> str:
    """Render the page without empty parts.

    `meaning` describes measures by name.  `curve` has one mapping per epoch, and `chosen` is the selected epoch.
    """
    page = templates().get_template("page.html.jinja")
    html = page.render(
        title=title,
        lead=lead,
        rows=rows,
        meaning=meaning or {},
        curve=curve,
        panels=_panels(curve, chosen),
        chosen=chosen,
        explanations=explanations,
        legend=Markup(legend(explanations)),  # no user text
        notes=notes,
        facts=facts or {},
        health=Markup(health.banner),  # escaped
    )
    return html.encode(errors="replace").decode()  # a lone surrogate cannot be written


def write(path: str | Path, html: str, replace: bool = False) -> None:
    """Write the page atomically."""
    write_output(path, html, replace)


@cache
def templates() -> Environment:
    """The templates of all pages, in this folder."""
    environment = Environment(
        loader=PackageLoader("steadygaze", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "interval": interval,
        "broken": _broken,
        "hyphens": lambda name: Markup("-<wbr>").join(name.split("-")),
        "sentence": sentence_html,
        "marked": lambda e, other=None: Markup(highlight_html(e, other or e.question_explanation)),
        "drawn": Markup,  # an SVG of report/chart_svg.py
        "top_words": _top_words,
    }
    environment.tests |= {"cut_off": is_truncated}
    environment.globals |= {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
    }
    return environment


def _broken(name: str) -> Markup:
    """Allow line breaks after | and / in a long name."""
    return Markup("").join(escape(part) + Markup("<wbr>") * (part in "|/") for part in re.split(r"([|/])", name))


UNBROKEN = 40
"""Characters of an option with its value that stay on one line."""
LONG_NAME = re.compile(r"\b([A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]{12,})\b")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
OPTION_AND_VALUE = re.compile(OPTION.pattern + r"(?: (?!--)(?:'[^']*'|\S+))?")


def sentence_html(text: str) -> Markup:
    """The escaped text: code between backticks, no line break in an option, nor between a number and %.

    A long name of several words breaks before its capital letters only.

    >>> sentence_html("add --test-share <0.2>: 5 % of the texts")
    Markup('add <span class="option">--test-share</span> &lt;0.2&gt;: 5\xa0% of the texts')
    >>> sentence_html("run `build --out a.csv`.")
    Markup('run <code class="inline">build <span class="option">--out a.csv</span></code>.')
    >>> sentence_html("BertForClassification of PyTorch")
    Markup('Bert<wbr>For<wbr>Classification of PyTorch')
    """
    parts = re.split(r"`([^`]+)`", re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text))
    pieces = []
    for i, part in enumerate(parts):
        pattern = OPTION_AND_VALUE if i % 2 else OPTION
        matches = list(pattern.finditer(part))
        starts = [0, *(match.end() for match in matches)]
        ends = [*(match.start() for match in matches), len(part)]
        html = Markup("").join(
            _words(part[start:end]) + (_unbroken(match.group()) if match else "")
            for start, end, match in zip(starts, ends, [*matches, None], strict=True)
        )
        pieces.append(Markup('<code class="inline">{}</code>').format(html) if i % 2 else html)
    return Markup("").join(pieces)


def _words(text: str) -> Markup:
    """The escaped text, with line breaks before the capital letters of long names."""
    parts = LONG_NAME.split(text)
    return Markup("").join(
        Markup("<wbr>").join(HUMP.split(part)) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def _unbroken(words: str) -> Markup:
    return Markup('<span class="option">{}</span>').format(words) if len(words) <= UNBROKEN else escape(words)


def _top_words(e: Explanation) -> list[tuple[str, float | None, bool]]:
    """Top-weighted words with their weights, or selected spans, and whether each overlaps the human rationale."""

    def known(begin: int, end: int) -> bool:
        return any(begin < stop and start < end for start, stop in e.rationales or ())

    if e.rationale is not None:
        return [(e.text[begin:end], None, known(begin, end)) for begin, end, _ in e.rationale]
    return [(e.tokens[i], e.weights[i], known(*e.spans[i])) for i in e.top_indices() if e.weights[i]]


@dataclass(frozen=True, slots=True)
class _Panel:
    """One series of the curve, in SVG units."""

    name: str
    points: list[tuple[float, float, float, float]]  # x, y, epoch, value
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    marked: tuple[float, float, float, float] | None  # the point of the chosen epoch

    @property
    def line(self) -> str:
        return " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in self.points)


def _panels(curve: Sequence[Mapping[str, float]], chosen: float | None) -> list[_Panel]:
    """A panel per series, each on its own scale."""
    names = dict.fromkeys(name for epoch in curve for name in epoch if name != "epoch")
    series = {name: [(e["epoch"], e[name]) for e in curve if math.isfinite(e.get(name, math.nan))] for name in names}
    return [_panel(name, pairs, chosen) for name, pairs in series.items() if pairs]


def _panel(name: str, pairs: list[tuple[float, float]], chosen: float | None) -> _Panel:
    epochs, values = [epoch for epoch, _ in pairs], [value for _, value in pairs]
    x_ticks, y_ticks = ticks(min(epochs), max(epochs), 6, least=1.0), ticks(min(values), max(values), 4)
    x0, x1 = min(epochs), max(epochs)
    y0, y1 = min(*values, *y_ticks), max(*values, *y_ticks)

    def x(epoch: float) -> float:
        return LEFT + 10 + (RIGHT - LEFT - 20) * ((epoch - x0) / (x1 - x0) if x1 > x0 else 0.5)

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * ((value - y0) / (y1 - y0) if y1 > y0 else 0.5)

    points = [(x(epoch), y(value), epoch, value) for epoch, value in pairs]
    return _Panel(
        name,
        points,
        [(x(tick), f"{tick:g}") for tick in x_ticks if x0 <= tick <= x1],
        [(y(tick), f"{tick:g}") for tick in y_ticks],
        next((point for point in points if point[2] == chosen), None),
    )


DRAWN = 1000
"""Largest number of texts on a page."""
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
    >>> axis_words((0.08, math.inf))
    ('yes up to 0.08', 'never no')
    """
    good, bad = map(short_number, limits)
    upward = limits[0] > limits[1]
    yes, no = (f"yes from {good} up", f"no up to {bad}") if upward else (f"yes up to {good}", f"no from {bad} up")
    return yes, no if math.isfinite(limits[1]) else "never no"


def axis_sentence(row: Row, value_axis: Axis) -> str:
    """Text alternative of an axis."""
    ends = f"on an axis from {value_axis.ends[0].strip('… ')} to {value_axis.ends[1].strip('… ')}"
    return f"{number(row.value)} ({interval(row)}) {ends}: {', '.join(value_axis.bounds)}."


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
    return measure_sentence(fact, better, report.probes.get(row.key.probe, ""))


def measure_sentence(fact: Fact, better: Better | None = None, probe: str = "") -> str:
    """The description of a measure, of its perturbation, its range and its better direction."""
    cite = f" ({fact.citation})" if fact.citation.strip("—") else ""
    reach = f"Range {span(fact)}; {direction(better or fact.direction)}."
    return " ".join(filter(None, (f"{fact.sentence.rstrip('.')}{cite}.", probe, reach)))


def write_explanations(
    path: Path, explanations: Iterator[Explanation], model: str, notes: Sequence[str] = (), overwrite: bool = False
) -> dict[str, int]:
    """Write a page of the first DRAWN texts; return the numbers of explained and drawn texts."""
    drawn = list(islice(explanations, DRAWN))
    total = len(drawn) + sum(1 for _ in explanations)
    others = {explanation.explainer for explanation in drawn if explanation.explainer != "attention"}
    weights = f"the {others.pop()} score of each word" if others else "the attention weight of each word"
    weights = "the selected words" if drawn and drawn[0].rationale is not None else weights
    lead = "  ".join([f"Predictions of the model `{model}`, and {weights}.", *notes])
    remarks = [f"{total - len(drawn):,} more texts were explained and are not shown."] if total > len(drawn) else []
    if any(explanation.true_label is not None for explanation in drawn):
        wrong = sum(explanation.is_wrong for explanation in drawn)
        remarks = [f"{wrong:,} of the {len(drawn):,} predictions on this page are wrong.", *remarks]
    health = drawn[0].health if drawn else HEALTHY
    write(path, render("Explanations", lead=lead, explanations=drawn, notes=remarks, health=health), overwrite)
    return {"explained": total, "drawn": len(drawn)}
