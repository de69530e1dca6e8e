"""The plots of a report: points, captions and tables.  report/chart_svg.py draws them.

Report.plots has the points by name.  Shares lie between 0 and 1; distances are Jensen-Shannon divergences in nats.

    moves      one point per text and perturbation   probe       name of the perturbation
                                                     distance    shift of the weights
    seeds      one per text and pair of models       max         largest weight
                                                     distance    divergence of the two models
    aopc       one per explainer and size            explainer   its name; `random` is the baseline
                                                     share       share of the words, by decreasing weight
                                                     erased      mean probability lost without them
                                                     kept        mean probability lost with only them
    gradient   one per token                         attention   share of the audited weights
                                                     gradient    share of the gradient norm
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.rounding import percent
from steadygaze.report.chart_svg import Points, draw
from steadygaze.results.evaluation import RELIABILITY_BINS, Evaluation
from steadygaze.results.formatting import BINS, bin_of, measure_noun, number
from steadygaze.results.report import Report

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]

FIELDS: dict[str, tuple[str, ...]] = {
    "moves": ("probe", "distance"),
    "seeds": ("max", "distance"),
    "aopc": ("explainer", "share", "erased", "kept"),
    "gradient": ("attention", "gradient"),
}
WORDS = ("probe", "explainer")
MOST = 2_000
"""Largest number of points in a plot, so that a page stays below 2 MB."""


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    title: str
    caption: str
    label: str
    """Text alternative."""
    head: tuple[str, ...]
    body: list[tuple[str, ...]]
    svg: str


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
    sample = points[:: math.ceil(len(points) / MOST)]
    if len(sample) < len(points):
        caption += f" {len(sample):,} of {len(points):,} points are drawn."
    return Picture(name, title, caption, _alternative(title, head, body), head, body, draw(name, sample, of))


def _alternative(title: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Text alternative of a picture: the first rows of its table."""
    summary = "; ".join(", ".join(f"{key} {cell}" for key, cell in zip(head, row, strict=True)) for row in body[:12])
    return f"{title}. {summary}."


RELIABILITY = (
    "A dot is the accuracy of the texts of one bin of confidence, and the bar through it is the 95 % interval. On the "
    "dashed line, accuracy and confidence are equal; below it, the model is overconfident. The highest bin, {low:g} to "
    "1, has {n:,} of {total:,} texts. Bins without texts are omitted."
)


def reliability_picture(evaluation: Evaluation | None) -> Picture | None:
    """The reliability diagram of the predictions; None without bins, as for regression models."""
    if evaluation is None or not evaluation.reliability:
        return None
    title, bins = "Reliability of the confidence", evaluation.reliability
    low = 1 - 1 / RELIABILITY_BINS
    n = sum(item.n for item in bins if item.high == 1.0)
    caption = RELIABILITY.format(low=low, n=n, total=sum(item.n for item in bins))
    head = ("confidence", "texts", "mean confidence", "accuracy", "95 % interval")
    body: list[tuple[str, ...]] = [
        (
            f"{item.low:g} to {item.high:g}",
            f"{item.n:,}",
            number(item.confidence),
            number(item.accuracy),
            " to ".join(map(number, item.interval)),
        )
        for item in bins
    ]
    svg = draw("reliability", [item.columns() for item in bins], "")
    return Picture("reliability", title, caption, _alternative(title, head, body), head, body, svg)


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
        "One dot is one token of the texts; of more than 1,000 tokens a sample is drawn. Both axes are stretched "
        "toward 0. On the diagonal both give a token the same share. Look for tokens at the lower right: large {of}, "
        "but little influence on the prediction.",
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


def _groups(points: Points, by: str, first: str) -> Table:
    """Per group: count, quartiles and maximum."""
    names = list(dict.fromkeys(point[by] for point in points))
    lines = []
    for name in names:
        values = [point["distance"] for point in points if point[by] == name]
        parts = np.quantile(values, [0.25, 0.5, 0.75, 1.0])
        lines.append((str(name), f"{len(values):,}", *map(number, parts)))
    return (first, "points", "lower quartile", "median", "upper quartile", "largest"), lines


def _seeds(points: Points) -> Table:
    ordered = sorted(points, key=lambda point: BINS.index(bin_of(point["max"])))
    return _groups([{**p, "bin": bin_of(p["max"])} for p in ordered], "bin", "share of the top-weighted word")


def _aopc(points: Points) -> Table:
    lines: list[tuple[str, ...]] = [
        (str(p["explainer"]), percent(p["share"]), number(p["erased"]), number(p["kept"])) for p in points
    ]
    return ("explainer", "share of the words", "lost when erased", "lost when alone"), lines


def _gradient(points: Points) -> Table:
    pairs = np.array([(p["attention"], p["gradient"]) for p in points], dtype=np.float64)
    centered, spread = pairs - pairs.mean(0), pairs.std(0)
    correlation = float(centered.prod(1).mean() / spread.prod()) if spread.all() else np.nan
    heavy = pairs[np.argsort(-pairs[:, 0], kind="stable")[: max(1, len(pairs) // 10)]].mean(0)
    head = (
        "drawn tokens",
        "correlation over all of them",
        "mean share of the top tenth",
        "its mean share of the gradient",
    )
    return head, [(f"{len(pairs):,}", number(correlation), *map(number, heavy.tolist()))]


TABLES: dict[str, Callable[[Points], Table]] = {
    "moves": lambda points: _groups(points, "probe", "change"),
    "seeds": _seeds,
    "aopc": _aopc,
    "gradient": _gradient,
}
