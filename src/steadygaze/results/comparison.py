"""Comparison: scores of techniques, for a page, a file or a terminal.  Does not import torch.

Every score is a Row; its difference from the baseline has an interval and a corrected p-value.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from steadygaze.core.output_paths import GENERATOR
from steadygaze.results.data_frame import data_frame
from steadygaze.results.evaluation import render_text
from steadygaze.results.formatting import count_text
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.row import Answer, Better, MeasureKey, Row, SavedResult, json_values

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType

Mark = Literal["better", "worse", "differs", "bought", ""]
"""A significant difference from the baseline.  `differs`: the measure has no better direction.  `bought`: better, but
only because the weights do not depend on the text.  Empty: no significant difference, or no test."""
SIGNIFICANT = 0.05
SCHEMA = 1
"""Incremented when older versions cannot read a new file."""
TITLE = "Comparison of techniques"


@dataclass(frozen=True, slots=True)
class Column:
    """A measure that techniques are compared by."""

    measure: str
    title: str
    sentence: str
    direction: Better
    brief: bool = True
    """Shown in a terminal."""
    stability: bool = False
    """A constant attention would have the best value."""

    @property
    def key(self) -> MeasureKey:
        return MeasureKey.parse(self.measure)


@dataclass(frozen=True, slots=True)
class Difference:
    """Technique minus baseline, text by text and seed by seed."""

    value: float
    interval: tuple[float, float] | None
    agree: int
    """Number of seeds with this sign."""
    p: float | None = None
    """None: one number for the whole split, without a test over texts."""
    holm: float | None = None
    """p with the Holm correction for all comparisons of the table."""


@dataclass(frozen=True, slots=True)
class ComparisonCell:
    """One score of one technique."""

    row: Row
    """The value is NaN if there is none; the note gives the reason."""
    seeds: tuple[float, ...] = ()
    """The value of each seed."""
    against: Difference | None = None
    """None: the technique is the baseline, or one of the two has no value."""
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class TechniqueResult:
    """The scores of one technique."""

    technique: str
    entries: Mapping[str, ComparisonCell]
    """By measure."""
    collapsed: tuple[bool | None, ...]
    """Per seed: the weights do not depend on the text; None: not known."""
    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    """Title of a verdict -> answer per seed."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the technique itself."""
    at_chance: tuple[bool, ...] = ()
    """Per seed: the predictions are not significantly better than chance; empty: unknown."""
    health: Health = HEALTHY
    """Known-bad states of its models, with the number of seeds."""

    @property
    def guessing(self) -> int:
        """Number of seeds whose predictions are not significantly better than chance."""
        return sum(self.at_chance)

    @property
    def guessing_sentence(self) -> str:
        seeds = f"{self.guessing} of {count_text(len(self.at_chance), 'seed')}"
        return f"In {seeds} its predictions are not significantly better than chance."

    @property
    def silent(self) -> int:
        """Number of seeds with collapsed weights."""
        return sum(collapsed is True for collapsed in self.collapsed)

    def marked(self, mark: Mark) -> list[str]:
        return [measure for measure, entry in self.entries.items() if entry.mark == mark]


@dataclass(frozen=True, repr=False)
class Comparison(SavedResult):
    """The result of `sg.compare`; `print` shows its table."""

    renderer: ClassVar[str] = "steadygaze.report.study_pages:render_comparison"

    columns: tuple[Column, ...]
    standings: tuple[TechniqueResult, ...]
    """The baseline first."""
    seeds: tuple[int, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Training settings of all techniques, as they were used."""
    notes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """The command line; empty if made in Python."""
    versions: Mapping[str, str] = field(default_factory=dict)
    title: str = TITLE

    @property
    def baseline(self) -> TechniqueResult:
        return self.standings[0]

    @property
    def tested(self) -> int:
        """Number of comparisons that are corrected for."""
        entries = [entry for result in self.standings for entry in result.entries.values()]
        return sum(entry.against is not None and entry.against.p is not None for entry in entries)

    @property
    def health(self) -> Health:
        """Known-bad states of the models of all techniques."""
        return sum((result.health for result in self.standings), HEALTHY)

    def column(self, measure: str) -> Column:
        return next(column for column in self.columns if column.measure == measure)

    def find(self, technique: str) -> TechniqueResult:
        return next(result for result in self.standings if result.technique == technique)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **GENERATOR,
            "schema": SCHEMA,
            "health": self.health.to_list(),
            "title": self.title,
            "baseline": self.baseline.technique,
            "seeds": list(self.seeds),
            "facts": dict(self.facts),
            "columns": [asdict(column) for column in self.columns],
            "techniques": [_standing(result) for result in self.standings],
            "settings": json_values(self.settings),
            "notes": list(self.notes),
            "command": list(self.command),
            "versions": dict(self.versions),
        }

    def to_pandas(self) -> "DataFrame":
        """One row per technique and measure: value, low, high, n, the difference from the baseline, p and mark."""
        return data_frame(
            [
                {"technique": result.technique, **cell.row.columns(), **_difference(cell), "mark": cell.mark}
                for result in self.standings
                for cell in result.entries.values()
            ]
        )

    def __repr__(self) -> str:
        names = ", ".join(result.technique for result in self.standings)
        return f"<Comparison of {names}: {count_text(len(self.seeds), 'seed')}, {len(self.columns)} measures>"

    def __rich__(self) -> "RenderableType":
        table: RenderableType = resolve_name("steadygaze.report.terminal_tables:ComparisonTable")(self)
        return table

    def __str__(self) -> str:
        return render_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _difference(cell: ComparisonCell) -> dict[str, Any]:
    """The difference from the baseline for a table."""
    against = cell.against or Difference(math.nan, None, 0)
    low, high = against.interval or (None, None)
    return {"difference": against.value, "difference_low": low, "difference_high": high, "p": against.holm}


def _standing(result: TechniqueResult) -> dict[str, Any]:
    return {
        "technique": result.technique,
        "collapsed": list(result.collapsed),
        "at_chance": list(result.at_chance),
        "numbers": {measure: _entry(entry) for measure, entry in result.entries.items()},
        "answers": {title: list(answers) for title, answers in result.answers.items()},
        "settings": json_values(result.settings),
    }


def _entry(cell: ComparisonCell) -> dict[str, Any]:
    against = None if cell.against is None else json_values(asdict(cell.against))
    return {**cell.row.to_dict(), "seeds": json_values(cell.seeds), "against": against, "mark": cell.mark}
