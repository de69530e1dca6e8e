"""Published numbers: what a study computes from its records, checked in as `studies/NAME/numbers.json`.

A name is a path, such as `emotion.seat.label-flip`.  `commit` is that of the code which made the records or, where
the records do not name it, the commit that checked them in.  `command` repeats the measurements.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from steadygaze.core.atomic_files import write_text
from steadygaze.results.intervals import Interval, t_interval

DIGITS = 8
"""Significant digits of the file: more than pages show, fewer than differ between processors."""


@dataclass(frozen=True)
class Number:
    """A value (text for choices and names), its 95 % interval, and how many values it is the mean of."""

    name: str
    value: float | str
    interval: Interval | None
    n: int | None
    commit: str
    command: str

    def __float__(self) -> float:
        return float(self.value)


Numbers = dict[str, Number]


@dataclass(frozen=True)
class Origin:
    """Where numbers come from, and the numbers that come from there."""

    commit: str
    command: str

    def number(self, name: str, value: float | str, interval: Interval | None = None, n: int | None = None) -> Number:
        ends = None if interval is None else (rounded(interval[0]), rounded(interval[1]))
        return Number(name, value if isinstance(value, str) else rounded(value), ends, n, self.commit, self.command)

    def mean(self, name: str, values: Sequence[float]) -> Number:
        """The mean of independent values, such as seeds, with its t interval; a single value has none."""
        return self.number(name, mean(values), t_interval(values) if len(values) > 1 else None, len(values))


def rounded(value: float) -> float:
    """The value with as many digits as the file has; integers stay integers."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not finite: leave the number out")
    return int(value) if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


def by_name(numbers: Iterable[Number]) -> Numbers:
    """The numbers by name; an error if a name occurs twice."""
    named: Numbers = {}
    for number in numbers:
        if number.name in named:
            raise ValueError(f"two numbers have the name {number.name!r}")
        named[number.name] = number
    return named


def write_numbers(file: Path, numbers: Numbers) -> None:
    """One number a line, sorted by name."""
    lines = [json.dumps(asdict(numbers[name]), ensure_ascii=False) for name in sorted(numbers)]
    write_text(file, "[\n" + ",\n".join(lines) + "\n]\n")


def read_numbers(file: Path) -> Numbers:
    entries: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    for entry in entries:
        entry["interval"] = None if entry["interval"] is None else tuple(entry["interval"])
    return by_name(Number(**entry) for entry in entries)


def different_names(ours: Numbers, theirs: Numbers) -> list[str]:
    """The names of numbers that one side lacks, or that differ by more than rounding on another processor."""
    both = ours.keys() & theirs.keys()
    return sorted((ours.keys() ^ theirs.keys()) | {name for name in both if not _is_close(ours[name], theirs[name])})


def _is_close(one: Number, other: Number) -> bool:
    if (one.n, one.commit, one.command) != (other.n, other.commit, other.command):
        return False
    pairs = zip((one.value, *(one.interval or ())), (other.value, *(other.interval or ())), strict=False)
    return (one.interval is None) == (other.interval is None) and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) if not isinstance(a, str) and not isinstance(b, str) else a == b
        for a, b in pairs
    )
