"""Run a comparison; the same call resumes an interrupted run and gives the same result."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

import steadygaze
from steadygaze.audit.measures import COLUMNS
from steadygaze.core.atomic_files import exclusive
from steadygaze.core.errors import UserError
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.results.audit_config import silent
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


def compare(config: CompareConfig, runtime: StudyRuntime) -> Comparison:
    """Train, audit and compare; write comparison.json and comparison.html to `runtime.out`."""
    check(config)
    folder = StudyFolder(runtime.out)
    folder.refuse_foreign()
    data = load_study_data(config, runtime.data_dir)
    _validate(config, data)
    runtime.out.mkdir(parents=True, exist_ok=True)
    with exclusive(runtime.out, "comparing"):
        folder.begin(identity(config, data, runtime.device))
        comparison = _Run(config, runtime, data, folder).compare()
        comparison.to_json(runtime.out / "comparison.json", replace=True)
        comparison.to_html(runtime.out / "comparison.html", replace=True)
    return comparison


def _validate(config: CompareConfig, data: StudyData) -> None:
    """Refuse techniques that cannot train on these data, before any training."""
    train = data.corpus.splits["train"]
    classes, pairs = {example.label for example in train}, any(example.question is not None for example in train)
    for name in config.techniques:
        training = config.training(name)
        if problem := training.technique.validate(training.architecture, len(classes)):
            raise UserError(f"{name}: {problem}")
        if pairs and not training.technique.reads_pairs:
            raise UserError(f"{name} selects from single texts: it cannot be trained on pairs")


@dataclass(frozen=True)
class _Run:
    config: CompareConfig
    runtime: StudyRuntime
    data: StudyData
    folder: StudyFolder

    def compare(self) -> Comparison:
        config = self.config
        cells = {name: [self._cell(name, seed) for seed in config.numbers] for name in config.techniques}
        seed_divergence = {name: self._between(name) for name in config.techniques}
        results = technique_results(cells, seed_divergence)
        return Comparison(
            COLUMNS,
            with_settings(results, {name: own(config, name) for name in config.techniques}),
            config.numbers,
            facts(config, self.data),
            shared(config),
            notes(config, self.data, results),
            self.runtime.command,
            {"steadygaze": steadygaze.__version__, "torch": torch.__version__, "numpy": np.__version__},
        )

    def _cell(self, technique: str, seed: int) -> StudyCell:
        config, path = self.config, self.folder.cell(technique, seed)
        finished = config.techniques.index(technique) * config.seeds + config.numbers.index(seed)
        total, name = len(config.techniques) * config.seeds, f"{technique}, seed {seed}"
        if not cell.is_finished(path):
            self.runtime.watch(f"{name}: training", finished, total)
            clf = cell.train(config, self.data, self.folder, technique, seed, self.runtime.device)

            def watch(activity: str, read: int, of: int) -> None:
                self.runtime.watch(f"{name}: {activity}, {read:,} of {of:,} texts", finished, total)

            cell.write(path, cell.audit(config, self.data, clf, watch))
        self.runtime.watch(f"{name}: done", finished + 1, total)
        return cell.read(path, technique, seed, len(self.data.examples))

    def _between(self, technique: str) -> Arrays:
        """Divergence between seeds; empty with one seed."""
        file = self.folder.seeds(technique)
        if self.config.seeds == 1:
            return {}
        if not file.is_file():
            models = (self._model(technique, seed) for seed in self.config.numbers)  # loaded lazily
            write_arrays(file, pairwise_divergence(self.config, self.data, models))
        arrays = read_arrays(file, len(self.data.examples))
        explainer, pairs = self.config.explains(technique), combinations(range(self.config.seeds), 2)
        if arrays.keys() != {ValueKey(BETWEEN, explainer, pair) for pair in pairs}:
            raise UserError(f"{file} is damaged: it does not compare these seeds; delete it and run the command again")
        return arrays

    def _model(self, technique: str, seed: int) -> TextClassifier:
        return load_classifier(self.folder.cell(technique, seed) / MODEL, self.runtime.device)
