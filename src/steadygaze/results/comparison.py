"""Comparison: techniques side by side, ready for a page, a file or a terminal.  No torch.

Every number is a Row with its signature; what differs from the baseline has an interval and a corrected p beside it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from steadygaze.core import entry_point
from steadygaze.core.output_paths import GENERATOR, write_output
from steadygaze.results.row import Row, plain
from steadygaze.results.verdict import Answer, Better

Mark = Literal["better", "worse", "differs", "bought", ""]
"""Against the baseline, beyond doubt.  `differs`: of a number that has no good end.  `bought`: better, but by weights
that say the same whatever the text, and so no merit.  Empty: no clear difference, or nothing was tested."""
SIGNIFICANT = 0.05
SCHEMA = 1
"""Raised when a file written today could not be read by yesterday's package."""
TITLE = "Which technique holds up?"


@dataclass(frozen=True, slots=True)
class Column:
    """What techniques are compared by."""

    measure: str
    title: str
    sentence: str
    direction: Better
    brief: bool = True
    """Whether a terminal shows it."""
    stability: bool = False
    """Whether a constant attention would be best at it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Technique minus baseline, text by text and seed by seed."""

    value: float
    interval: tuple[float, float] | None
    agree: int
    """In how many seeds it has this sign."""
    p: float | None = None
    """None: a number for a whole set, of which there is no test over texts."""
    holm: float | None = None
    """The same corrected for all comparisons of the table."""


@dataclass(frozen=True, slots=True)
class ComparisonCell:
    """One number of one technique."""

    row: Row
    """Its value is NaN where there is none, and its note says why."""
    seeds: tuple[float, ...] = ()
    """The value of each seed."""
    against: Difference | None = None
    """None: it is the baseline's, or one of the two has no number."""
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class TechniqueResult:
    """One technique."""

    technique: str
    entries: Mapping[str, ComparisonCell]
    """By measure."""
    collapsed: tuple[bool | None, ...]
    """Of each seed, whether its weights say the same whatever the text; None: nobody knows."""
    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    """Question of the audit -> the answer of each seed."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the technique itself."""

    @property
    def silent(self) -> int:
        """In how many seeds its weights collapsed."""
        return sum(one is True for one in self.collapsed)

    def marked(self, mark: Mark) -> list[str]:
        return [measure for measure, entry in self.entries.items() if entry.mark == mark]


@dataclass(frozen=True)
class Comparison:
    columns: tuple[Column, ...]
    standings: tuple[TechniqueResult, ...]
    """The baseline first."""
    seeds: tuple[int, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What all techniques were trained with."""
    notes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """What made it, word for word; empty where it was made in Python."""
    versions: Mapping[str, str] = field(default_factory=dict)
    title: str = TITLE

    @property
    def baseline(self) -> TechniqueResult:
        return self.standings[0]

    @property
    def tested(self) -> int:
        """How many comparisons the correction is for."""
        entries = [entry for standing in self.standings for entry in standing.entries.values()]
        return sum(entry.against is not None and entry.against.p is not None for entry in entries)

    def column(self, measure: str) -> Column:
        return next(column for column in self.columns if column.measure == measure)

    def find(self, technique: str) -> TechniqueResult:
        return next(standing for standing in self.standings if standing.technique == technique)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **GENERATOR,
            "schema": SCHEMA,
            "title": self.title,
            "baseline": self.baseline.technique,
            "seeds": list(self.seeds),
            "facts": dict(self.facts),
            "columns": [asdict(column) for column in self.columns],
            "techniques": [_standing(standing) for standing in self.standings],
            "settings": _plain(self.settings),
            "notes": list(self.notes),
            "command": list(self.command),
            "versions": dict(self.versions),
        }

    def to_json(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """The whole comparison; written to `path` if there is one."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_output(path, text, replace)
        return text

    def to_html(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """One page that loads nothing and runs nothing; written to `path` if there is one."""
        html: str = entry_point("steadygaze.report.comparison_page:render")(self)
        if path is not None:
            write_output(path, html, replace)
        return html


def _standing(one: TechniqueResult) -> dict[str, Any]:
    return {
        "technique": one.technique,
        "collapsed": list(one.collapsed),
        "numbers": {measure: _entry(entry) for measure, entry in one.entries.items()},
        "answers": {question: list(answers) for question, answers in one.answers.items()},
        "settings": _plain(one.settings),
    }


def _entry(one: ComparisonCell) -> dict[str, Any]:
    against = None if one.against is None else _plain(asdict(one.against))
    return {**one.row.to_dict(), "seeds": _plain(one.seeds), "against": against, "mark": one.mark}


def _plain(value: Any) -> Any:
    """Lists, dictionaries, words and finite numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return plain(value) if isinstance(value, str | int | float | None) else str(value)
