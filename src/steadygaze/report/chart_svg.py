"""The plots of a report as SVG.

Colors are CSS classes (fill-ink, stroke-series-1), so that the style sheet of a page sets them for light and dark.
Coordinates have at most two decimals.  The same points give the same SVG.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from steadygaze.core.errors import one_line
from steadygaze.core.rounding import percent
from steadygaze.report.page import ticks
from steadygaze.results.formatting import BINS, SHIFT_SCALE, bin_of, short_number

Points = list[dict[str, Any]]

WIDTH, MARGIN, GAP = 370, 10, 22
"""Width of a plot, its outer margin and the height of a line of labels."""
LARGEST = 1.15
"""Largest magnification of a plot on a page."""
CHARACTER = 5.6
"""Mean width of a character of a label."""
NAME = 24
"""Longest name of a row or a line, in characters."""
SERIES = 6
"""Number of series colors."""
MIN_DISTINCT = 5
"""A group with fewer distinct values is drawn as points: its density would be misleading."""
ROOT_TICKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
NATS = f"nats ({SHIFT_SCALE})"


def draw(name: str, points: Points, of: str) -> str:
    """SVG of one plot; `of` is the noun of the weights."""
    height, body = CHARTS[name](points, of)
    size = f'viewBox="0 0 {WIDTH} {_short(height)}" style="max-width:{round(LARGEST * WIDTH)}px"'
    return f'<svg class="plot plot-{name}" {size} aria-hidden="true">{body}</svg>'


@dataclass(frozen=True)
class _Scale:
    """Maps values to positions: `edges` to `ends`."""

    edges: tuple[float, float]
    ends: tuple[float, float]
    transform: Callable[[Any], Any] = np.asarray

    def __call__(self, values: Any) -> Any:
        low, high = self.transform(np.array(self.edges))
        share = (self.transform(np.asarray(values, dtype=np.float64)) - low) / ((high - low) or 1.0)
        return self.ends[0] + share * (self.ends[1] - self.ends[0])


def _boxes(points: Points, of: str) -> tuple[float, str]:
    """One box per perturbation: quartiles, median, whiskers of 1.5 interquartile ranges, outliers."""
    groups = _grouped(points, "probe", "distance")
    left = MARGIN + 8 + CHARACTER * max(min(len(name), NAME) for name in groups)
    marks = ticks(0.0, float(max(values.max() for values in groups.values())), 4)
    x, bottom = _Scale((0.0, marks[-1]), (left, WIDTH - MARGIN - 6)), MARGIN + 30.0 * len(groups)
    body = _x_axis(x, marks, MARGIN, bottom, NATS)
    for row, (name, values) in enumerate(groups.items()):
        y = MARGIN + 30.0 * row + 15
        low, lower, middle, upper, high = x(_box(values))
        outliers = values[(x(values) < low - 1e-9) | (x(values) > high + 1e-9)]
        body += _text(left - 6, y + 4, one_line(name, NAME), "end")
        body += _line(low, y, lower, y, "muted") + _line(upper, y, high, y, "muted")
        box = f'x="{_short(lower)}" y="{_short(y - 7)}" width="{_short(upper - lower)}" height="14"'
        body += f'<rect class="fill-series-1 stroke-series-1" fill-opacity="0.35" {box}/>'
        body += _line(middle, y - 7, middle, y + 7, "ink", 2) + _dots(x(outliers), np.full(len(outliers), y), 0.5, 3)
    return bottom + 2 * GAP, body


def _box(values: Any) -> Any:
    """Lower whisker, quartiles and upper whisker."""
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (upper - lower)
    inside = values[(values >= lower - reach) & (values <= upper + reach)]
    return np.array([min(inside.min(), lower), lower, middle, upper, max(inside.max(), upper)])


def _violins(points: Points, of: str) -> tuple[float, str]:
    """One violin per bin of the largest weight: the density of the distances, and the median."""
    groups = _grouped([{**point, "bin": bin_of(point["max"])} for point in points], "bin", "distance")
    marks = ticks(0.0, float(max(values.max() for values in groups.values())), 5)
    left, top, bottom = 58.0, float(MARGIN), 200.0
    y, slot = _Scale((0.0, marks[-1]), (bottom, top)), (WIDTH - MARGIN - left) / len(BINS)
    body = _y_axis(y, marks, left, WIDTH - MARGIN, "distance (nats)")
    for column, name in enumerate(BINS):
        middle, values = left + slot * (column + 0.5), groups.get(name, np.zeros(0))
        body += _text(middle, bottom + 16, name, "middle") + _text(
            middle, bottom + 30, f"n = {len(values):,}", "middle"
        )
        if len(np.unique(values)) >= MIN_DISTINCT:
            heights, widths = _density(values)
            outline = zip([*(middle - slot * 0.42 * widths), *(middle + slot * 0.42 * widths[::-1])],
                          [*y(heights), *y(heights[::-1])], strict=True)  # fmt: skip
            path = "M" + "L".join(f"{_short(a)},{_short(b)}" for a, b in outline) + "Z"
            body += f'<path class="fill-series-1 stroke-series-1" fill-opacity="0.35" d="{path}"/>'
        else:
            body += _dots(np.full(len(values), middle), y(values), 1.0, 4)
        if len(values):
            center = float(y(np.median(values)))
            body += _line(middle - 13, center, middle + 13, center, "ink", 2)
    return bottom + 30 + GAP, body + _text(
        left + slot * 2, bottom + 30 + GAP - 4, "share of the top-weighted word", "middle"
    )


def _density(values: Any, steps: int = 60) -> tuple[Any, Any]:
    """Gaussian kernel density (Scott's rule) between the smallest and the largest value; its maximum is 1."""
    width = float(values.std(ddof=1)) * len(values) ** -0.2
    at = np.linspace(values.min(), values.max(), steps)
    density = np.exp(-0.5 * ((at[:, None] - values[None]) / width) ** 2).sum(1)
    return at, density / density.max()


def _curves(points: Points, of: str) -> tuple[float, str]:
    """Two panels with one line per explainer; random words are dashed."""
    names = sorted(dict.fromkeys(str(point["explainer"]) for point in points), key=lambda name: name == "random")
    styles = {name: _line_style(i, name) for i, name in enumerate(names)}
    left, right = 58.0, float(WIDTH - MARGIN - 6)
    x = _Scale((0.0, max(point["share"] for point in points) or 1.0), (left, right))
    titles = {"erased": "These words erased: higher is better", "kept": "Only these words kept: lower is better"}
    body, bottom = "", 0.0
    for field, title in titles.items():
        values = [point[field] for point in points]
        marks = ticks(min(0.0, *values), max(0.0, *values), 4)
        top, bottom = bottom + 28, bottom + 148
        y = _Scale((marks[0], marks[-1]), (bottom, top))
        body += f'<text class="fill-ink" font-weight="600" x="{MARGIN}" y="{_short(top - 12)}">{title}</text>'
        body += _y_axis(y, marks, left, right, "lost probability")
        for name in names:
            own = sorted((point for point in points if point["explainer"] == name), key=lambda point: point["share"])
            body += _curve(x([point["share"] for point in own]), y([point[field] for point in own]), *styles[name])
        bottom += GAP
    shares = [mark for mark in ticks(0.0, x.edges[1], 5) if mark <= x.edges[1]]
    bottom -= GAP
    body += _x_axis(x, shares, bottom, bottom, "share of the words, top-weighted first", percent)
    return _legend(names, styles, bottom + 2 * GAP, body)


def _line_style(index: int, name: str) -> tuple[str, str]:
    """The color and the dashes of a line."""
    if name == "random":
        return 'class="stroke-muted"', 'stroke-dasharray="6,4"'
    return f'class="stroke-series-{index % SERIES + 1}"', 'stroke-dasharray="2,2"' if index >= SERIES else ""


def _curve(x: Any, y: Any, color: str, dashes: str) -> str:
    corners = [f"{_short(a)},{_short(b)}" for a, b in zip(x, y, strict=True)]
    dots = "".join(f"M{corner}h0" for corner in corners)
    line = f'<path {color} {dashes} fill="none" stroke-width="1.75" d="M{"L".join(corners)}"/>'
    return f'{line}<path {color} stroke-width="5" stroke-linecap="round" d="{dots}"/>'


def _legend(names: Sequence[str], styles: dict[str, tuple[str, str]], top: float, body: str) -> tuple[float, str]:
    """Two columns of names with their lines, below `body`."""
    for i, name in enumerate(names):
        left, y = 30.0 + (i % 2) * WIDTH / 2, top + 18.0 * (i // 2) + 12
        style = " ".join(styles[name])
        body += f'<path {style} fill="none" stroke-width="2" d="M{_short(left)},{_short(y - 4)}h22"/>'
        body += f'<text class="fill-ink" x="{_short(left + 28)}" y="{_short(y)}">{escape(one_line(name, NAME))}</text>'
    return top + 18.0 * ((len(names) + 1) // 2) + MARGIN, body


def _scatter(points: Points, of: str) -> tuple[float, str]:
    """One dot per word, on axes of square roots, and the diagonal."""
    shares = np.array([(point["attention"], point["gradient"]) for point in points], dtype=np.float64)
    end = next((edge for edge in ROOT_TICKS[3:] if edge >= shares.max()), 1.0)
    left, top, bottom = 58.0, float(MARGIN), 270.0
    x = _Scale((0.0, end), (left, WIDTH - MARGIN - 6), np.sqrt)
    y = _Scale((0.0, end), (bottom, top), np.sqrt)
    marks = [tick for tick in ROOT_TICKS if tick <= end]
    body = _y_axis(y, marks, left, x.ends[1], "share of the gradient (%)", percent)
    body += _x_axis(x, marks, top, bottom, f"share of the {of} (%)", percent)
    body += _line(x.ends[0], bottom, x.ends[1], top, "muted", extra=' stroke-dasharray="4,4"')
    return bottom + 2 * GAP, body + _dots(x(shares[:, 0].clip(0)), y(shares[:, 1].clip(0)), 0.4, 4)


def _reliability(points: Points, of: str) -> tuple[float, str]:
    """The accuracy at the mean confidence of each bin, its interval and the diagonal; below, the texts of each bin."""
    left, top, bottom, right = 58.0, float(MARGIN), 220.0, float(WIDTH - MARGIN - 6)
    x, y = _Scale((0.0, 1.0), (left, right)), _Scale((0.0, 1.0), (bottom, top))
    marks = [0.0, 0.25, 0.5, 0.75, 1.0]
    body = _y_axis(y, marks, left, right, "accuracy") + "".join(_line(x(m), top, x(m), bottom, "line") for m in marks)
    body += _line(left, bottom, right, top, "muted", extra=' stroke-dasharray="4,4"')
    centers, values = (np.array([point[name] for point in points]) for name in ("confidence", "accuracy"))
    for at, point in zip(x(centers).tolist(), points, strict=True):
        body += _line(at, float(y(point["accuracy_low"])), at, float(y(point["accuracy_high"])), "series-1", 2)
    body += _dots(x(centers), y(values), 1.0, 7)
    top, bottom, largest = bottom + 12, bottom + 62, max(point["n"] for point in points)
    counts = _Scale((0.0, float(largest)), (bottom, top))
    body += _y_axis(counts, [0.0, float(largest)], left, right, "texts", "{:,.0f}".format)
    for point in points:
        edge, height = float(x(point["low"])), bottom - float(counts(point["n"]))
        width = float(x(point["high"])) - edge
        box = f'x="{_short(edge)}" y="{_short(bottom - height)}" width="{_short(width)}" height="{_short(height)}"'
        body += f'<rect class="fill-series-1 stroke-series-1" fill-opacity="0.35" {box}/>'
    return bottom + 2 * GAP, body + _x_axis(x, marks, bottom, bottom, "confidence: probability of the predicted class")


def draw_trials(points: Points, x_title: str, y_title: str) -> str:
    """SVG of trials: a dot each at (x, y), and a line through those of the Pareto front."""
    left, top, bottom, right = 58.0, float(MARGIN), 220.0, float(WIDTH - MARGIN - 6)
    values = np.array([(point["x"], point["y"]) for point in points], dtype=np.float64)
    x_marks, y_marks = (ticks(float(column.min()), float(column.max()), 5) for column in values.T)
    x, y = _Scale((x_marks[0], x_marks[-1]), (left, right)), _Scale((y_marks[0], y_marks[-1]), (bottom, top))
    front = np.array(sorted((point["x"], point["y"]) for point in points if point["front"]), dtype=np.float64)
    body = _y_axis(y, y_marks, left, right, y_title) + _x_axis(x, x_marks, top, bottom, x_title)
    body += _dots(x(values[:, 0]), y(values[:, 1]), 0.5, 6)
    body += _curve(x(front[:, 0]), y(front[:, 1]), 'class="stroke-series-2"', "")
    size = f'viewBox="0 0 {WIDTH} {_short(bottom + 2 * GAP)}" style="max-width:{round(LARGEST * WIDTH)}px"'
    return f'<svg class="plot plot-trials" {size} aria-hidden="true">{body}</svg>'


def _grouped(points: Points, by: str, field: str) -> dict[str, Any]:
    """Name of a group -> its values, in the order of the points."""
    order = {name: i for i, name in enumerate(dict.fromkeys(point[by] for point in points))}
    groups = groupby(sorted(points, key=lambda point: order[point[by]]), key=lambda point: point[by])
    return {str(name): np.array([point[field] for point in group], dtype=np.float64) for name, group in groups}


def _x_axis(
    x: _Scale,
    marks: Sequence[float],
    top: float,
    bottom: float,
    title: str,
    label: Callable[[float], str] = short_number,
) -> str:
    """Grid lines from top to bottom, labels that do not overlap, and a title below."""
    body, end = "", -np.inf
    for mark, at in zip(marks, x(marks).tolist(), strict=True):
        half = CHARACTER * len(label(mark)) / 2
        body += _line(at, top, at, bottom, "line")
        if at - half > end + 4:
            body, end = body + _text(at, bottom + 15, label(mark), "middle"), at + half
    return body + _text(sum(x.ends) / 2, bottom + 33, title, "middle")


def _y_axis(
    y: _Scale,
    marks: Sequence[float],
    left: float,
    right: float,
    title: str,
    label: Callable[[float], str] = short_number,
) -> str:
    """Grid lines from left to right, labels and an upright title on the left."""
    body = "".join(
        _line(left, at, right, at, "line") + _text(left - 6, at + 4, label(mark), "end")
        for mark, at in zip(marks, y(marks).tolist(), strict=True)
    )
    middle = _short(sum(y.ends) / 2)
    return body + (
        f'<text class="fill-muted" text-anchor="middle" transform="translate(16,{middle}) rotate(-90)">'
        f"{escape(title)}</text>"
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="fill-muted" text-anchor="{anchor}" x="{_short(x)}" y="{_short(y)}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, shade: str, width: float = 1, extra: str = "") -> str:
    ends = f'x1="{_short(x1)}" y1="{_short(y1)}" x2="{_short(x2)}" y2="{_short(y2)}"'
    return f'<line class="stroke-{shade}" stroke-width="{width:g}"{extra} {ends}/>'


def _dots(x: Any, y: Any, opacity: float, size: float) -> str:
    """Dots: lines of length 0 with round ends."""
    if not len(x):
        return ""
    dots = "".join(f'<path d="M{_short(a)},{_short(b)}h0"/>' for a, b in zip(x.tolist(), y.tolist(), strict=True))
    style = f'stroke-opacity="{opacity:g}" stroke-width="{size:g}" stroke-linecap="round"'
    return f'<g class="stroke-series-1" {style}>{dots}</g>'


def _short(value: float) -> str:
    """At most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


CHARTS: dict[str, Callable[[Points, str], tuple[float, str]]] = {
    "moves": _boxes,
    "seeds": _violins,
    "aopc": _curves,
    "gradient": _scatter,
    "reliability": _reliability,
}
"""Name of a plot -> its height and its content."""
