"""The comparisons of a published table.

A block is one corpus, encoder and variant with all techniques; its folder is a comparison that can be resumed.  Two
rows that train one technique with different settings are in different blocks, each with the first technique.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from steadygaze.core.errors import unknown
from steadygaze.core.settings import build, field_names
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.data.corpora import divided
from steadygaze.data.published_corpora import PUBLISHED_CORPORA
from steadygaze.study.cell_record import RECORD
from steadygaze.study.compare_config import CompareConfig
from steadygaze.study.published_tables import AXES, Counterpart, Entry, PublishedTable
from steadygaze.study.study_folder import StudyFolder
from steadygaze.study.study_options import ReproduceOptions
from steadygaze.techniques import TECHNIQUES

_GRID = ("corpora", "encoders", "variants")


@dataclass(frozen=True)
class Block:
    corpus: Counterpart
    encoder: Counterpart
    variant: Counterpart
    techniques: Mapping[str, Counterpart]
    """Label -> technique; the first is the baseline."""
    folder: str
    """Name of its folder."""
    entries: tuple[Entry, ...]
    thorough: bool
    measures: tuple[str, ...]
    """Our names."""

    @property
    def search_folder(self) -> str:
        """Name of the folder of the models that choose settings."""
        return f"{self.folder}_search"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(technique.name for technique in self.techniques.values())

    def config(self, options: ReproduceOptions, chosen: Mapping[str, Mapping[str, Any]] | None = None) -> CompareConfig:
        """`chosen`: technique -> settings that validation scores chose."""
        settings_for = {
            technique.name: {**self._settings(technique), **(chosen or {}).get(technique.name, {})}
            for technique in self.techniques.values()
        }
        values = {
            "data": self.corpus.name,
            "split": self.corpus.split,
            "encoder": self.encoder.name,
            "techniques": self.names,
            "thorough": self.thorough,
            "measures": self.measures,
            "settings": dict(options.settings),
            "settings_for": {name: own for name, own in settings_for.items() if own},
        }
        common = ("seeds", "seed", "epochs", "batch_size", "limit", "train_limit", "vectors", "synonyms")
        return build(CompareConfig, values | {name: getattr(options, name) for name in common})

    def _settings(self, technique: Counterpart) -> dict[str, Any]:
        known = field_names(TECHNIQUES[technique.name])
        return {**technique.settings, **{k: v for k, v in self.variant.settings.items() if k in known}}

    def cells(self, options: ReproduceOptions) -> list[str]:
        """Names of the folders of its cells."""
        folder = StudyFolder(Path())
        models = [folder.cell(name, options.seed + i).name for name in self.names for i in range(options.seeds)]
        return models + [folder.seeds(name).name for name in self.names if self.config(options).compares_seeds]


def blocks(table: PublishedTable, only: Sequence[str] = ()) -> list[Block]:
    """The comparisons of a table; none if only a command measures it."""
    entries = [entry for entry in table.entries() if not table.absent(entry)]
    chosen = _choice(table, entries, only)
    kept = [e for e in entries if all(e.label(axis) in labels for axis, labels in chosen.items())]
    place = {axis: list(table.labels[axis]) for axis in AXES}

    def grid(entry: Entry) -> tuple[int, ...]:
        return tuple(place[axis].index(entry.label(axis)) if entry.label(axis) else -1 for axis in _GRID)

    everything = [e for e in entries if e.label("techniques")]
    baseline = everything[0].label("techniques") if everything else ""
    by_technique = "-".join(sorted(chosen.get("techniques", ())))
    return [
        block
        for _, group in groupby(sorted(kept, key=grid), grid)
        for block in _divide(table, list(group), baseline, by_technique)
    ]


def _divide(table: PublishedTable, entries: list[Entry], baseline: str, subset: str) -> Iterator[Block]:
    """Blocks of one corpus, encoder and variant, in which every technique occurs once."""
    counterparts = table.labels["techniques"]
    parts: list[dict[str, Counterpart]] = []
    for label in dict.fromkeys([baseline, *(entry.label("techniques") for entry in entries)]):
        name = counterparts[label].name
        part = next((part for part in parts if name not in [other.name for other in part.values()]), None)
        if part is None:
            parts.append(part := {} if label == baseline else {baseline: counterparts[baseline]})
        part[label] = counterparts[label]
    corpus, encoder, variant = (table.counterpart(entries[0], axis) for axis in _GRID)
    for number, part in enumerate(parts, 1):
        names = [corpus.name, corpus.split, encoder.name, entries[0].label("variants"), subset]
        names += [str(number)] if len(parts) > 1 else []
        covered = [e for e in entries if e.label("techniques") in part]
        if number > 1:
            covered = [e for e in covered if e.label("techniques") != baseline]
        folder = "_".join(map(_slug, filter(None, names)))
        measures = tuple(sorted({table.counterpart(entry, "measures").name for entry in covered}))
        yield Block(corpus, encoder, variant, part, folder, tuple(covered), table.thorough, measures)


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text).strip("-").lower()


def _choice(table: PublishedTable, entries: Sequence[Entry], only: Sequence[str]) -> dict[str, set[str]]:
    """Axis -> labels that `only` names; axes without any are not restricted."""
    known: dict[str, set[tuple[str, str]]] = {}
    for entry in entries:
        for axis in (*_GRID, "techniques"):
            if label := entry.label(axis):
                for name in (label.lower(), *_names(table.labels[axis][label].name)):
                    known.setdefault(name, set()).add((axis, label))
    chosen: dict[str, set[str]] = {}
    for word in only:
        if word.lower() not in known:
            raise unknown(f"corpus, encoder, technique or variant of {table.key}", word, known)
        for axis, label in known[word.lower()]:
            chosen.setdefault(axis, set()).add(label)
    return chosen


def _names(name: str) -> list[str]:
    """sst2 -> sst2; transformer:minilm -> transformer:minilm and minilm."""
    return [part.lower() for part in dict.fromkeys([name, name.rpartition(":")[2]]) if part]


def finished_cells(table: PublishedTable, out: Path, options: ReproduceOptions) -> tuple[int, int]:
    """The number of finished cells in the folder, and of all."""
    folders = [
        out / table.key / block.folder / "cells" / cell for block in blocks(table) for cell in block.cells(options)
    ]
    return sum(map(is_finished, folders)), len(folders)


def is_finished(cell: Path) -> bool:
    return bool(read_object_or_empty(cell / RECORD).get("status") == "finished")


def missing_data(table: PublishedTable, data_dir: Path | None) -> list[str]:
    """Published corpora without a training split in the data folder; they come from the hub."""
    base = data_dir or Path(os.environ.get("STEADYGAZE_DATA") or ".")
    names = {divided(block.corpus.name)[1].partition(":")[0] for block in blocks(table)} & PUBLISHED_CORPORA.keys()
    return sorted(
        name for name in names if not (base / name / f"{PUBLISHED_CORPORA[name].files['train']}.parquet").exists()
    )
