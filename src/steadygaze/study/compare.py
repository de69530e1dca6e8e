"""Run a comparison; the same call resumes an interrupted run and gives the same result."""

from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

import steadygaze
from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress, no_progress
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.explainers import own_explainers
from steadygaze.models.inference import best_device
from steadygaze.properties import columns, own_properties
from steadygaze.results.comparison import Comparison
from steadygaze.results.row import ValueKey
from steadygaze.study.cells import MODEL, VALUES, ComparisonJob, StudyCell, read
from steadygaze.study.compare_config import BETWEEN, CompareConfig, check
from steadygaze.study.comparison_table import facts, notes, technique_results, with_settings
from steadygaze.study.engine import check_finished, choose_executor, run_cells
from steadygaze.study.executor import Executor, InProcess
from steadygaze.study.study_data import (
    OnCorpus,
    StudyData,
    file_digest,
    identity,
    load_study_data,
    must_equal,
    shared_values,
    training_settings,
)
from steadygaze.study.study_folder import Arrays, StudyFolder, read_arrays
from steadygaze.study.track_study import track_comparison
from steadygaze.techniques import own_techniques
from steadygaze.training.tracking import check_track


@dataclass(frozen=True)
class StudyRuntime:
    """Folders, device and progress callback: the results do not depend on them."""

    out: Path
    data_dir: Path | None = None
    device: str = "auto"
    on_progress: OnProgress = no_progress
    """Receives the activity, the number of finished cells and the total."""
    command: tuple[str, ...] = ()
    """The command line, for the page."""
    engine: str = "local"
    """local, ray (starts a local cluster), ray://auto or ray://HOST:PORT."""
    workers: int | None = 1
    """Cells at a time; None: as many as cores and memory allow."""
    track: str | None = None
    """Service that the finished study is logged to; see training/tracking.py."""
    on_corpus: OnCorpus = lambda corpus: None
    """Receives the texts before anything is written; an error ends the study."""

    @property
    def resolved_device(self) -> str:
        """The device of every cell, also on other machines: keys name it."""
        return best_device(self.device).type


def compare(config: CompareConfig, runtime: StudyRuntime) -> Comparison:
    """Train, audit and compare; write comparison.json and comparison.html to `runtime.out`."""
    job = begin(config, runtime)
    executor = choose_executor(runtime.engine, runtime.workers, runtime.device, len(config.techniques) * config.seeds)
    job = replace(job, stacks=uses_stacks(executor, runtime.device))
    check_finished(run_cells(job.cells(), runtime.out, executor, runtime.on_progress))
    return finish(job, runtime)


def begin(config: CompareConfig, runtime: StudyRuntime) -> ComparisonJob:
    """Check the settings, read the data and write the settings to the folder."""
    check(config)
    check_track(runtime.track)
    folder = StudyFolder(runtime.out)
    folder.refuse_foreign()
    data = load_study_data(config, runtime.data_dir, runtime.on_corpus)
    _validate(config, data)
    device = runtime.resolved_device
    folder.begin(identity(config, data, device), must_equal=must_equal)
    explainers = own_explainers({config.explains(name) for name in config.techniques})
    techniques = own_techniques(config.techniques)
    return ComparisonJob(config, data, folder, device, techniques, explainers, own_properties())


def uses_stacks(executor: Executor, device: str) -> bool:
    """True if the models of a technique are trained at the same time: in this process, on a GPU."""
    return isinstance(executor, InProcess) and best_device(device).type == "cuda"


def finish(job: ComparisonJob, runtime: StudyRuntime) -> Comparison:
    """The comparison of finished cells, also as comparison.json and comparison.html in its folder."""
    config, folder = job.config, job.folder
    cells = {name: [_read_cell(job, name, seed) for seed in config.numbers] for name in config.techniques}
    comparison = _comparison(job, cells, runtime.command)
    comparison.to_json(folder.path / "comparison.json", replace=True)
    comparison.to_html(folder.path / "comparison.html", replace=True)
    if runtime.track is not None:
        track_comparison(runtime.track, config, folder, cells)
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


def _comparison(job: ComparisonJob, cells: dict[str, list[StudyCell]], command: tuple[str, ...]) -> Comparison:
    """The table of finished cells."""
    config, data = job.config, job.data
    seed_divergence = {name: _seed_divergence(job, name) for name in config.techniques}
    results = technique_results(cells, seed_divergence)
    used = {name: _used_settings(job, name) for name in config.techniques}
    common = shared_values(list(used.values()))
    own = {
        name: {
            **asdict(config.training(name).technique),
            **{key: value for key, value in settings.items() if key not in common},
        }
        for name, settings in used.items()
    }
    return Comparison(
        columns(),
        with_settings(results, own),
        config.numbers,
        facts(config, data),
        common,
        notes(config, data, results),
        command,
        {"steadygaze": steadygaze.__version__, "torch": torch.__version__, "numpy": np.__version__},
    )


def _used_settings(job: ComparisonJob, technique: str) -> dict[str, Any]:
    """The settings of a trained model; without one, the requested ones.  Some depend on the number of texts."""
    requested = training_settings(job.config, technique)
    stored = read_object_or_empty(job.folder.cell(technique, job.config.seed) / MODEL / "config.json")
    parts = [part for name in ("architecture", "training", "text") if isinstance(part := stored.get(name), dict)]
    used = {key: value for part in parts for key, value in part.items() if key != "synonyms"}  # named with its digest
    vectors = file_digest(job.config.vectors) or stored.get("vectors")
    return {**{key: used.get(key, value) for key, value in requested.items()}, "vectors": vectors}


def _read_cell(job: ComparisonJob, technique: str, seed: int) -> StudyCell:
    return read(job.folder.cell(technique, seed), technique, seed, len(job.data.examples))


def _seed_divergence(job: ComparisonJob, technique: str) -> Arrays:
    """Divergence between seeds; empty if it is not measured."""
    if not job.config.compares_seeds:
        return {}
    file = job.folder.seeds(technique) / VALUES
    arrays = read_arrays(file, len(job.data.examples))
    explainer, pairs = job.config.explains(technique), combinations(range(job.config.seeds), 2)
    if arrays.keys() != {ValueKey(BETWEEN, explainer, pair) for pair in pairs}:
        raise UserError(f"{file} is damaged: it does not compare these seeds; delete it and run the command again")
    return arrays
