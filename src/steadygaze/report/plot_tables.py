"""The data of each plot as a table."""

from collections.abc import Callable
from typing import Any

import numpy as np

from steadygaze.results.formatting import number

BINS = ("under 0.25", "under 0.5", "under 0.75", "up to 1")
"""Bins of the largest weight, as in Jain & Wallace 2019 and SEAT (Fig. 2)."""

Points = list[dict[str, Any]]
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def bin_of(share: float) -> str:
    """
    >>> bin_of(0.1), bin_of(0.25), bin_of(1.0)
    ('under 0.25', 'under 0.5', 'up to 1')
    """
    return BINS[min(int(4 * share), 3)]


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
        (str(p["explainer"]), f"{p['share']:.0%}", number(p["erased"]), number(p["kept"])) for p in points
    ]
    return ("explainer", "share of the words", "lost when erased", "lost when alone"), lines


def _gradient(points: Points) -> Table:
    pairs = np.array([(p["attention"], p["gradient"]) for p in points], dtype=np.float64)
    centered, spread = pairs - pairs.mean(0), pairs.std(0)
    correlation = float(centered.prod(1).mean() / spread.prod()) if spread.all() else np.nan
    heavy = pairs[np.argsort(-pairs[:, 0], kind="stable")[: max(1, len(pairs) // 10)]].mean(0)
    head = ("words", "correlation over all of them", "mean share of the top tenth", "its mean share of the gradient")
    return head, [(f"{len(pairs):,}", number(correlation), *map(number, heavy.tolist()))]


TABLES: dict[str, Callable[[Points], Table]] = {
    "moves": lambda points: _groups(points, "probe", "change"),
    "seeds": _seeds,
    "aopc": _aopc,
    "gradient": _gradient,
}
