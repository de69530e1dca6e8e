"""Tuning: the trials of a hyper-parameter search, for a page, a file or a terminal.  Does not import torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, ClassVar, Literal

from steadygaze.core.output_paths import GENERATOR
from steadygaze.results.formatting import count_text
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.row import SavedResult, json_values

SCHEMA = 1
"""Incremented when older versions cannot read a new file."""


@dataclass(frozen=True, slots=True)
class Trial:
    number: int
    settings: Mapping[str, Any]
    """The varied settings."""
    seed: int
    state: Literal["complete", "pruned", "failed"]
    values: tuple[float, ...] = ()
    """The objectives on the validation texts; empty unless the trial is complete."""
    epochs: int = 0
    """Trained epochs of the final stage."""
    error: str = ""


@dataclass(frozen=True, repr=False)
class Tuning(SavedResult):
    """The result of `sg.tune`."""

    renderer: ClassVar[str] = "steadygaze.report.study_pages:render_tuning"

    trials: tuple[Trial, ...]
    objectives: tuple[tuple[str, str], ...]
    """Measure, and maximize or minimize."""
    spaces: Mapping[str, str]
    """Setting -> search space."""
    facts: Mapping[str, str] = field(default_factory=dict)
    train_command: str = ""
    """Trains the model of the best trial."""
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    title: str = "Hyper-parameter search"
    health: Health = HEALTHY
    """Known-bad states of the best model."""

    @property
    def complete(self) -> list[Trial]:
        return [trial for trial in self.trials if trial.state == "complete"]

    @property
    def best(self) -> Trial | None:
        """The trial with the best first objective, on the Pareto front; the first of equal trials."""
        return min(self.front, key=self.rank, default=None)

    @property
    def front(self) -> list[Trial]:
        """The Pareto front: complete trials that no other improves in one objective without a loss in another."""
        costs = {trial.number: self._costs(trial) for trial in self.complete}
        return [trial for trial in self.complete if not any(_dominates(c, costs[trial.number]) for c in costs.values())]

    def rank(self, trial: Trial) -> tuple[float, ...]:
        """Sorts trials by their objectives, the first one first, then by number."""
        return (*self._costs(trial), trial.number)

    def _costs(self, trial: Trial) -> tuple[float, ...]:
        """The objectives, as numbers to minimize."""
        directions = [direction for _, direction in self.objectives]
        return tuple(v if d == "minimize" else -v for v, d in zip(trial.values, directions, strict=True))

    def __repr__(self) -> str:
        trials = f"{count_text(len(self.trials), 'trial')}, {len(self.complete):,} complete"
        if (best := self.best) is None:
            return f"<Tuning: {trials}>"
        values = ", ".join(
            f"{measure} {value:.4f}" for (measure, _), value in zip(self.objectives, best.values, strict=True)
        )
        return f"<Tuning: {trials}; best trial {best.number}: {values}>"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.health.lines), repr(self)])

    def _repr_html_(self) -> str:
        return f"{self.health.banner}<pre>{escape(repr(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **GENERATOR,
            "schema": SCHEMA,
            "health": self.health.to_list(),
            "title": self.title,
            "objectives": [{"measure": measure, "direction": direction} for measure, direction in self.objectives],
            "spaces": dict(self.spaces),
            "best": None if self.best is None else self.best.number,
            "front": [trial.number for trial in self.front],
            "trials": [json_values(asdict(trial)) for trial in self.trials],
            "train_command": self.train_command,
            "facts": dict(self.facts),
            "command": list(self.command),
            "versions": dict(self.versions),
        }


def _dominates(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))
