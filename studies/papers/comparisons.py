"""Comparisons as published numbers, and printed tables as data."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from steadygaze.results.reproduction import ReproducedValue
from steadygaze.study.seed_statistics import holm
from studies.numbers import Number, Origin
from studies.stability.statistics import Estimate

Table = Sequence[Sequence[str]]
"""A CSV file; the first row is the heading."""
PRINTED = ("measure", "ours", "low", "high", "paper")
"""Columns of a printed table, after those of its labels."""


def estimate_number(origin: Origin, name: str, estimate: Estimate, n: int | None = None) -> Number:
    return origin.number(name, estimate.value, (estimate.low, estimate.high), n)


def comparison_numbers(origin: Origin, estimates: Mapping[str, Estimate], n: Mapping[str, int]) -> Iterator[Number]:
    """Each estimate, and as p.NAME its p after Holm's correction for all of them."""
    corrected = dict(zip(estimates, holm([estimate.p for estimate in estimates.values()]), strict=True))
    for name, estimate in estimates.items():
        yield estimate_number(origin, name, estimate, n[name])
        if isfinite(corrected[name]):
            yield origin.number(f"p.{name}", corrected[name])


def printed_rows(values: Sequence[ReproducedValue], labels: Sequence[int], names: Sequence[str]) -> Table:
    """Ours with its interval, beside the paper's; `labels`: which of the labels are columns."""
    rows = [[*names, *PRINTED]]
    for value in values:
        low, high = value.interval or (None, None)
        numbers = [number_cell(value.value), number_cell(low), number_cell(high), number_cell(value.paper, 6)]
        rows.append([*(value.labels[i] for i in labels), value.labels[4], *numbers])
    return rows


def number_cell(number: float | None, digits: int = 4) -> str:
    """A number with a few significant digits; None is an empty cell."""
    return "" if number is None else f"{number:.{digits}g}"
