"""Reproduction: the numbers of a published table beside ours.  Does not import torch."""

import gzip
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from steadygaze.core.atomic_files import new_file
from steadygaze.core.errors import UserError, one_line
from steadygaze.core.output_paths import GENERATOR
from steadygaze.core.settings import build
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
    """The reason for a missing value."""

    @property
    def paper_text(self) -> str:
        return "not printed" if self.paper is None else f"{self.paper:g}"

    @property
    def our_text(self) -> str:
        if self.value is None:
            return self.note
        ends = "" if self.interval is None else f" [{short_number(self.interval[0])}, {short_number(self.interval[1])}]"
        return short_number(self.value) + ends


@dataclass(frozen=True, slots=True)
class CellScores:
    """The scores of one model, for the records."""

    block: str
    """Data, encoder and variant."""
    technique: str
    seed: int
    scores: Mapping[str, float]
    """Measure -> mean over the texts; of a distance between seeds, also over the pairs of this model."""
    validation: float | None = None
    """Validation macro-F1 of the selected epoch."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the technique."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Reproduction(SavedResult):
    """The result of `steadygaze reproduce`."""

    renderer: ClassVar[str] = "steadygaze.report.study_pages:render_reproduction"

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
        if self.facts:
            lines += ["Settings:", "", *(f"- {name}: {value}" for name, value in self.facts.items()), ""]
        if self.departures:
            lines += ["Departures from the paper:", "", *(f"- {departure}" for departure in self.departures), ""]
        return "\n".join(lines)

    def to_records(self, path: Path, cells: Iterable[CellScores]) -> None:
        """Write one line with the table and one for each model, as compressed JSONL."""
        lines = [self.to_dict(), *(json_values(asdict(cell)) for cell in cells)]
        text = "".join(json.dumps(_rounded(line), ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
        with new_file(path) as file:
            file.write_bytes(gzip.compress(text.encode(), mtime=0))

    @classmethod
    def from_records(cls, path: Path) -> "tuple[Reproduction, list[CellScores]]":
        """Read what `to_records` wrote."""
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                first, *lines = [json.loads(line) for line in file]
            return cls.from_dict(first), [build(CellScores, line) for line in lines]
        except (OSError, EOFError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{path} does not have the records of a table: {one_line(error)}") from None

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Reproduction":
        """Restore what `to_dict` made."""
        if content["schema"] != SCHEMA:
            raise UserError(f"the schema is {content['schema']!r:.20}, and this version reads {SCHEMA}")
        names = {item.name for item in fields(cls)}
        values = {key: value for key, value in content.items() if key in names}
        values["values"] = tuple(build(ReproducedValue, value) for value in content["values"])
        sequences = {name: tuple(values[name]) for name in ("departures", "seeds", "command")}
        return cls(**{**values, **sequences})

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


DIGITS = 6
"""Significant digits in records."""


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _cells(values: list[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"
