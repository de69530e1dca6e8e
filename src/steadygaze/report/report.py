"""Report: everything an audit found, ready for a page, a file, a terminal or a gate.  No torch.

What is in `to_dict` is all there is: a page can be made again from the JSON alone, by `Report.from_dict`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from steadygaze.atomic import write_text
from steadygaze.explanation import Explanation
from steadygaze.record import Row

Answer = Literal["yes", "partly", "no", "not asked"]
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question, answered in plain words from rows that are named."""

    question: str
    answer: Answer
    why: str
    rows: tuple[str, ...] = ()
    """Signatures of the numbers it rests on."""


@dataclass(frozen=True, slots=True)
class Shift:
    """One text before and after a probe."""

    probe: str
    distance: float
    """How far the saliency moved: Jensen-Shannon, in nats."""
    before: Explanation
    after: Explanation


@dataclass(frozen=True)
class Report:
    title: str
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...] = ()
    shifts: tuple[Shift, ...] = ()
    """The worst of each probe first."""
    plots: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Name of a picture -> the points in it: see report/plots.py."""
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def find(self, measure: str, explainer: str | None = None) -> Row | None:
        """The row of that name; of the explanation under audit, or of another that is named."""
        wanted = explainer or self.facts.get("explanation")
        found = [row for row in self.rows if row.measure == measure]
        mine = [row for row in found if row.settings.get("explain") == wanted]
        return next(iter(mine or found), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "title": self.title,
            "facts": dict(self.facts),
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "rows": [row.to_dict() for row in self.rows],
            "shifts": [
                {"probe": s.probe, "distance": s.distance, "before": s.before.to_dict(), "after": s.after.to_dict()}
                for s in self.shifts
            ],
            "plots": {name: list(map(dict, points)) for name, points in self.plots.items()},
            "notes": list(self.notes),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """The whole report; written to `path` if there is one."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_text(Path(path), text)
        return text

    def __str__(self) -> str:
        return "\n".join(
            [self.title, *(f"{v.question} {v.answer}. {v.why}" for v in self.verdicts), *map(str, self.rows)]
        )
