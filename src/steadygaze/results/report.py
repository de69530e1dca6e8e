"""Report: everything an audit found, ready for a page, a file, a terminal or a gate.  No torch.

What is in `to_dict` is all there is: `Report.from_json` gives the same report again, and with it the same page.

The gate: what of a policy a report does not hold, in plain sentences.

What is not there does not pass: a number that is absent or not applicable fails, and says why.
"""

import json
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadygaze.core import arguments, entry_point
from steadygaze.core.errors import unknown
from steadygaze.core.output_paths import GENERATOR, write_output
from steadygaze.results.formatting import explainer_name, short_number
from steadygaze.results.policy import Op, Policy, Requirement, VerdictRequirement, as_policy
from steadygaze.results.report_file import read as read_report
from steadygaze.results.report_file import read_file as read_report_file
from steadygaze.results.row import Row, plain
from steadygaze.results.verdict import SCHEMA, Better, Fact, Gate, Shift, Verdict

if TYPE_CHECKING:
    from rich.console import Group


TIME = "%Y-%m-%dT%H:%M:%SZ"


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
    measures: Mapping[str, Fact] = field(default_factory=dict)
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

    @arguments.validated(measure=arguments.text, explainer=arguments.optional(arguments.text))
    def find(self, measure: str, explainer: str | None = None) -> Row | None:
        """The row of that name; of the explanation under audit, or of another that is named."""
        return next(iter(self.find_all(measure, explainer)), None)

    @arguments.validated(measure=arguments.text, explainer=arguments.optional(arguments.text))
    def find_all(self, measure: str, explainer: str | None = None) -> list[Row]:
        """The same where several rows differ by some other setting.  A number of no explanation is everybody's."""
        wanted = explainer or self.facts.get("explanation")
        named = [row for row in self.rows if row.measure == measure]
        if wanted is None:
            return named
        mine = [row for row in named if row.settings.get("explain") == wanted]
        return mine or [row for row in named if "explain" not in row.settings]

    def meaning(self, measure: str) -> Fact | None:
        return self.measures.get(measure) or self.measures.get(measure.partition("/")[0])

    def better(self, measure: str) -> Better:
        """In which direction lies the good: as a verdict has it, else as the measure has it."""
        for good, bad in (v.thresholds[measure] for v in self.verdicts if measure in v.thresholds):
            return "lower" if good <= bad else "higher"
        fact = self.meaning(measure)
        return "neither" if fact is None else fact.direction

    def failing(self, policy: "Policy | str | Path | Sequence[str]") -> "list[Failure]":
        """What of a policy does not hold: a Policy, a TOML file, or requirements such as "accuracy>=0.9"."""
        return check(self, as_policy(policy))

    def with_gate(self, policy: "Policy") -> "Report":
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
            "measures": {name: _plain(asdict(fact)) for name, fact in self.measures.items()},
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
        return read_report(cls, values)

    def to_json(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """The whole report; written to `path` if there is one."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_output(path, text, replace)
        return text

    @classmethod
    def from_json(cls, path: str | Path) -> "Report":
        """What `to_json` wrote."""
        return read_report_file(cls, Path(path))

    def to_html(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """The whole report as one page that loads nothing and runs nothing; written to `path` if there is one."""
        place = None if path is None else arguments.path("path", path)
        html: str = entry_point("steadygaze.report.audit_page:render")(self)
        if place is not None:
            write_output(place, html, replace)
        return html

    def __str__(self) -> str:
        return str(entry_point("steadygaze.report.terminal_tables:text")(self))

    def __repr__(self) -> str:
        said = ", ".join(f"{v.question} {v.answer}" for v in self.verdicts)
        return f"<Report: {len(self.rows)} numbers{'; ' if said else ''}{said}>"

    def __rich__(self) -> "Group":
        drawn: Group = entry_point("steadygaze.report.terminal_tables:terminal")(self)
        return drawn

    def _repr_html_(self) -> str:
        return str(entry_point("steadygaze.report.terminal_tables:notebook")(self))


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


HOLDS: dict[Op, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
SAID: dict[Op, str] = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "==": "exactly"}


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that was required and does not hold."""

    required: str
    """As the policy has it: jensen-shannon/noise<=0.02, or a question."""
    sentence: str
    signature: str = ""
    """Of the number that fails, where there is one."""

    def __str__(self) -> str:
        return self.sentence


def check(report: Report, policy: Policy) -> list[Failure]:
    """Everything that does not hold.  A measure or a question that nobody knows is the user's mistake: UserError."""
    failed = [failure for one in policy.requirements for failure in _measured(report, one)]
    return failed + [failure for one in policy.verdicts for failure in _answered(report, one)]


def _measured(report: Report, required: Requirement) -> Iterator[Failure]:
    named = {row.measure for row in report.rows}
    if required.measure not in named and required.measure.partition("/")[0] not in report.measures:
        raise unknown("measure", required.measure, named | report.measures.keys())
    rows = report.find_all(required.measure, required.explainer)
    if not rows:
        yield Failure(str(required), _because(_nowhere(report, required), required.why))
    for row in rows:
        if (fault := _fault(row, required)) is not None:
            yield Failure(str(required), _because(fault, required.why), row.signature)


def _nowhere(report: Report, required: Requirement) -> str:
    of = required.explainer or report.facts.get("explanation", "this explanation")
    others = [explainer_name(row) for row in report.rows if row.measure == required.measure]
    if others:
        return f"{required.measure} was not measured of {of}, only of {', '.join(dict.fromkeys(others))}"
    family = required.measure.partition("/")[0]
    alike = dict.fromkeys(row.measure for row in report.rows if row.measure.partition("/")[0] == family)
    hint = f"; there are {', '.join(alike)}" if alike else ""
    return f"{required.measure} was required and was not measured{hint}"


def _fault(row: Row, required: Requirement) -> str | None:
    """What is wrong with a number, or None."""
    of = f" of {row.settings['explain']}" if "explain" in row.settings else ""
    asked = f"{SAID[required.op]} {short_number(required.limit)} was required"
    if math.isnan(row.value):
        return f"{row.measure}{of}: {asked}, and it is {row.note or 'not defined'}"
    holds, found = HOLDS[required.op], f"{row.measure}{of} is {_exact(row.value, required.limit)}"
    if not required.interval:
        return None if holds(row.value, required.limit) else f"{found}; {asked}"
    if row.interval is None:
        return f"{found} and has no interval; {asked} of the whole interval"
    if all(holds(end, required.limit) for end in (row.value, *row.interval)):
        return None
    ends = " to ".join(_exact(end, required.limit) for end in row.interval)
    return f"{found}, its 95 % interval {ends}; {asked} of the whole interval"


def _answered(report: Report, wanted: VerdictRequirement) -> Iterator[Failure]:
    verdict = _verdict(report, wanted.question)
    if verdict.answer not in wanted.answers:
        asked = " or ".join(repr(answer) for answer in wanted.answers)
        said = f"{verdict.question} The answer is {verdict.answer!r}; {asked} was required ({verdict.why.rstrip('.')})"
        yield Failure(verdict.question, _because(said, wanted.why))


def _verdict(report: Report, question: str) -> Verdict:
    for verdict in report.verdicts:
        if question in (verdict.question, verdict.key):
            return verdict
    raise unknown(
        "question", question, [v.question for v in report.verdicts] + [v.key for v in report.verdicts if v.key]
    )


def _because(sentence: str, why: str) -> str:
    return f"{sentence}: {why}" if why else f"{sentence}."


def _exact(value: float, limit: float) -> str:
    """With as many figures as it takes to see on which side of the limit it lies.

    >>> _exact(0.0500004, 0.05), _exact(0.061234, 0.05)
    ('0.0500004', '0.0612')
    """
    said = (format(value, f".{figures}g") for figures in range(3, 18))
    return next((one for one in said if float(one) != limit or value == limit), repr(value)).replace("-", "−")
