"""Reproduction: the numbers of a published table beside ours.  Does not import torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from steadygaze.core.output_paths import GENERATOR
from steadygaze.results.formatting import short_number
from steadygaze.results.row import SavedResult, json_values

SCHEMA = 1
"""Incremented when older versions cannot read a new file."""


@dataclass(frozen=True, slots=True)
class ReproducedValue:
    """One number of the paper and ours."""

    labels: tuple[str, ...]
    """Labels of the paper: data, encoder, technique, variant, measure; empty if the table has none."""
    paper: float | None
    """None: the paper prints no number."""
    measure: str = ""
    """Our measure."""
    value: float | None = None
    interval: tuple[float, float] | None = None
    """95 % bootstrap interval over seeds and texts."""
    seeds: int = 0
    note: str = ""
    """Why there is no value."""

    @property
    def paper_text(self) -> str:
        return "not printed" if self.paper is None else f"{self.paper:g}"

    @property
    def our_text(self) -> str:
        if self.value is None:
            return self.note
        ends = "" if self.interval is None else f" [{short_number(self.interval[0])}, {short_number(self.interval[1])}]"
        return short_number(self.value) + ends


@dataclass(frozen=True)
class Reproduction(SavedResult):
    """The result of `steadygaze reproduce`."""

    renderer: ClassVar[str] = "steadygaze.report.reproduction_page:render"

    table: str
    title: str
    citation: str
    url: str
    values: tuple[ReproducedValue, ...]
    claim: str = ""
    departures: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def axes(self) -> list[str]:
        """Titles of the label columns that are in use."""
        return [name for name, labels in zip(LABELS, self._label_columns(), strict=True) if any(labels)]

    def rows(self) -> list[tuple[list[str], ReproducedValue]]:
        """The labels that are in use, and the value."""
        used = [any(labels) for labels in self._label_columns()]
        return [
            ([label for label, is_used in zip(value.labels, used, strict=True) if is_used], value)
            for value in self.values
        ]

    def _label_columns(self) -> list[tuple[str, ...]]:
        return list(zip(*(value.labels for value in self.values), strict=True)) or [() for _ in LABELS]

    def to_markdown(self) -> str:
        head = [*self.axes, "paper", "ours"]
        lines = [f"# {self.table}: {self.title}", "", f"{self.citation}, <{self.url}>", ""]
        lines += [f"Claim: {self.claim}", ""] if self.claim else []
        if self.values:
            lines += [_cells(head), _cells(["---"] * len(head))]
            lines += [_cells([*labels, value.paper_text, value.our_text]) for labels, value in self.rows()]
            lines += ["", "Intervals are 95 % bootstrap intervals over seeds and texts.", ""]
        if self.departures:
            lines += ["Departures from the paper:", "", *(f"- {departure}" for departure in self.departures), ""]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            **GENERATOR,
            "schema": SCHEMA,
            "table": self.table,
            "title": self.title,
            "citation": self.citation,
            "url": self.url,
            "claim": self.claim,
            "values": [json_values(asdict(value)) for value in self.values],
            "departures": list(self.departures),
            "seeds": list(self.seeds),
            "facts": dict(self.facts),
            "command": list(self.command),
            "versions": dict(self.versions),
        }


LABELS = ("data", "encoder", "technique", "variant", "measure")


def _cells(values: list[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"
