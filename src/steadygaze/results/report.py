"""Report: the results of an audit, for a page, a file, a terminal or a gate.  Does not import torch.

`Report.from_json` restores the whole report.  The gate compares a report with a policy: a score that is absent or not
applicable fails.
"""

import math
import operator
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from steadygaze.core import __version__, arguments
from steadygaze.core.errors import unknown
from steadygaze.core.output_paths import GENERATOR
from steadygaze.results.data_frame import data_frame
from steadygaze.results.evaluation import Evaluation
from steadygaze.results.explanation import Explanations
from steadygaze.results.formatting import explainer_name
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.policy import Op, Policy, Requirement, VerdictRequirement, as_policy
from steadygaze.results.recommendation import Recommendation
from steadygaze.results.report_file import read as read_report
from steadygaze.results.report_file import read_file as read_report_file
from steadygaze.results.row import (
    SCHEMA,
    Answer,
    Better,
    Fact,
    Gate,
    MeasureKey,
    PropertyFact,
    Row,
    SavedResult,
    Shift,
    Verdict,
    json_values,
    plain,
)

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Group


TIME = "%Y-%m-%dT%H:%M:%SZ"
CORRECTNESS = ("accuracy", "macro-f1")
"""Measures of correctness, shown with those of the verdicts."""


@dataclass(frozen=True, repr=False)
class Report(SavedResult):
    """The results of an audit, as returned by `steadygaze.audit`.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> report = sg.audit(cheerful, ["a good film", "a dull one"], ["yes", "no"], classes=["no", "yes"])
    >>> restored = sg.Report.from_dict(report.to_dict())
    >>> restored.find("accuracy").value, restored.failing(["accuracy>=0.9"])
    (1.0, [])
    """

    renderer: ClassVar[str] = "steadygaze.report.audit_page:render"

    title: str
    """Title of the page."""
    rows: tuple[Row, ...]
    """The scores."""
    verdicts: tuple[Verdict, ...] = ()
    """The answers about the explanations of the first explainer, one per property.  Policies require these."""
    shifts: tuple[Shift, ...] = ()
    """The largest shift of each perturbation first."""
    plots: Mapping[str, Sequence[Mapping[str, str | int | float | None]]] = field(default_factory=dict)
    """Name of a plot -> its points; see report/plot_data.py."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts about the audit.  "explanation" is the explainer that the verdicts rate."""
    notes: tuple[Note, ...] = ()
    """Answers and warnings."""
    measures: Mapping[str, Fact] = field(default_factory=dict)
    """Measure -> its description, by full name (jensen-shannon/noise) or by the part before the slash."""
    probes: Mapping[str, str] = field(default_factory=dict)
    """Perturbation or comparison, after the slash of a measure -> its description."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """Measure -> the heading of its scores."""
    command: tuple[str, ...] = ()
    """The command line; empty if made in Python."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of steadygaze, torch, numpy and Python."""
    date: str = ""
    """Time in UTC: 2026-11-16T10:12:23Z."""
    gate: Gate | None = None
    """The result of the policy; None: no policy."""
    evaluation: Evaluation | None = None
    """Confusion matrix and wrong predictions; None: the texts have no labels."""
    explanations: Explanations = field(default_factory=Explanations)
    """Explanations of the first 200 audited texts by the explainer that the verdicts rate."""
    health: Health = HEALTHY
    """Known-bad states of the model and of the explainers, also those that the audit found."""
    properties: tuple[PropertyFact, ...] = ()
    """The properties that the audit rates or measures."""
    other_verdicts: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict)
    """Explainer -> its verdicts, for all audited explainers after the first, without the baseline `random`."""
    recommendation: Recommendation | None = None
    """Which explainer to use; None: there are fewer than two to choose from."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def accuracy(self) -> Row | None:
        """The accuracy; None without labels."""
        row = self.find("accuracy")
        return row if row is not None and row.n else None

    @arguments.validated(measure=arguments.text, explainer=arguments.optional(arguments.text))
    def find(self, measure: str, explainer: str | None = None) -> Row | None:
        """Find the row of a measure.

        Parameters
        ----------
        measure : str
            Name of the measure, such as "jensen-shannon/noise".
        explainer : str, default=None
            Name of an explainer; None: the explainer that the verdicts rate.

        Returns
        -------
        Row or None
            The first of `find_all`; None: the report has no such row.
        """
        return next(iter(self.find_all(measure, explainer)), None)

    @arguments.validated(measure=arguments.text, explainer=arguments.optional(arguments.text))
    def find_all(self, measure: str, explainer: str | None = None) -> list[Row]:
        """Find all rows of a measure.

        Parameters
        ----------
        measure : str
            Name of the measure, such as "jensen-shannon/noise".
        explainer : str, default=None
            Name of an explainer; None: the explainer that the verdicts rate.

        Returns
        -------
        list of Row
            Rows of the explainer.  Rows without an explainer apply to every explainer.
        """
        name = explainer or self.facts.get("explanation")
        rows = [row for row in self.rows if row.measure == measure]
        if name is None:
            return rows
        explainer_rows = [row for row in rows if row.settings.get("explainer") == name]
        return explainer_rows or [row for row in rows if "explainer" not in row.settings]

    @property
    def main_rows(self) -> list[Row]:
        """Rows of a short report: correctness and the rows of the verdicts."""
        signatures = {signature for verdict in self.verdicts for signature in verdict.rows}
        return [row for row in self.rows if row.n and (row.measure in CORRECTNESS or row.signature in signatures)]

    @property
    def verdicts_by(self) -> dict[str, tuple[Verdict, ...]]:
        """Explainer -> its verdicts, for all audited explainers, the first one first."""
        first = {self.facts["explanation"]: self.verdicts} if "explanation" in self.facts else {}
        return {**first, **self.other_verdicts}

    @property
    def answers_by(self) -> dict[str, dict[str, Answer]]:
        """Explainer -> title of a property -> answer; empty unless several explainers have verdicts."""
        if not self.other_verdicts or "explanation" not in self.facts:
            return {}
        answers = {name: {item.title: item.answer for item in items} for name, items in self.verdicts_by.items()}
        titles = dict.fromkeys(title for of in answers.values() for title in of)
        return {name: {title: of.get(title, "not measured") for title in titles} for name, of in answers.items()}

    @property
    def recommendation_text(self) -> str:
        """The recommendation, in a sentence; empty if there is none."""
        if self.recommendation is None:
            return ""
        nouns = {item.name: item.noun for item in self.properties}
        return note(NoteCode.RECOMMENDATION, **json_values(asdict(self.recommendation)), nouns=nouns).sentence

    def meaning(self, measure: str) -> Fact | None:
        """The description of a measure.

        Parameters
        ----------
        measure : str
            Name of the measure, such as "jensen-shannon/noise".

        Returns
        -------
        Fact or None
            Sentence, range, better direction and citation; None: unknown measure.
        """
        return self.measures.get(measure) or self.measures.get(MeasureKey.parse(measure).measure)

    def label(self, measure: str) -> str:
        """The plain name of a row.

        Parameters
        ----------
        measure : str
            Name of the row, such as "jensen-shannon/noise".

        Returns
        -------
        str
            The name itself, if it has no plain one.
        """
        return next((item.labels[measure] for item in self.properties if measure in item.labels), measure)

    def scale(self, measure: str) -> str:
        """How to read the number of a row.

        Parameters
        ----------
        measure : str
            Name of the row, such as "jensen-shannon/noise".

        Returns
        -------
        str
            Such as "0: unrelated, 1: the same order of words"; empty if there is nothing to explain.
        """
        fact = self.meaning(measure)
        return "" if fact is None else fact.scale

    def better(self, measure: str) -> Better:
        """The better direction of a measure, from the thresholds of a verdict or else from the measure.

        Parameters
        ----------
        measure : str
            Name of the measure, such as "jensen-shannon/noise".

        Returns
        -------
        str
            "lower", "higher" or "neither".
        """
        for good, bad in (v.thresholds[measure] for v in self.verdicts if measure in v.thresholds):
            return "lower" if good <= bad else "higher"
        fact = self.meaning(measure)
        return "neither" if fact is None else fact.direction

    def failing(self, policy: "Policy | str | Path | Sequence[str]") -> "list[Failure]":
        """Compare the report with a policy.

        Parameters
        ----------
        policy : Policy, str, Path or list of str
            A policy, a TOML file, or requirements such as ["accuracy>=0.9"].

        Returns
        -------
        list of Failure
            Unmet requirements; `str` makes a sentence of each.
        """
        return unmet_requirements(self, as_policy(policy))

    def with_gate(self, policy: "Policy") -> "Report":
        """Add the result of a policy to the report.

        Parameters
        ----------
        policy : Policy
            The requirements.

        Returns
        -------
        Report
            A copy with `gate`.
        """
        required = [str(rule) for rule in policy.requirements]
        required += [f"{rule.name}: {' or '.join(rule.answers)}" for rule in policy.verdicts]
        failures = self.failing(policy)
        unmet = len({failure.required for failure in failures})
        return replace(self, gate=Gate(tuple(required), unmet, tuple(failure.reason for failure in failures)))

    def to_dict(self) -> dict[str, Any]:
        return {
            **GENERATOR,
            "schema": SCHEMA,
            "health": self.health.to_list(),
            "title": self.title,
            "facts": dict(self.facts),
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "other_verdicts": {name: [item.to_dict() for item in of] for name, of in self.other_verdicts.items()},
            "recommendation": self._recommendation(),
            "rows": [row.to_dict() for row in self.rows],
            "shifts": [
                {
                    **{name: json_values(getattr(shift, name)) for name in ("probe", "distance")},
                    **{name: getattr(shift, name).to_dict() for name in ("before", "after")},
                }
                for shift in self.shifts
            ],
            "plots": json_values(self.plots),
            "measures": {name: json_values(asdict(fact)) for name, fact in self.measures.items()},
            "properties": [json_values(asdict(item)) for item in self.properties],
            "probes": dict(self.probes),
            "sections": dict(self.sections),
            "notes": [item.to_dict() for item in self.notes],
            "command": list(self.command),
            "versions": dict(self.versions),
            "date": self.date,
            "gate": None if self.gate is None else self.gate.to_dict(),
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
            "explanations": [explanation.to_dict() for explanation in self.explanations],
        }

    def _recommendation(self) -> dict[str, Any] | None:
        """The recommendation as values for JSON, with its sentence."""
        if self.recommendation is None:
            return None
        return {**json_values(asdict(self.recommendation)), "message": self.recommendation_text}

    def to_pandas(self) -> "DataFrame":
        """The scores as a table.

        Returns
        -------
        pandas.DataFrame
            One row per score: measure, value, low, high, n, explainer, note and signature.
        """
        return data_frame(
            [
                {
                    **row.columns(),
                    "explainer": row.settings.get("explainer"),
                    "note": row.note,
                    "signature": row.signature,
                }
                for row in self.rows
            ]
        )

    @classmethod
    def from_dict(cls, values: Any) -> "Report":
        """Restore a report.  No code in it is run.

        Parameters
        ----------
        values : dict
            The result of `to_dict`.

        Returns
        -------
        Report
            The report.
        """
        return read_report(cls, values)

    @classmethod
    def from_json(cls, path: str | Path) -> "Report":
        """Read a report from a file.

        Parameters
        ----------
        path : str or Path
            A file of `to_json`, such as report.json of an audit bundle.

        Returns
        -------
        Report
            The report.
        """
        return read_report_file(cls, Path(path))

    def __str__(self) -> str:
        return str(resolve_name("steadygaze.report.terminal_tables:text")(self))

    def __repr__(self) -> str:
        answers = ", ".join(f"{v.title}: {v.answer}" for v in self.verdicts)
        return f"<Report: {len(self.rows)} numbers{'; ' if answers else ''}{answers}>"

    def __rich__(self) -> "Group":
        output: Group = resolve_name("steadygaze.report.terminal_tables:terminal")(self)
        return output

    def _repr_html_(self) -> str:
        return str(resolve_name("steadygaze.report.terminal_tables:notebook")(self))


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime(TIME)


def versions() -> dict[str, str]:
    """The package versions, for a Report and its manifest."""
    return {"steadygaze": __version__, "python": platform.python_version(), **dict(_installed())}


def _installed() -> Iterator[tuple[str, str]]:
    for name in ("torch", "numpy", "transformers", "icu4py"):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def is_time(text: str) -> bool:
    """Return whether a text has the format of `now`.

    >>> is_time("2026-01-31T12:00:00Z"), is_time("2026-02-31T12:00:00Z"), is_time("2026-1-31T12:00:00Z")
    (True, False, False)
    """
    try:
        return datetime.strptime(text, TIME).strftime(TIME) == text
    except ValueError:
        return False


OPERATORS: dict[Op, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """One unmet requirement."""

    required: str
    """The requirement: jensen-shannon/noise<=0.02, or a verdict."""
    reason: Note
    """How it fails."""
    signature: str = ""
    """Signature of the row that fails, if there is one."""

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return self.reason.sentence

    def __str__(self) -> str:
        return self.sentence


def unmet_requirements(report: Report, policy: Policy) -> list[Failure]:
    """Return all unmet requirements.  Raises UserError for an unknown measure or verdict."""
    failures = [failure for rule in policy.requirements for failure in _measured(report, rule)]
    return failures + [failure for rule in policy.verdicts for failure in _answered(report, rule)]


def _measured(report: Report, required: Requirement) -> Iterator[Failure]:
    measures = {row.measure for row in report.rows}
    if required.measure not in measures and required.key.measure not in report.measures:
        raise unknown("measure", required.measure, measures | report.measures.keys())
    rows = report.find_all(required.measure, required.explainer)
    if not rows:
        yield Failure(str(required), _missing(report, required))
    for row in rows:
        if (fault := _fault(row, required)) is not None:
            yield Failure(str(required), fault, row.signature)


def _missing(report: Report, required: Requirement) -> Note:
    explainers = [explainer_name(row) for row in report.rows if row.measure == required.measure]
    related = [row.measure for row in report.rows if row.key.measure == required.key.measure]
    return note(
        NoteCode.REQUIRED_MEASURE,
        measure=required.measure,
        why=required.why,
        explainer=required.explainer or report.facts.get("explanation"),
        explainers=[*dict.fromkeys(explainers)],
        related=[*dict.fromkeys(related)],
    )


def _fault(row: Row, required: Requirement) -> Note | None:
    """Describe why a row fails; None if it passes."""
    passes, ends = OPERATORS[required.op], row.interval or (math.nan, math.nan)
    values = (row.value, *ends) if required.interval else (row.value,)
    if all(passes(value, required.limit) for value in values):
        return None
    return note(
        NoteCode.REQUIRED_SCORE,
        measure=row.measure,
        explainer=row.settings.get("explainer"),
        value=plain(row.value),
        interval=None if row.interval is None else list(map(plain, row.interval)),
        op=required.op,
        limit=required.limit,
        whole=required.interval,
        absent=row.absent,
        why=required.why,
    )


def _answered(report: Report, required: VerdictRequirement) -> Iterator[Failure]:
    verdict = _verdict(report, required.name)
    if verdict.answer not in required.answers:
        reason = note(
            NoteCode.REQUIRED_ANSWER,
            title=verdict.title,
            answer=verdict.answer,
            answers=required.answers,
            reasons=verdict.reasons,
            why=required.why,
        )
        yield Failure(verdict.title, reason)


def _verdict(report: Report, name: str) -> Verdict:
    for verdict in report.verdicts:
        if name in (verdict.title, verdict.key):
            return verdict
    raise unknown("verdict", name, [v.title for v in report.verdicts] + [v.key for v in report.verdicts if v.key])
