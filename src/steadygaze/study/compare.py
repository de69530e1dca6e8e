"""Run a comparison; the same call resumes an interrupted run and gives the same result."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

import steadygaze
from steadygaze.audit.audit_case import silent
from steadygaze.audit.measures.registry import COLUMNS
from steadygaze.core.atomic_files import exclusive
from steadygaze.core.errors import UserError
from steadygaze.estimator.loading import load_classifier
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.comparison import Comparison
from steadygaze.results.row import ValueKey
from steadygaze.study import cells as cell
from steadygaze.study.cells import MODEL, StudyCell, pairwise_divergence
from steadygaze.study.compare_config import BETWEEN, CompareConfig, check
from steadygaze.study.comparison_table import facts, notes, technique_results, with_settings
from steadygaze.study.study_data import StudyData, identity, load_study_data, own, shared
from steadygaze.study.study_folder import Arrays, StudyFolder, read_arrays, write_arrays


@dataclass(frozen=True)
class StudyRuntime:
    """Folders, device and progress callback: the results do not depend on them."""

    out: Path
    data_dir: Path | None = None
    device: str = "auto"
    watch: Callable[[str, int, int], None] = silent
    """Receives the activity, the number of finished cells and the total."""
    command: tuple[str, ...] = ()
    """The command line, for the page."""


def compare(order: CompareConfig, machine: StudyRuntime) -> Comparison:
    """Train, audit and compare; write comparison.json and comparison.html to `machine.out`."""
    check(order)
    folder = StudyFolder(machine.out)
    folder.refuse_foreign()
    given = load_study_data(order, machine.data_dir)
    _validate(order, given)
    machine.out.mkdir(parents=True, exist_ok=True)
    with exclusive(machine.out, "comparing"):
        folder.begin(identity(order, given, machine.device))
        comparison = _Run(order, machine, given, folder).compare()
        comparison.to_json(machine.out / "comparison.json", replace=True)
        comparison.to_html(machine.out / "comparison.html", replace=True)
    return comparison


def _validate(order: CompareConfig, given: StudyData) -> None:
    """Refuse techniques that cannot train on these data, before any training."""
    train = given.corpus.splits["train"]
    classes, pairs = {example.label for example in train}, any(example.question is not None for example in train)
    for name in order.techniques:
        config = order.training(name)
        if why := config.technique.validate(config.architecture, len(classes)):
            raise UserError(f"{name}: {why}")
        if pairs and not config.technique.reads_pairs:
            raise UserError(f"{name} selects from single texts: it cannot be trained on pairs")


@dataclass(frozen=True)
class _Run:
    order: CompareConfig
    machine: StudyRuntime
    given: StudyData
    folder: StudyFolder

    def compare(self) -> Comparison:
        order = self.order
        cells = {name: [self._cell(name, seed) for seed in order.numbers] for name in order.techniques}
        between = {name: self._between(name) for name in order.techniques}
        results = technique_results(cells, between)
        return Comparison(
            COLUMNS,
            with_settings(results, {name: own(order, name) for name in order.techniques}),
            order.numbers,
            facts(order, self.given),
            shared(order),
            notes(order, self.given, results),
            self.machine.command,
            {"steadygaze": steadygaze.__version__, "torch": torch.__version__, "numpy": np.__version__},
        )

    def _cell(self, technique: str, seed: int) -> StudyCell:
        order, path = self.order, self.folder.cell(technique, seed)
        done = order.techniques.index(technique) * order.seeds + order.numbers.index(seed)
        total, name = len(order.techniques) * order.seeds, f"{technique}, seed {seed}"
        if not cell.is_finished(path):
            self.machine.watch(f"{name}: training", done, total)
            clf = cell.train(order, self.given, self.folder, technique, seed, self.machine.device)

            def watch(activity: str, read: int, of: int) -> None:
                self.machine.watch(f"{name}: {activity}, {read:,} of {of:,} texts", done, total)

            cell.write(path, cell.audit(order, self.given, clf, order.synonyms, watch))
        self.machine.watch(f"{name}: done", done + 1, total)
        return cell.read(path, technique, seed, len(self.given.examples))

    def _between(self, technique: str) -> Arrays:
        """Divergence between seeds; empty with one seed."""
        file = self.folder.seeds(technique)
        if self.order.seeds == 1:
            return {}
        if not file.is_file():
            models = (self._model(technique, seed) for seed in self.order.numbers)  # loaded lazily
            write_arrays(file, pairwise_divergence(self.order, self.given, models))
        arrays = read_arrays(file, len(self.given.examples))
        explainer, pairs = self.order.explains(technique), combinations(range(self.order.seeds), 2)
        if arrays.keys() != {ValueKey(BETWEEN, explainer, pair) for pair in pairs}:
            raise UserError(f"{file} is damaged: it does not compare these seeds; delete it and run the command again")
        return arrays

    def _model(self, technique: str, seed: int) -> TextClassifier:
        return load_classifier(self.folder.cell(technique, seed) / MODEL, self.machine.device)
