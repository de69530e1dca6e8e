"""Verdict, Shift and Gate: the parts of a report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from steadygaze.results.explanation import Explanation

Answer = Literal["yes", "undecided", "no", "not measured"]
Better = Literal["higher", "lower", "neither"]
SCHEMA = 1
"""Incremented when older versions cannot read a new file."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The description and the range of a measure."""

    sentence: str
    low: float
    high: float
    direction: Better = "neither"
    """Neither: the better direction depends on the perturbation, or there is none."""
    citation: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer about one property of the explanation, with its reason and rows."""

    title: str
    """The property: Stability, Faithfulness …"""
    answer: Answer
    why: str
    rows: tuple[str, ...] = ()
    """Signatures of the rows that it uses."""
    key: str = ""
    """The name in a policy: stability."""
    thresholds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Measure -> thresholds of yes and of no.  The first is smaller if lower values are better."""
    advice: str = ""
    """What would decide an undecided verdict."""

    @property
    def reason(self) -> str:
        """`why`, and the advice."""
        return f"{self.why}  Advice: {self.advice[:1].lower()}{self.advice[1:]}" if self.advice else self.why


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
    failures: tuple[str, ...] = ()
    """One sentence per failing row; a requirement can fail for several rows."""

    @property
    def summary(self) -> str:
        """
        >>> Gate(("accuracy>=0.9", "label-flip/noise<=0.1"), 1).summary
        'failed: 1 of 2 requirements not met'
        """
        total = f"{len(self.requirements)} requirement{'s' * (len(self.requirements) != 1)}"
        return f"failed: {self.unmet} of {total} not met" if self.unmet else f"passed: {total} met"
