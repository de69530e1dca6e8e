"""The pictures of a report: the points they are drawn from, what to look for in them, and their numbers as a table.

Report.plots has the points of each, by name.  A share lies between 0 and 1, a distance is Jensen-Shannon in nats.

    moves      one point per text and probe          probe       its name
                                                     distance    how far the saliency of the text moved
    seeds      one per text and pair of models       max         the heaviest word's share of the saliency
                                                     distance    how far the two saliencies are apart
    aopc       one per explainer and size            explainer   its name; `random` is the yardstick
                                                     share       which part of the words, the heaviest first
                                                     erased      what the predicted class loses without them, mean
                                                     kept        what it loses when they alone are left, mean
    gradient   one per word                          attention   its share of the saliency under audit
                                                     gradient    its share of the gradient, by size

They are drawn by Altair (report/charts.py).  Where that is not installed a picture is its table.
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
"""Points drawn of one picture: a page of all four stays well under 2 MB."""
MISSING = "The pictures need two more packages: pip install 'steadygaze[report]'.  Until then they are tables."


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    title: str
    caption: str
    label: str
    """The same for those who cannot see it."""
    head: tuple[str, ...]
    body: list[tuple[str, ...]]
    svg: str | None
    """None: the packages that draw are not installed."""


def pictures(report: Report) -> list[Picture]:
    """Those that there are points of, in the order of FIELDS."""
    for name in report.plots:
        if name not in FIELDS:
            raise unknown("picture", name, FIELDS)
    points = {name: _points(name, report.plots[name]) for name in FIELDS if name in report.plots}
    of = measure_noun(report.facts.get("explanation", ""))
    return [_picture(name, found, of) for name, found in points.items() if found]


def _picture(name: str, points: Points, of: str) -> Picture:
    title, caption = TEXTS[name]
    title, caption = title.format(of=of), caption.format(of=of)
    head, body = TABLES[name](points)
    told = "; ".join(", ".join(f"{key} {cell}" for key, cell in zip(head, row, strict=True)) for row in body[:12])
    drawn = points[:: math.ceil(len(points) / MOST)]
    if len(drawn) < len(points):
        caption += f" {len(drawn):,} of {len(points):,} points are drawn, evenly chosen."
    return Picture(name, title, caption, f"{title}. {told}.", head, body, _draw(name, drawn, of))


TEXTS = {
    "moves": (
        "How far the {of} moves when a text is changed a little",
        "The box holds the middle half of the texts, the line in it is the median, and dots are single texts far from "
        "the rest. Look for boxes that reach away from 0, and for single texts far to the right.",
    ),
    "seeds": (
        "How far two models trained alike are apart",
        "A shape is wide where many texts lie; the line is their median. Look at the right-hand shapes: where one word "
        "has most of the weight, models that differ by their seed alone should agree on it, and the shape lie low.",
    ),
    "aopc": (
        "What the prediction loses when words are erased, or left alone",
        "An explanation that matters lies above the dashed line (random words) when its words are erased, and below it "
        "when they alone are kept.",
    ),
    "gradient": (
        "Does the {of} point where the gradient points?",
        "One dot is one word; both axes are stretched towards 0. Dots along the diagonal: both give it the same share. "
        "Look for words at the lower right: much of the {of}, and yet the prediction hardly depends on them.",
    ),
}
"""Title and caption: what to look for."""


def _points(name: str, given: Sequence[Mapping[str, Any]]) -> Points:
    """Checked; a point that has no place is left out."""
    for point in given:
        if lacking := [field for field in FIELDS[name] if field not in point]:
            raise UserError(f"a point of the picture {name!r} has no {lacking[0]!r}, found {dict(point)!r:.80}")
    placed = [point for point in given if all(map(_placed, point.items()))]
    return [{field: _clean(point[field]) for field in FIELDS[name]} for point in placed]


def _placed(item: tuple[str, Any]) -> bool:
    name, value = item
    return name in WORDS or (isinstance(value, int | float) and math.isfinite(value))


def _clean(value: Any) -> Any:
    """A lone surrogate in a name must not stop whoever draws it."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _draw(name: str, points: Points, of: str) -> str | None:
    try:
        from steadygaze.report.charts import draw
    except ImportError:
        return None
    return draw(name, points, of)
