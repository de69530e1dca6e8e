"""Published tables and figures: the paper's numbers, and the corpora, encoders, techniques and measures that stand for
the paper's.

A table is a grid.  Every row and every column has labels of the paper, such as BiLSTM, Vanilla and SST/JSD.  Each label
belongs to one axis, and its counterpart is our name for it, or the reason why there is none.

    columns = ["SST/JSD", "SST/F1"]
    rows = '''BiLSTM | Vanilla | 0.027 0.809'''       one line of the paper; a dash: no number is printed
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from steadygaze.core.errors import unknown
from steadygaze.core.settings import Field, build, settings

AXES = ("corpora", "encoders", "techniques", "variants", "measures")
PAPERS = ("seat", "kitada", "bai", "a2r")
NO_NUMBER = "-"


@settings
class Counterpart:
    """Our counterpart of a label of the paper."""

    name: str = ""
    """Our name; empty if `absent` says why there is none, or for a variant."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of a technique, or of all techniques that have them."""
    search: dict[str, list[Any]] = Field(default_factory=dict)
    """Setting of a technique -> values; the validation score of one model each chooses."""
    split: str | None = None
    scale: float = 1.0
    """Factor of our value: 100 for percentages."""
    absent: str = ""
    departure: str = ""


Labels = dict[str, dict[str, Counterpart]]
"""Axis -> label of the paper -> counterpart."""


@dataclass(frozen=True)
class Entry:
    """A number of the paper, or the place of one."""

    labels: dict[str, str]
    """Axis -> label."""
    value: float | None

    def label(self, axis: str) -> str:
        return self.labels.get(axis, "")


@settings
class PublishedTable:
    paper: str
    name: str
    title: str
    citation: str
    url: str
    labels: Labels
    claim: str = ""
    """The conclusion of the paper."""
    defaults: dict[str, str] = Field(default_factory=dict)
    """Axis -> label of every row and column that names none."""
    columns: tuple[str, ...] = ()
    rows: str = ""
    departures: tuple[str, ...] = ()
    needs_synonyms: bool = False
    thorough: bool = False
    """A measure runs only in a thorough audit."""
    command: str = ""
    """Measures what the engine does not run."""
    results: str = ""
    """Page with the results of the command."""

    @property
    def key(self) -> str:
        """seat/table1"""
        return f"{self.paper}/{self.name}"

    def counterpart(self, entry: Entry, axis: str) -> Counterpart:
        label = entry.label(axis)
        return self.labels[axis][label] if label else Counterpart()

    def absent(self, entry: Entry) -> str:
        """Why the engine has no cell for a number; empty if it has one."""
        if self.command:
            return f"measured by: {self.command}"
        reasons = (self.counterpart(entry, axis).absent for axis in AXES)
        return next(filter(None, reasons), "")

    def entries(self) -> list[Entry]:
        return list(self._entries())

    def _entries(self) -> Iterator[Entry]:
        for line in self.rows.strip().splitlines():
            *names, numbers = (part.strip() for part in line.split("|"))
            for column, number in zip(self.columns, numbers.split(), strict=True):
                labels = dict(self._axis(label) for label in [*names, *column.split("/")])
                yield Entry({**self.defaults, **labels}, None if number == NO_NUMBER else float(number))

    def _axis(self, label: str) -> tuple[str, str]:
        axes = [axis for axis in AXES if label in self.labels.get(axis, {})]
        if len(axes) != 1:
            raise ValueError(f"{self.key}: {label!r} belongs to {' and '.join(axes) or 'no axis'}")
        return axes[0], label

    def used_departures(self, entries: Sequence[Entry]) -> list[str]:
        """The departures of the table and of all labels of these entries."""
        used = {(axis, entry.label(axis)) for entry in entries for axis in AXES if entry.label(axis)}
        own = [c.departure for axis in AXES for label, c in self.labels.get(axis, {}).items() if (axis, label) in used]
        return list(dict.fromkeys(filter(None, [*self.departures, *own])))


@cache
def published_tables() -> dict[str, PublishedTable]:
    """All tables by name, such as seat/table1."""
    tables = [table for paper in PAPERS for table in _read(paper)]
    return {table.key: table for table in tables}


def find_table(name: str) -> PublishedTable:
    if name not in published_tables():
        raise unknown("table", name, published_tables())
    return published_tables()[name]


def _read(paper: str) -> Iterator[PublishedTable]:
    text = files("steadygaze.study.published").joinpath(f"{paper}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    shared = content["labels"]
    for table in content["tables"]:
        own = table.pop("labels", {})
        labels = {axis: _counterparts({**shared.get(axis, {}), **own.get(axis, {})}) for axis in AXES}
        values = {**table, "labels": labels, "paper": paper, "citation": content["citation"], "url": content["url"]}
        yield build(PublishedTable, values)


def _counterparts(labels: dict[str, Any]) -> dict[str, Counterpart]:
    return {
        label: build(Counterpart, {"name": value} if isinstance(value, str) else value)
        for label, value in labels.items()
    }
