"""A comparison from its order to its table.  Interrupted at any moment, the same call goes on and ends in the same."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

import steadygaze
from steadygaze.audit.audit_case import silent
from steadygaze.core.atomic_files import exclusive
from steadygaze.core.errors import UserError
from steadygaze.estimator.loading import load_classifier
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.comparison import Comparison
from steadygaze.study import cells as cell
from steadygaze.study.cells import MODEL, StudyCell, pairwise_divergence
from steadygaze.study.compare_config import BETWEEN, COLUMNS, CompareConfig, check
from steadygaze.study.comparison_table import facts, notes, technique_results, with_settings
from steadygaze.study.study_data import StudyData, identity, load_study_data, own, shared
from steadygaze.study.study_folder import Arrays, StudyFolder, read_arrays, write_arrays


@dataclass(frozen=True)
class StudyRuntime:
    """What a comparison does not depend on: where files go and data lie, what computes, who watches."""

    out: Path
    data_dir: Path | None = None
    device: str = "auto"
    watch: Callable[[str, int, int], None] = silent
    """Told what is being done, how many cells are done and of how many."""
    command: tuple[str, ...] = ()
    """What made it, word for word, for the page."""


def compare(order: CompareConfig, machine: StudyRuntime) -> Comparison:
    """Trains, audits and compares; ends in machine.out/comparison.json and comparison.html."""
    check(order)
    folder = StudyFolder(machine.out)
    folder.refuse_foreign()
    given = load_study_data(order, machine.data_dir)
    _object(order, given)
    machine.out.mkdir(parents=True, exist_ok=True)
    with exclusive(machine.out, "comparing"):
        folder.begin(identity(order, given, machine.device))
        found = _Run(order, machine, given, folder).compared()
        found.to_json(machine.out / "comparison.json", replace=True)
        found.to_html(machine.out / "comparison.html", replace=True)
    return found


def _object(order: CompareConfig, given: StudyData) -> None:
    """A technique that cannot train such a model says so now, not when the others have been trained."""
    train = given.corpus.splits["train"]
    classes, pairs = {example.label for example in train}, any(example.question is not None for example in train)
    for name in order.techniques:
        said = order.training(name)
        if why := said.technique.validate(said.architecture, len(classes)):
            raise UserError(f"{name}: {why}")
        if pairs and not said.technique.reads_pairs:
            raise UserError(f"{name} selects from single texts: it cannot be trained on pairs")


@dataclass(frozen=True)
class _Run:
    order: CompareConfig
    machine: StudyRuntime
    given: StudyData
    folder: StudyFolder

    def compared(self) -> Comparison:
        order = self.order
        cells = {name: [self._cell(name, seed) for seed in order.numbers] for name in order.techniques}
        between = {name: self._between(name) for name in order.techniques}
        made = technique_results(cells, between)
        return Comparison(
            COLUMNS,
            with_settings(made, {name: own(order, name) for name in order.techniques}),
            order.numbers,
            facts(order, self.given),
            shared(order),
            notes(order, self.given, made),
            self.machine.command,
            {"steadygaze": steadygaze.__version__, "torch": torch.__version__, "numpy": np.__version__},
        )

    def _cell(self, technique: str, seed: int) -> StudyCell:
        order, place = self.order, self.folder.cell(technique, seed)
        done = order.techniques.index(technique) * order.seeds + order.numbers.index(seed)
        total, name = len(order.techniques) * order.seeds, f"{technique}, seed {seed}"
        if not cell.is_finished(place):
            self.machine.watch(f"{name}: training", done, total)
            clf = cell.train(order, self.given, self.folder, technique, seed, self.machine.device)

            def watch(what: str, read: int, of: int) -> None:
                self.machine.watch(f"{name}: {what}, {read:,} of {of:,} texts", done, total)

            cell.write(place, cell.audit(order, self.given, clf, order.synonyms, watch))
        self.machine.watch(f"{name}: done", done + 1, total)
        return cell.read(place, technique, seed, len(self.given.examples))

    def _between(self, technique: str) -> Arrays:
        """Nothing where there is but one model."""
        file = self.folder.seeds(technique)
        if self.order.seeds == 1:
            return {}
        if not file.is_file():
            models = (self._model(technique, seed) for seed in self.order.numbers)  # loaded as they are asked
            write_arrays(file, pairwise_divergence(self.order, self.given, models))
        found = read_arrays(file, len(self.given.examples))
        name = f"{BETWEEN}|{self.order.explains(technique)}"
        if found.keys() != {f"{name}|{i}+{j}" for i, j in combinations(range(self.order.seeds), 2)}:
            raise UserError(f"{file} is damaged: it does not compare these seeds; delete it to have it made again")
        return found

    def _model(self, technique: str, seed: int) -> TextClassifier:
        return load_classifier(self.folder.cell(technique, seed) / MODEL, self.machine.device)
