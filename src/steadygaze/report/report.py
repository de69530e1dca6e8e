"""Report: everything an audit found, ready for a page, a file, a terminal or a gate.  No torch.

What is in `to_dict` is all there is: `Report.from_json` gives the same report again, and with it the same page.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from steadygaze import arguments
from steadygaze.explanation import Explanation
from steadygaze.outputs import GENERATOR, write_output
from steadygaze.record import Row, plain

if TYPE_CHECKING:
    from rich.console import Group

    from steadygaze.report.gate import Failure
    from steadygaze.report.policy import Policy

Answer = Literal["yes", "partly", "no", "not asked"]
Better = Literal["higher", "lower", "neither"]
TIME = "%Y-%m-%dT%H:%M:%SZ"
SCHEMA = 1
"""Raised when a file written today could not be read by yesterday's package."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a measure is, in plain words, and between which numbers it lies."""

    about: str
    low: float
    high: float
    better: Better = "neither"
    """Neither: good under one change and bad under another, or no merit at all."""
    cite: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question, answered in plain words from rows that are named."""

    question: str
    answer: Answer
    why: str
    rows: tuple[str, ...] = ()
    """Signatures of the numbers it rests on."""
    key: str = ""
    """A short name, as a policy may call it: holds-still."""
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Measure -> where yes ends and where no begins.  The first is the lower one where less is better."""


@dataclass(frozen=True, slots=True)
class Shift:
    """One text before and after a probe."""

    probe: str
    distance: float
    """How far the saliency moved: Jensen-Shannon, in nats."""
    before: Explanation
    after: Explanation


@dataclass(frozen=True, slots=True)
class Gate:
    """A policy that was applied to a report, and the outcome."""

    requirements: tuple[str, ...]
    unmet: int = 0
    """How many of them are not met."""
    failures: tuple[str, ...] = ()
    """A sentence for each number that fails; one requirement may fail for several."""

    @property
    def summary(self) -> str:
        """
        >>> Gate(("accuracy>=0.9", "flipped/noise<=0.1"), 1).summary
        'failed: 1 of 2 requirements not met'
        """
        total = f"{len(self.requirements)} requirement{'s' * (len(self.requirements) != 1)}"
        return f"failed: {self.unmet} of {total} not met" if self.unmet else f"passed: {total} met"


@dataclass(frozen=True, repr=False)
class Report:
    title: str
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...] = ()
    shifts: tuple[Shift, ...] = ()
    """The worst of each probe first."""
    plots: Mapping[str, Sequence[Mapping[str, str | int | float | None]]] = field(default_factory=dict)
    """Name of a picture -> the points in it: see report/plots.py."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What was audited.  "explanation" is the explainer that the verdicts are about."""
    notes: tuple[str, ...] = ()
    """What to know first.  One that answers a question begins with the answer's sign; any other is a warning."""
    meanings: Mapping[str, Fact] = field(default_factory=dict)
    """What each measure is.  jensen-shannon/noise is looked up under its whole name, then under jensen-shannon."""
    probes: Mapping[str, str] = field(default_factory=dict)
    """What comes after the slash of a measure, in a plain sentence: what was done, or compared with."""
    questions: Mapping[str, str] = field(default_factory=dict)
    """Measure -> the question, or any heading, that its numbers are filed under."""
    command: tuple[str, ...] = ()
    """What made it, word for word; empty where it was made in Python."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """What ran it: steadygaze, torch, numpy, python."""
    date: str = ""
    """When it was made, in UTC: 2026-11-16T10:12:23Z."""
    gate: Gate | None = None
    """The policy that was applied; None: nothing was required."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @arguments.checked(measure=arguments.text, explainer=arguments.optional(arguments.text))
    def find(self, measure: str, explainer: str | None = None) -> Row | None:
        """The row of that name; of the explanation under audit, or of another that is named."""
        return next(iter(self.all(measure, explainer)), None)

    @arguments.checked(measure=arguments.text, explainer=arguments.optional(arguments.text))
    def all(self, measure: str, explainer: str | None = None) -> list[Row]:
        """The same where several rows differ by some other setting.  A number of no explanation is everybody's."""
        wanted = explainer or self.facts.get("explanation")
        named = [row for row in self.rows if row.measure == measure]
        if wanted is None:
            return named
        mine = [row for row in named if row.settings.get("explain") == wanted]
        return mine or [row for row in named if "explain" not in row.settings]

    def meaning(self, measure: str) -> Fact | None:
        return self.meanings.get(measure) or self.meanings.get(measure.partition("/")[0])

    def better(self, measure: str) -> Better:
        """In which direction lies the good: as a verdict has it, else as the measure has it."""
        for good, bad in (v.limits[measure] for v in self.verdicts if measure in v.limits):
            return "lower" if good <= bad else "higher"
        fact = self.meaning(measure)
        return "neither" if fact is None else fact.better

    def failing(self, policy: "Policy | str | Path | Sequence[str]") -> "list[Failure]":
        """What of a policy does not hold: a Policy, a TOML file, or requirements such as "accuracy>=0.9"."""
        from steadygaze.report.gate import check
        from steadygaze.report.policy import as_policy

        return check(self, as_policy(policy))

    def gated(self, policy: "Policy") -> "Report":
        """The same report with the outcome of a policy."""
        required = [str(one) for one in policy.requirements]
        required += [f"{one.question}: {' or '.join(one.answers)}" for one in policy.verdicts]
        failures = self.failing(policy)
        unmet = len({failure.required for failure in failures})
        return replace(self, gate=Gate(tuple(required), unmet, tuple(map(str, failures))))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **GENERATOR,
            "schema": SCHEMA,
            "title": self.title,
            "facts": dict(self.facts),
            "verdicts": [_plain(asdict(verdict)) for verdict in self.verdicts],
            "rows": [row.to_dict() for row in self.rows],
            "shifts": [
                {
                    **{name: plain(getattr(shift, name)) for name in ("probe", "distance")},
                    **{name: getattr(shift, name).to_dict() for name in ("before", "after")},
                }
                for shift in self.shifts
            ],
            "plots": _plain(self.plots),
            "meanings": {name: _plain(asdict(fact)) for name, fact in self.meanings.items()},
            "probes": dict(self.probes),
            "questions": dict(self.questions),
            "notes": list(self.notes),
            "command": list(self.command),
            "versions": dict(self.versions),
            "date": self.date,
            "gate": None if self.gate is None else _plain(asdict(self.gate)),
        }

    @classmethod
    def from_dict(cls, values: Any) -> "Report":
        """What `to_dict` gave; anything else is refused in one sentence.  Nothing in it is run."""
        from steadygaze.report.reading import read

        return read(values)

    def to_json(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """The whole report; written to `path` if there is one."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_output(path, text, replace)
        return text

    @classmethod
    def from_json(cls, path: str | Path) -> "Report":
        """What `to_json` wrote."""
        from steadygaze.report.reading import read_file

        return read_file(Path(path))

    def to_html(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """The whole report as one page that loads nothing and runs nothing; written to `path` if there is one."""
        from steadygaze.report.audit_page import render

        place = None if path is None else arguments.path("path", path)
        html = render(self)
        if place is not None:
            write_output(place, html, replace)
        return html

    def __str__(self) -> str:
        from steadygaze.report.shown import text

        return text(self)

    def __repr__(self) -> str:
        said = ", ".join(f"{v.question} {v.answer}" for v in self.verdicts)
        return f"<Report: {len(self.rows)} numbers{'; ' if said else ''}{said}>"

    def __rich__(self) -> "Group":
        from steadygaze.report.shown import terminal

        return terminal(self)

    def _repr_html_(self) -> str:
        from steadygaze.report.shown import notebook

        return notebook(self)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime(TIME)


def is_time(text: str) -> bool:
    """Whether a text is written as `now` writes it.

    >>> is_time("2026-01-31T12:00:00Z"), is_time("2026-02-31T12:00:00Z"), is_time("2026-1-31T12:00:00Z")
    (True, False, False)
    """
    try:
        return datetime.strptime(text, TIME).strftime(TIME) == text
    except ValueError:
        return False


def _plain(value: Any) -> Any:
    """Lists, dictionaries, words and finite numbers."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return plain(value)
