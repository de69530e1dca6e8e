"""Property: a question about explanations, with all that the audit, its reports and its users need to know about it.

    measures     the numbers: function, bounds, direction, citation, label, scale
    checks       the protocols that compute them from an audited case
    conditions   what the part of a row's name after the slash means
    rule         how the verdict follows from the numbers; None: the property has no verdict
    meanings     what each answer means, for readers

`PROPERTIES` has all properties by name; audits, pages, terminals, cards, policies, `list measures`, comparisons and
`tune` read nothing else.  A user adds one in a module of their own: `PROPERTIES["name"] = Property(...)`.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.measures.measure import Measure
from steadygaze.results.advice import Advice as Advice
from steadygaze.results.advice import AdviceKind as AdviceKind
from steadygaze.results.formatting import explainer_name
from steadygaze.results.intervals import LEVEL
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import Answer, PropertyFact, Row

FEWEST = 8
"""Minimum number of texts for a no."""
FEWEST_FOR_YES = 50
"""Minimum number of texts for a yes: fewer do not show rare failures, and their intervals are too narrow."""
COLLAPSED = "collapsed"
Protocol = Callable[[AuditCase], Iterator[Finding]]


@dataclass(frozen=True)
class Check:
    """A protocol, and when it runs."""

    run: Protocol
    """Computes findings from an audited case."""
    rows: tuple[str, ...] = ()
    """Names of its rows, for audits of chosen measures.  Empty: such audits run all checks."""
    always: bool = False
    """True if an audit of chosen measures runs it, whichever they are."""
    thorough: bool = False
    """True if only a thorough audit runs it."""
    counts_empty: bool = False
    """True if texts with an empty selection count."""


OTHER_EXPLAINER = Advice()


@dataclass(frozen=True)
class Threshold:
    """The thresholds of yes and of no.  Higher values are better if `good` is above `bad`."""

    good: float
    """A yes needs the whole interval on this side."""
    bad: float
    """A no needs the whole interval on this side."""
    sentence: str
    """Sentence with {value}, or with {size} and {more} (or less) or {better} (or worse).

    {noun}: attention, selection, weight.
    """
    remark: NoteCode | None = None
    """A note of the row with this code ends the sentence."""
    advice: Advice = OTHER_EXPLAINER
    """The advice after a no."""
    fewest: int = FEWEST_FOR_YES
    """Minimum number of texts for a yes."""

    def is_good(self, value: float) -> bool:
        """True if a value is on the side of yes.

        Parameters
        ----------
        value : float
            A score.

        Returns
        -------
        bool
            Its interval does not count.
        """
        return value >= self.good if self.good > self.bad else value <= self.good

    def decide(self, row: Row, tests: int = 1) -> Answer:
        """The answer of one row.

        Parameters
        ----------
        row : Row
            The row of this threshold.
        tests : int, default=1
            Number of rows that can each cause a no: the interval behind a no is widened accordingly.

        Returns
        -------
        str
            "yes", "no" or "undecided".
        """
        collapse = row.measure == COLLAPSED
        if not collapse and (row.interval is None or row.n < FEWEST):
            return "undecided"
        sign = 1 if self.good > self.bad else -1
        worst, best = sorted(sign * end for end in row.interval or (row.value, row.value))
        if worst >= sign * self.good:
            return "yes" if collapse or row.n >= self.fewest else "undecided"
        value = sign * row.value
        return "no" if value + (best - value) * widening(tests) <= sign * self.bad else "undecided"

    def describe(self, row: Row) -> Note:
        """The reason that a row gives.

        Parameters
        ----------
        row : Row
            The row of this threshold.

        Returns
        -------
        Note
            With the value and the sentence of this threshold.
        """
        remarks = [item for item in row.notes if item.code == self.remark]
        fields = {"measure": row.measure, "value": row.value, "explainer": explainer_name(row)}
        return note(NoteCode.SCORE, **fields, sentence=self.sentence, notes=remarks)


def widening(tests: int) -> float:
    """Factor of an interval, so that all of several intervals cover with a probability of 95 % (Bonferroni).

    >>> widening(1), round(widening(4), 3)
    (1.0, 1.274)
    """
    normal = NormalDist()
    return normal.inv_cdf(1 - (1 - LEVEL) / (2 * tests)) / normal.inv_cdf(1 - (1 - LEVEL) / 2)


@dataclass(frozen=True)
class Rule:
    """How the verdict follows.

    yes   all intervals lie within the thresholds of yes, of FEWEST_FOR_YES texts each, and a required row has a value
    no    one interval, widened by the number of rows that could each cause a no, lies beyond the threshold of no
    """

    thresholds: Mapping[str, Threshold]
    """By the name of a row."""
    required: tuple[str, ...]
    """A yes needs at least one of these rows."""
    together: tuple[tuple[str, ...], ...] = ()
    """Groups of rows.  All rows of a group that have a value must be a no; one alone is undecided."""
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Row -> rows that cannot exceed it: after its yes they are a yes too, if their values are on the side of yes."""
    depends_on: tuple[str, ...] = ()
    """Names of properties: if one is a no, this one is not meaningful; if one is undecided, this one is not a yes."""

    def tests(self, measured: Collection[str]) -> int:
        """The number of rows, or groups of rows, that could each cause a no.

        Parameters
        ----------
        measured : collection of str
            The rows with a value.

        Returns
        -------
        int
            At least 1.
        """
        refutable = [name for name in measured if math.isfinite(self.thresholds[name].bad)]
        groups = {next((group for group in self.together if name in group), name) for name in refutable}
        return max(1, len(groups - {COLLAPSED}))

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """Name of a row -> thresholds of yes and of no."""
        return {name: (threshold.good, threshold.bad) for name, threshold in self.thresholds.items()}


@dataclass(frozen=True)
class Property:
    """A question about explanations, with its measures, checks and verdict."""

    name: str
    """As in a policy: seed-consistency."""
    title: str
    """Its heading in reports."""
    question: str = ""
    """The question that its verdict answers."""
    short_question: str = ""
    """The same in the list at the top of a page; empty: the title."""
    measures: tuple[Measure, ...] = ()
    """Its measures."""
    checks: tuple[Check, ...] = ()
    """What computes them."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Probe or comparison, after the slash of a row's name -> its description."""
    rule: Rule | None = None
    """How its verdict follows; None: it has no verdict."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """Answer -> its meaning, with a {noun}; see `PropertyFact`."""
    noun: str = ""
    """Its name in a sentence, if the title is not a noun."""

    @property
    def fact(self) -> PropertyFact:
        """What reports show about it."""
        rows = [str(key) for measure in self.measures for key in measure.keys]
        labels = {name: measure.label(name) for measure in self.measures for name in map(str, measure.keys)}
        return PropertyFact(
            self.name,
            self.title,
            self.question,
            self.short_question,
            {name: labels[name] for name in rows if labels[name] != name},
            dict(self.meanings),
            self.noun or self.title[:1].lower() + self.title[1:],
        )

    @property
    def own_functions(self) -> list[Callable[..., object]]:
        """The functions of its checks and measures that are not part of steadygaze."""
        functions = [*(check.run for check in self.checks), *(measure.function for measure in self.measures)]
        return [function for function in functions if not function.__module__.startswith("steadygaze.")]

    def extended(self, *checks: Check, measures: tuple[Measure, ...] = (), **thresholds: Threshold) -> "Property":
        """The property with more checks, measures and thresholds.

        Parameters
        ----------
        *checks : Check
            Checks that run after its own.
        measures : tuple of Measure, default=()
            Their measures.
        **thresholds
            `Threshold` of a row by its name; `**{"name/probe": …}` if the name is not an identifier.

        Returns
        -------
        Property
            A copy.
        """
        rule = self.rule and replace(self.rule, thresholds={**self.rule.thresholds, **thresholds})
        return replace(self, checks=(*self.checks, *checks), measures=(*self.measures, *measures), rule=rule)
