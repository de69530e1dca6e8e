"""Cells of a comparison: train and audit one technique with one seed, and measure the divergence between seeds.

A vanilla cell can serve as the reference of another technique with the same seed and settings.  Otherwise all
references come from the teacher cache.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.audit_report import AuditFindings
from steadygaze.auditing.prepare_case import AuditRequest, prepare
from steadygaze.core.atomic_files import FolderBusy
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch, OnProgress
from steadygaze.estimator import resumable_training
from steadygaze.estimator.resumable_training import ModelTraining, train_many
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import Explainer
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import AuditCase, Rows
from steadygaze.properties.measures.stability_measures import saliency_divergence as distance
from steadygaze.properties.property import Property
from steadygaze.results.audit_config import Runtime
from steadygaze.results.note import Note, NoteCode
from steadygaze.results.report import Report
from steadygaze.results.row import MeasureKey, ValueKey
from steadygaze.study.cell_record import Cell, Output, gpu_share
from steadygaze.study.compare_config import BETWEEN, CompareConfig
from steadygaze.study.seed_statistics import Outcomes
from steadygaze.study.study_data import StudyData, cell_inputs
from steadygaze.study.study_folder import Arrays, StudyFolder, read_arrays, write_arrays
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Stage, Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.training_run import RESULT

VANILLA = "vanilla"
LABEL, PREDICTED = ValueKey(MeasureKey("label")), ValueKey(MeasureKey("predicted"))
"""The label and the predicted class of each text, as indices."""
MODEL, VALUES, REPORT = "model", "values.safetensors", "report.json"


def reference_seeds(config: CompareConfig, technique: str, seed: int) -> list[int]:
    """Seeds of the vanilla cells that are the technique's references, in its order; empty if it has others or none."""
    stages = {
        stage.model: stage for stage in config.training(technique, seed).technique.stages(seed) if stage.model != RESULT
    }
    if not stages or not _same_settings(config, technique):
        return []
    seeds = [seed if stage.seed is None else stage.seed for stage in stages.values()]
    return seeds if all(map(_plain, stages.values())) and set(seeds) <= set(config.numbers) else []


def references(
    config: CompareConfig, folder: StudyFolder, technique: str, seed: int, device: str
) -> list[TextClassifier]:
    """The vanilla models that are the technique's references."""
    seeds = reference_seeds(config, technique, seed)
    return [load_classifier(folder.cell(VANILLA, number) / MODEL, device) for number in seeds]


def _same_settings(config: CompareConfig, technique: str) -> bool:
    """Return whether vanilla is trained first, and the technique trains a model of the same kind and settings."""
    earlier = config.techniques[: config.techniques.index(technique)]
    if VANILLA not in earlier or TECHNIQUES[technique].kind is not Vanilla.kind:  # settings for small data differ
        return False
    training, vanilla_training = config.training(technique), config.training(VANILLA)
    return all(
        getattr(training, part) == getattr(vanilla_training, part) for part in ("architecture", "training", "text")
    )


def _plain(stage: Stage) -> bool:
    """Return whether the stage is plain vanilla training."""
    plain = Stage(stage.name, Vanilla(), model=stage.model, seed=stage.seed, must_learn=stage.must_learn)
    return stage == plain


def pairwise_divergence(config: CompareConfig, data: StudyData, models: Iterable[TextClassifier]) -> Arrays:
    """The divergence between every two models on each text, (N,).

    Models are loaded one after the other; only their saliency is kept.
    """
    classifiers = iter(models)
    first = next(classifiers)
    name = config.explains(str(first.technique))

    def case_of(clf: TextClassifier) -> AuditCase:
        return prepare(as_adapter(clf), data.examples, {name: EXPLAINERS[name]()}, config).case

    def saliency_of(clf: TextClassifier) -> Tensor:
        return case_of(clf).explain_class(name, label)

    case = case_of(first)
    label = case.probs.argmax(-1)  # all models explain the same class
    saliency = [
        case.saliency(name),
        *map(saliency_of, classifiers),
    ]  # a loop would keep a model while the next is loaded

    def work(rows: Rows, batch: Batch) -> dict[ValueKey, Tensor]:
        weights, too_short = (
            [case.gather_rows(saliency_weights, rows, batch) for saliency_weights in saliency],
            batch.mask.sum(-1) < 2,
        )
        return {
            ValueKey(BETWEEN, name, (i, j)): distance(p, q, batch.mask).masked_fill(too_short, torch.nan)
            for (i, p), (j, q) in combinations(enumerate(weights), 2)
        }

    divergence = case.gather(f"{name} of all models", work, case.rows(name))
    return {key: values.numpy() for key, values in divergence.items()}


@dataclass(frozen=True)
class StudyCell:
    technique: str
    seed: int
    values: Arrays
    """Values of each text, (N,)."""
    report: Report

    @property
    def name(self) -> str:
        return f"{self.technique}, seed {self.seed}"

    @property
    def outcomes(self) -> Outcomes | None:
        """The label and the predicted class of each text; None: not known."""
        if LABEL not in self.values or PREDICTED not in self.values:
            return None
        return self.values[LABEL].astype(np.int64), self.values[PREDICTED].astype(np.int64)

    def values_of(self, measure: str) -> NDArray[np.float64] | Note:
        """(N,) for a value per text, (1,) for one of the whole split; else the reason why there is none."""
        row = self.report.find(measure)
        if row is None:
            return Note(NoteCode.NOT_MEASURED)
        if not np.isfinite(row.value):
            return row.absent or Note(NoteCode.NOT_MEASURED)
        for explainer in (self.report.facts["explanation"], None):
            if (key := ValueKey(row.key, explainer)) in self.values:
                return self.values[key]
        return np.array([row.value])


def read(folder: Path, technique: str, seed: int, texts: int) -> StudyCell:
    """`texts`: number of audited texts, the length of each measure."""
    values, report = read_arrays(folder / VALUES, texts), Report.from_json(folder / REPORT)
    if "explanation" not in report.facts:
        raise UserError(f"{folder / REPORT} is damaged: its facts lack the explanation; delete {folder}")
    return StudyCell(technique, seed, values, report)


def train(
    config: CompareConfig, data: StudyData, folder: StudyFolder, technique: str, seed: int, device: str
) -> TextClassifier:
    """Train a model, resume its training, or load the finished model."""
    clf = config.classifier(technique, seed, device)
    trained_references = references(config, folder, technique, seed, device)
    return resumable_training.train(
        clf, data.corpus, folder.cell(technique, seed) / MODEL, True, trained_references, folder.teacher_cache
    )


def audit(config: CompareConfig, data: StudyData, clf: TextClassifier, on_progress: OnProgress) -> AuditFindings:
    request = AuditRequest(
        replace(as_adapter(clf), name=f"{clf.technique}-{clf.seed}"),
        data.examples,
        config,
        [config.explains(str(clf.technique))],
        synonyms=config.synonyms,
        facts={**data.known, "encoder": clf.stored_.description.encoder, "technique": str(clf.technique)},
        runtime=Runtime(on_progress=on_progress),
        measures=frozenset(config.measures),
    )
    return run_audit(request)


def write(folder: Path, examined: AuditFindings) -> None:
    wanted = examined.request.measures
    per_text = {
        ValueKey(finding.key, finding.explainer): finding.values.double().cpu().numpy()
        for finding in examined.findings
        if finding.values is not None and (not wanted or finding.measure in wanted)
    }
    case = examined.prepared.case
    if case.data.label is not None:
        predicted = case.probs.argmax(-1).numpy()
        per_text |= {LABEL: case.data.label.astype(np.float64), PREDICTED: predicted.astype(np.float64)}
    write_arrays(folder / VALUES, per_text)
    examined.report().to_json(folder / REPORT, replace=True)


@dataclass(frozen=True)
class ComparisonJob:
    """The inputs of every cell of a comparison; workers receive a copy."""

    config: CompareConfig
    data: StudyData
    folder: StudyFolder
    device: str
    own_techniques: Mapping[str, type[Technique]] = field(default_factory=dict)
    """Techniques of the user, which a worker process has to register."""
    own_explainers: Mapping[str, type[Explainer]] = field(default_factory=dict)
    """The same for explainers."""
    own_properties: Mapping[str, Property] = field(default_factory=dict)
    """The same for properties."""
    stacks: bool = False
    """Train the models of a technique at the same time: cells run in one process, on a GPU."""

    def register(self) -> None:
        """Register the techniques, explainers and properties of the user in this process."""
        TECHNIQUES.update(self.own_techniques)
        EXPLAINERS.update(self.own_explainers)
        PROPERTIES.update(self.own_properties)

    def cells(self) -> list[Cell]:
        """A cell per technique and seed, and one per technique for the divergence between its seeds."""
        config = self.config
        models = [self._model_cell(technique, seed) for technique in config.techniques for seed in config.numbers]
        if not config.compares_seeds:
            return models
        return [*models, *(self._seeds_cell(technique, models) for technique in config.techniques)]

    def _model_cell(self, technique: str, seed: int) -> Cell:
        needs = [self.folder.cell(VANILLA, number).name for number in reference_seeds(self.config, technique, seed)]
        return Cell(
            self.folder.cell(technique, seed).name,
            f"{technique}, seed {seed}",
            cell_inputs(self.config, self.data, self.device, technique, seed),
            partial(_train_and_audit, self, technique, seed),
            tuple(needs),
            gpu_share(self.device),
        )

    def _seeds_cell(self, technique: str, models: Iterable[Cell]) -> Cell:
        names = [self.folder.cell(technique, seed).name for seed in self.config.numbers]
        keys = {cell.name: cell.key for cell in models}
        return Cell(
            self.folder.seeds(technique).name,
            f"{technique}, between seeds",
            {"models": [keys[name] for name in names]},
            partial(_compare_seeds, self, technique),
            tuple(names),
            gpu_share(self.device),
        )


def _train_and_audit(job: ComparisonJob, technique: str, seed: int, folder: Path, on_progress: OnProgress) -> Output:
    job.register()
    on_progress("training", 0, 0)
    if job.stacks:
        train_stack(job, technique)
    clf = train(job.config, job.data, job.folder, technique, seed, job.device)
    write(folder, audit(job.config, job.data, clf, on_progress))
    return Output({"validation": dict(clf.stored_.description.best_epoch)}, files=(VALUES, REPORT))


def train_stack(job: ComparisonJob, technique: str) -> None:
    """Train the models of all seeds that have none, in one program on a GPU; their cells then load them.

    Raises FolderBusy if another driver trains one of them.
    """
    config, folder = job.config, job.folder
    waiting = [seed for seed in config.numbers if not (folder.cell(technique, seed) / MODEL).exists()]
    try:
        trainings = [
            ModelTraining(
                config.classifier(technique, seed, job.device),
                folder.cell(technique, seed) / MODEL,
                references(config, folder, technique, seed, job.device),
            )
            for seed in waiting
        ]
        train_many(trainings, job.data.corpus, True, folder.teacher_cache)
    except FolderBusy:
        raise
    except UserError:
        pass  # the cell trains its model alone, and reports the error


def _compare_seeds(job: ComparisonJob, technique: str, folder: Path, on_progress: OnProgress) -> Output:
    job.register()
    models = (
        load_classifier(job.folder.cell(technique, seed) / MODEL, job.device) for seed in job.config.numbers
    )  # loaded lazily
    write_arrays(folder / VALUES, pairwise_divergence(job.config, job.data, models))
    return Output(files=(VALUES,))
