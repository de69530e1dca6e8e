"""The plots of a report: points, captions and tables.  Altair draws them (report/charts.py); without it only the tables
are shown.

Report.plots has the points by name.  Shares lie between 0 and 1; distances are Jensen-Shannon divergences in nats.

    moves      one point per text and perturbation   probe       name of the perturbation
                                                     distance    shift of the weights
    seeds      one per text and pair of models       max         largest weight
                                                     distance    divergence of the two models
    aopc       one per explainer and size            explainer   its name; `random` is the baseline
                                                     share       share of the words, by decreasing weight
                                                     erased      mean probability lost without them
                                                     kept        mean probability lost with only them
    gradient   one per word                          attention   share of the audited weights
                                                     gradient    share of the gradient norm
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.report.plot_tables import TABLES, Points
from steadygaze.results.formatting import measure_noun
from steadygaze.results.report import Report

FIELDS: dict[str, tuple[str, ...]] = {
    "moves": ("probe", "distance"),
    "seeds": ("max", "distance"),
    "aopc": ("explainer", "share", "erased", "kept"),
    "gradient": ("attention", "gradient"),
}
WORDS = ("probe", "explainer")
MOST = 2_000
"""Largest number of points in a plot, so that a page stays below 2 MB."""
MISSING = "Plots need two more packages: pip install 'steadygaze[report]'.  Without them, tables are shown."


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    title: str
    caption: str
    label: str
    """Text alternative."""
    head: tuple[str, ...]
    body: list[tuple[str, ...]]
    svg: str | None
    """None: the plotting packages are not installed."""


def pictures(report: Report) -> list[Picture]:
    """The plots that have points, in the order of FIELDS."""
    for name in report.plots:
        if name not in FIELDS:
            raise unknown("picture", name, FIELDS)
    points = {name: _points(name, report.plots[name]) for name in FIELDS if name in report.plots}
    of = measure_noun(report.facts.get("explanation", ""))
    return [_picture(name, data, of) for name, data in points.items() if data]


def _picture(name: str, points: Points, of: str) -> Picture:
    title, caption = TEXTS[name]
    title, caption = title.format(of=of), caption.format(of=of)
    head, body = TABLES[name](points)
    summary = "; ".join(", ".join(f"{key} {cell}" for key, cell in zip(head, row, strict=True)) for row in body[:12])
    drawn = points[:: math.ceil(len(points) / MOST)]
    if len(drawn) < len(points):
        caption += f" {len(drawn):,} of {len(points):,} points are drawn."
    return Picture(name, title, caption, f"{title}. {summary}.", head, body, _draw(name, drawn, of))


TEXTS = {
    "moves": (
        "Shift of the {of} under small perturbations",
        "The box is the middle half of the texts, the line the median, and dots are outliers. Look for boxes far "
        "from 0 and for outliers on the right.",
    ),
    "seeds": (
        "Divergence between two seeds",
        "A shape is wide where there are many texts; the line is the median. Look at the right-hand shapes: where one "
        "word has most of the weight, models that differ only in their seed should agree on it.",
    ),
    "aopc": (
        "Probability lost when words are erased or kept",
        "A faithful explanation lies above the dashed line (random words) when its words are erased, and below it "
        "when only they are kept.",
    ),
    "gradient": (
        "Agreement of the {of} with the gradient",
        "One dot is one word; both axes are stretched toward 0. On the diagonal both give it the same share. "
        "Look for words at the lower right: large {of}, but little influence on the prediction.",
    ),
}
"""Title and caption."""


def _points(name: str, records: Sequence[Mapping[str, Any]]) -> Points:
    """Check the points; drop those without finite coordinates."""
    for point in records:
        if missing := [field for field in FIELDS[name] if field not in point]:
            raise UserError(f"a point of the picture {name!r} has no {missing[0]!r}, found {dict(point)!r:.80}")
    finite = [point for point in records if all(map(_is_finite, point.items()))]
    return [{field: _clean(point[field]) for field in FIELDS[name]} for point in finite]


def _is_finite(item: tuple[str, Any]) -> bool:
    name, value = item
    return name in WORDS or (isinstance(value, int | float) and math.isfinite(value))


def _clean(value: Any) -> Any:
    """Replace lone surrogates, which cannot be drawn."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _draw(name: str, points: Points, of: str) -> str | None:
    try:
        from steadygaze.report.charts import draw
    except ImportError:
        return None
    return draw(name, points, of)
