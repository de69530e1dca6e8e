"""Verdict, Shift and Gate: what a report is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from steadygaze.results.explanation import Explanation

if TYPE_CHECKING:
    pass

Answer = Literal["yes", "partly", "no", "not asked"]
Better = Literal["higher", "lower", "neither"]
SCHEMA = 1
"""Raised when a file written today could not be read by yesterday's package."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a measure is, in plain words, and between which numbers it lies."""

    sentence: str
    low: float
    high: float
    direction: Better = "neither"
    """Neither: good under one change and bad under another, or no merit at all."""
    citation: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question, answered in plain words from rows that are named."""

    question: str
    answer: Answer
    why: str
    rows: tuple[str, ...] = ()
    """Signatures of the numbers it rests on."""
    key: str = ""
    """A short name, as a policy may call it: stability."""
    thresholds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
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
        >>> Gate(("accuracy>=0.9", "label-flip/noise<=0.1"), 1).summary
        'failed: 1 of 2 requirements not met'
        """
        total = f"{len(self.requirements)} requirement{'s' * (len(self.requirements) != 1)}"
        return f"failed: {self.unmet} of {total} not met" if self.unmet else f"passed: {total} met"
