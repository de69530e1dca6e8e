"""Row: one score with the settings needed to reproduce it; verdicts, shifts and gates; keys; results as files."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal, get_args

from steadygaze.core import arguments
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.output_paths import write_output
from steadygaze.results.advice import Advice
from steadygaze.results.explanation import Explanation
from steadygaze.results.intervals import finite_values, studentized_interval, wilson_interval
from steadygaze.results.note import Note

Answer = Literal["yes", "undecided", "no", "not meaningful", "not measured"]
Better = Literal["higher", "lower", "neither"]
SCHEMA = 6
"""Schema of a report; incremented if its fields change."""


@dataclass(frozen=True, slots=True)
class MeasureKey:
    """A measure and its probe or comparison, if there is one.

    >>> MeasureKey.parse("jensen-shannon/noise")
    MeasureKey(measure='jensen-shannon', probe='noise')
    >>> str(MeasureKey("jensen-shannon", "noise")), str(MeasureKey("accuracy"))
    ('jensen-shannon/noise', 'accuracy')
    """

    measure: str
    probe: str = ""

    @classmethod
    def parse(cls, name: str) -> "MeasureKey":
        measure, _, probe = name.partition("/")
        return cls(measure, probe)

    def __str__(self) -> str:
        return f"{self.measure}/{self.probe}" if self.probe else self.measure


@dataclass(frozen=True, slots=True)
class ValueKey:
    """The key of an array with one value per text.

    >>> str(ValueKey(MeasureKey("jensen-shannon", "seeds"), "attention", (0, 2)))
    'jensen-shannon/seeds|attention|0+2'
    >>> ValueKey.parse("accuracy")
    ValueKey(measure=MeasureKey(measure='accuracy', probe=''), explainer=None, models=None)
    """

    measure: MeasureKey
    explainer: str | None = None
    """None: the values describe the prediction."""
    models: tuple[int, int] | None = None
    """The two compared models, by their position."""

    @classmethod
    def parse(cls, name: str) -> "ValueKey":
        measure, explainer, models = (*name.split("|"), "", "")[:3]
        first, _, second = models.partition("+")
        pair = (int(first), int(second)) if first.isdecimal() and second.isdecimal() else None
        return cls(MeasureKey.parse(measure), explainer or None, pair)

    def __str__(self) -> str:
        models = "" if self.models is None else "{}+{}".format(*self.models)
        return "|".join(filter(None, (str(self.measure), self.explainer, models)))


Caveat = Literal["erasure-judged-by-erasure"]
"""Limits of what a score shows."""


@dataclass(frozen=True, slots=True)
class Row:
    """One score."""

    measure: str
    """Name of the measure, with its probe after a slash."""
    value: float
    """The score; NaN: not applicable."""
    n: int
    """Number of examples."""
    interval: tuple[float, float] | None = None
    """95 % bootstrap interval; None: the score has none."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """Settings of the score: corpus, split, seed, version …"""
    notes: tuple[Note, ...] = ()
    """Remarks about the score."""
    caveat: Caveat | None = None
    """A limit of what the score shows; report/sentences.py has it in words."""
    absent: Note | None = None
    """Why the score is not applicable; None: it is."""

    def __eq__(self, other: object) -> bool:
        """True if all fields are equal.  Rows without a value can be equal: NaN counts as equal to NaN.

        >>> Row("accuracy", float("nan"), 0) == Row("accuracy", float("nan"), 0)
        True
        """
        return self._comparable == other._comparable if isinstance(other, Row) else NotImplemented

    @property
    def _comparable(self) -> tuple[Any, ...]:
        ends = self.interval and tuple(map(plain, self.interval))
        return self.measure, plain(self.value), self.n, ends, self.settings, self.notes, self.caveat, self.absent

    @property
    def key(self) -> MeasureKey:
        """The measure and the probe of `measure`."""
        return MeasureKey.parse(self.measure)

    @property
    def note(self) -> str:
        """The reason why it is not applicable, or else the remarks, in words."""
        return str(resolve_name("steadygaze.report.sentences:row_note")(self))

    @property
    def signature(self) -> str:
        """`measure|key:value|…|n:N`: scores with equal signatures are comparable.

        >>> Row("accuracy", 0.5, 10, settings={"split": "test", "corpus": "sst2"}).signature
        'accuracy|corpus:sst2|split:test|n:10'
        """
        parts = [f"{key}:{value}" for key, value in sorted(self.settings.items())]
        return "|".join([self.measure, *parts, f"n:{self.n}"])

    def __str__(self) -> str:
        """The score in one line; `signature` has its settings.

        >>> str(Row("accuracy", 0.5, 10, (0.2, 0.8), {"class": "good", "corpus": "sst2"}))
        'accuracy, class good = 0.500 [0.200, 0.800], n = 10'
        """
        bounds = "" if self.interval is None else f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"
        of_class = f", class {self.settings['class']}" if "class" in self.settings else ""
        return f"{self.measure}{of_class} = {self.value:.3f}{bounds}, n = {self.n:,}"

    def columns(self) -> dict[str, Any]:
        """The score for a table.

        Returns
        -------
        dict
            measure, value, low, high and n.
        """
        low, high = self.interval or (None, None)
        return {"measure": self.measure, "value": self.value, "low": low, "high": high, "n": self.n}

    def to_dict(self) -> dict[str, Any]:
        """The score as values for JSON, with its signature and its notes in words.

        Returns
        -------
        dict
            NaN is None, and infinity a string.
        """
        values = {**asdict(self), "value": plain(self.value), "note": self.note, "signature": self.signature}
        values["interval"] = None if self.interval is None else [plain(end) for end in self.interval]
        values["settings"] = {key: _word(value) for key, value in self.settings.items()}
        values["notes"] = [note.to_data() for note in self.notes]
        values["absent"] = None if self.absent is None else self.absent.to_data()
        return values

    @classmethod
    def from_dict(cls, values: Any) -> "Row":
        """Restore a row.

        Parameters
        ----------
        values : dict
            The result of `to_dict`.  A wrong signature is refused.

        Returns
        -------
        Row
            The score.
        """
        if not isinstance(values, Mapping) or not isinstance(values.get("measure"), str):
            raise UserError(f"a row has a measure, a value and n; found {values!r:.80}")
        name = f"row {values['measure']!r:.80}"
        if differing := {*cls.__slots__, "note", "signature"} ^ values.keys():
            problem = "unknown" if min(differing) in values else "missing"
            raise UserError(f"{name}: the key {min(differing)!r} is {problem}")
        if not (isinstance(values["n"], int) and isinstance(values["notes"], list | tuple)):
            raise UserError(f"{name}: n must be a whole number and notes a list")
        if values["caveat"] not in (None, *get_args(Caveat)):
            raise UserError(f"{name}: {unknown('caveat', values['caveat'], get_args(Caveat))}")
        if not _settings(values["settings"]):
            raise UserError(f"{name}: settings must be words and numbers by name, found {values['settings']!r:.80}")
        row = cls(
            values["measure"],
            _number(values["value"], name),
            values["n"],
            _interval(values["interval"], name),
            dict(values["settings"]),
            tuple(map(Note.from_dict, values["notes"])),
            values["caveat"],
            None if values["absent"] is None else Note.from_dict(values["absent"]),
        )
        if values["signature"] != row.signature:
            raise UserError(f"{name}: its signature is {values['signature']!r:.200}, and should be {row.signature!r}")
        return row


@dataclass(frozen=True, slots=True)
class Fact:
    """The description and the range of a measure."""

    sentence: str
    low: float
    high: float
    direction: Better = "neither"
    """The better direction.  `neither`: it depends on the perturbation, or does not exist."""
    citation: str = ""
    scale: str = ""
    """How to read the number; empty: no explanation needed."""


@dataclass(frozen=True, slots=True)
class PropertyFact:
    """The description of a property, for reports."""

    name: str
    """As in a policy: seed-consistency."""
    title: str
    question: str = ""
    short_question: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Name of a row -> its plain name."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Answer -> its meaning, with a {noun}.  {conditions}: those under which no yes was reached."""
    noun: str = ""
    """Its name in a sentence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about one property of the explanation, with its reason and rows."""

    title: str
    """The property: Stability, Faithfulness …"""
    answer: Answer
    """yes, no, undecided, not meaningful (another property is a no) or not measured."""
    reasons: tuple[Note, ...]
    """The reasons for the answer, the decisive ones first."""
    rows: tuple[str, ...] = ()
    """Signatures of the rows that it uses."""
    key: str = ""
    """The name in a policy: stability."""
    thresholds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Measure -> thresholds of yes and of no.  The first is smaller if lower values are better."""
    advice: tuple[Advice, ...] = ()
    """How to decide an undecided verdict, or what to try after a no."""
    caveats: tuple[Caveat, ...] = ()
    """The caveats of its rows."""

    @property
    def why(self) -> str:
        """The reasons, in a sentence."""
        return str(resolve_name("steadygaze.report.sentences:paragraph")(self.reasons))

    @property
    def caveat(self) -> str:
        """The caveats as sentences."""
        sentences: Mapping[Caveat, str] = resolve_name("steadygaze.report.sentences:CAVEATS")
        return "  ".join(sentences[name] for name in self.caveats)

    @property
    def advice_text(self) -> str:
        """The advice, in a sentence; empty if there is none."""
        return str(resolve_name("steadygaze.report.sentences:paragraph")(self.advice))

    @property
    def reason(self) -> str:
        """`why`, the caveats and the advice."""
        return str(resolve_name("steadygaze.report.sentences:reason")(self))

    def to_dict(self) -> dict[str, Any]:
        """The verdict as values for JSON, with its sentences.

        Returns
        -------
        dict
            The fields, and the sentences of the reasons and the advice.
        """
        sentence = resolve_name("steadygaze.report.sentences:sentence")
        advice = [{**asdict(item), "message": sentence(item)} for item in self.advice]
        reasons = [item.to_data() for item in self.reasons]
        values = {**asdict(self), "reasons": reasons, "why": self.why, "advice": advice}
        return {name: json_values(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Shift:
    """One text before and after a perturbation."""

    probe: str
    distance: float
    """Jensen-Shannon divergence of the weights, in nats."""
    before: Explanation
    after: Explanation


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of a policy on a report."""

    requirements: tuple[str, ...]
    unmet: int = 0
    """Number of unmet requirements."""
    failures: tuple[Note, ...] = ()
    """One note per failing row; a requirement can fail for several rows."""

    def to_dict(self) -> dict[str, Any]:
        """The result as values for JSON."""
        failures = [failure.to_dict() for failure in self.failures]
        return {"requirements": list(self.requirements), "unmet": self.unmet, "failures": failures}

    @property
    def summary(self) -> str:
        """
        >>> Gate(("accuracy>=0.9", "label-flip/noise<=0.1"), 1).summary
        'failed: 1 of 2 requirements not met'
        """
        total = f"{len(self.requirements)} requirement{'s' * (len(self.requirements) != 1)}"
        return f"failed: {self.unmet} of {total} not met" if self.unmet else f"passed: {total} met"


def plain(value: Any) -> Any:
    """Convert NaN to null and infinity to a string, for JSON."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def json_values(value: Any) -> Any:
    """Convert mappings, sequences and numbers to JSON values."""
    if isinstance(value, Mapping):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [json_values(item) for item in value]
    return plain(value) if isinstance(value, str | int | float | None) else str(value)


class JsonResult(ABC):
    """A result that is saved as JSON."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as values for JSON.

        Returns
        -------
        dict
            Lists, strings and numbers, ready for JSON.
        """

    def to_json(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """The result as JSON.

        Parameters
        ----------
        path : str or Path, default=None
            File to write; None: write nothing.
        replace : bool, default=False
            Overwrite a file that steadygaze did not write.

        Returns
        -------
        str
            The values of `to_dict`.
        """
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_output(path, text, replace)
        return text


class SavedResult(JsonResult):
    """A result that is saved as JSON or as a page."""

    renderer: ClassVar[str]
    """module:function that renders the page."""

    def to_html(self, path: str | Path | None = None, *, replace: bool = False) -> str:
        """Make one HTML page without scripts or external files.

        Parameters
        ----------
        path : str or Path, default=None
            File to write; None: write nothing.
        replace : bool, default=False
            Overwrite a file that steadygaze did not write.

        Returns
        -------
        str
            The page.
        """
        file = None if path is None else arguments.path("path", path)
        html: str = resolve_name(self.renderer)(self)
        if file is not None:
            write_output(file, html, replace)
        return html


def _word(value: Any) -> Any:
    """Convert a setting that is not finite to a string; the signature stays the same."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any, name: str) -> float:
    if value in (None, "inf", "-inf"):
        return math.nan if value is None else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{name}: found {value!r:.80} instead of a number")
    return value


def _interval(value: Any, name: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UserError(f"{name}: an interval has two ends, found {value!r:.80}")
    return _number(value[0], name), _number(value[1], name)


def _settings(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(setting, str | int | float) for key, setting in value.items()
    )


def to_jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row.to_dict(), ensure_ascii=False) + "\n" for row in rows)


def mean_row(
    measure: str,
    values: Sequence[float],
    settings: Mapping[str, str | int | float] | None = None,
    *,
    notes: tuple[Note, ...] = (),
    seed: int = 0,
    proportion: bool = False,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Row:
    """The mean over examples with its bootstrap interval, which is cut at `bounds`; one example has no interval.

    `proportion`: the measure is 0 or 1 for each text.  Its mean is a share of texts and has Wilson's interval, unless
    the values are differences, or means over several models.
    """
    sample, interval = finite_values(values), None
    if len(sample) > 1 and proportion and {*values} <= {0.0, 1.0}:
        interval = wilson_interval(int(sample.sum()), len(sample))
    elif len(sample) > 1:
        interval = within(studentized_interval(sample, seed=seed), bounds)
    return Row(measure, float(sample.mean()), len(sample), interval, settings or {}, notes)


def ratio_row(
    measure: str,
    values: Sequence[float],
    per: Sequence[float],
    settings: Mapping[str, str | int | float] | None = None,
    *,
    notes: tuple[Note, ...] = (),
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Row:
    """The ratio of two sums over examples with its bootstrap interval; the divisor is not 0."""
    interval = within(studentized_interval(values, per), bounds) if len(values) > 1 else None
    return Row(measure, sum(values) / sum(per), len(values), interval, settings or {}, notes)


def within(interval: tuple[float, float], bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in interval)
    return low, high
