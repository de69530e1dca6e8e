"""Cells of a comparison: train and audit one technique with one seed, and measure the divergence between seeds.

A vanilla cell can serve as the reference of another technique with the same seed and settings.  Otherwise all
references come from the teacher cache.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.audit.audit import run_audit
from steadygaze.audit.audit_case import AuditCase, Rows
from steadygaze.audit.audit_case import saliency_divergence as distance
from steadygaze.audit.audit_report import AuditFindings
from steadygaze.audit.prepare_case import AuditRequest, prepare
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch
from steadygaze.estimator import resumable_training
from steadygaze.estimator.text_classifier import TextClassifier, load_classifier
from steadygaze.explainers import EXPLAINERS
from steadygaze.results.audit_config import Runtime
from steadygaze.results.report import Report
from steadygaze.results.row import ValueKey
from steadygaze.study.compare_config import BETWEEN, CompareConfig
from steadygaze.study.study_data import StudyData
from steadygaze.study.study_folder import Arrays, StudyFolder, read_arrays, write_arrays
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Stage
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.training_run import RESULT

VANILLA = "vanilla"


def references(
    config: CompareConfig, folder: StudyFolder, technique: str, seed: int, device: str
) -> list[TextClassifier]:
    """The vanilla cells that the technique can use as references, in its order; empty if it needs others or none."""
    stages = {
        stage.model: stage for stage in config.training(technique, seed).technique.stages(seed) if stage.model != RESULT
    }
    if not stages or not _same_settings(config, technique):
        return []
    seeds = [seed if stage.seed is None else stage.seed for stage in stages.values()]
    if not all(map(_plain, stages.values())) or not set(seeds) <= set(config.numbers):
        return []
    return [load_classifier(folder.cell(VANILLA, number) / "model", device) for number in seeds]


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


MODEL, VALUES, REPORT = "model", "values.safetensors", "report.json"
Watch = Callable[[str, int, int], None]


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

    def values_of(self, measure: str) -> NDArray[np.float64] | str:
        """(N,) for a value per text, (1,) for one of the whole split; else the reason why there is none."""
        row = self.report.find(measure)
        if row is None:
            return "not applicable, because it was not measured"
        if not np.isfinite(row.value):
            return row.note
        for explainer in (self.report.facts["explanation"], None):
            if (key := ValueKey(row.key, explainer)) in self.values:
                return self.values[key]
        return np.array([row.value])


def is_finished(folder: Path) -> bool:
    return (folder / REPORT).is_file()


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


def audit(config: CompareConfig, data: StudyData, clf: TextClassifier, watch: Watch) -> AuditFindings:
    request = AuditRequest(
        replace(as_adapter(clf), name=f"{clf.technique}-{clf.seed}"),
        data.examples,
        config,
        [config.explains(str(clf.technique))],
        synonyms=config.synonyms,
        facts={**data.known, "encoder": clf.stored_.description.encoder, "technique": str(clf.technique)},
        runtime=Runtime(watch=watch),
    )
    return run_audit(request)


def write(folder: Path, examined: AuditFindings) -> None:
    """Write the report last: it marks the cell as finished."""
    per_text = {
        ValueKey(finding.key, finding.explainer): finding.values.double().cpu().numpy()
        for finding in examined.findings
        if finding.values is not None
    }
    write_arrays(folder / VALUES, per_text)
    examined.report().to_json(folder / REPORT)
