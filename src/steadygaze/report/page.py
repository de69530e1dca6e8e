"""One self-contained HTML page: facts, scores, the training curve and highlighted texts.

A Content-Security-Policy forbids scripts and external files.  Jinja2 escapes all text.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from steadygaze.core.output_paths import write_output
from steadygaze.core.types import Label
from steadygaze.report.verdict_axis import ticks
from steadygaze.results.explanation import Explanation
from steadygaze.results.formatting import interval
from steadygaze.results.formatting import number as _number
from steadygaze.results.highlight import highlight_html, is_truncated, legend
from steadygaze.results.row import Row

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
    truth: Sequence[Label | None] = (),
    notes: Sequence[str] = (),
    facts: Mapping[str, str] | None = None,
) -> str:
    """Render the page without empty parts.

    `meaning` describes measures by name.  `curve` has one mapping per epoch, and `chosen` is the selected epoch.
    `truth` has the true label of each explanation, if known.
    """
    if truth and len(truth) != len(explanations):
        raise ValueError(
            f"{len(truth)} true labels for {len(explanations)} explanations; there must be as many of each"
        )
    page = templates().get_template("page.html.jinja")
    html = page.render(
        title=title,
        lead=lead,
        rows=rows,
        meaning=meaning or {},
        curve=curve,
        panels=_panels(curve, chosen),
        chosen=chosen,
        examples=list(zip(explanations, truth or [None] * len(explanations), strict=True)),
        legend=Markup(legend(explanations)),  # no user text
        notes=notes,
        facts=facts or {},
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
        "number": _number,
        "interval": interval,
        "broken": _broken,
        "marked": lambda e: Markup(highlight_html(e)),
        "drawn": Markup,  # an SVG of report/charts.py
        "heaviest": _top_words,
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


def _top_words(e: Explanation) -> list[tuple[str, float, bool]]:
    """Top-weighted words or selected spans, their weights, and whether each overlaps the known rationale."""

    def known(begin: int, end: int) -> bool:
        return any(begin < stop and start < end for start, stop in e.rationales or ())

    if e.rationale is not None:
        return [(e.text[begin:end], probability, known(begin, end)) for begin, end, probability in e.rationale]
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
