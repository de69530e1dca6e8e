"""Models that a technique holds its own against, where they are cells of the comparison already.

A vanilla model trained as somebody's first stage and a vanilla cell of that seed are the same, bit for bit: it need not
be trained twice.  Where some of the models wanted are no cells, all come from the teacher cache, which trains
each once.

What is asked of several models at once: how far those of one technique are apart.

Cell: one technique with one seed, trained and audited; and how it becomes one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.audit.audit import run_protocols
from steadygaze.audit.audit_case import AuditCase, Rows
from steadygaze.audit.audit_case import saliency_divergence as distance
from steadygaze.audit.audit_report import AuditFindings, AuditRequest
from steadygaze.audit.prepare_case import prepare
from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch
from steadygaze.estimator import resumable_training
from steadygaze.estimator.loading import load_classifier
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.explainers import EXPLAINERS
from steadygaze.results.report import Report
from steadygaze.study.compare_config import BETWEEN, CompareConfig
from steadygaze.study.study_data import StudyData, plan
from steadygaze.study.study_folder import Arrays, StudyFolder, read_arrays, write_arrays
from steadygaze.techniques.technique import Stage
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.training_run import RESULT

VANILLA = "vanilla"


def references(
    order: CompareConfig, folder: StudyFolder, technique: str, seed: int, device: str
) -> list[TextClassifier]:
    """In the order in which the technique asks for them; none where it asks for none, or for others."""
    stages = {
        stage.model: stage for stage in order.training(technique, seed).technique.stages(seed) if stage.model != RESULT
    }
    if not stages or not _alike(order, technique):
        return []
    seeds = [seed if stage.seed is None else stage.seed for stage in stages.values()]
    if not all(map(_plain, stages.values())) or not set(seeds) <= set(order.numbers):
        return []
    return [load_classifier(folder.cell(VANILLA, number) / "model", device) for number in seeds]


def _alike(order: CompareConfig, technique: str) -> bool:
    """Whether vanilla is trained before it, and with the same settings."""
    before = order.techniques[: order.techniques.index(technique)]
    if VANILLA not in before:
        return False
    ours, theirs = order.training(technique), order.training(VANILLA)
    return all(getattr(ours, part) == getattr(theirs, part) for part in ("architecture", "training", "reading"))


def _plain(stage: Stage) -> bool:
    """Whether a run of its own would end in just this."""
    return stage == replace(Stage(stage.name, Vanilla()), model=stage.model, seed=stage.seed)


def pairwise_divergence(order: CompareConfig, given: StudyData, models: Iterable[TextClassifier]) -> Arrays:
    """`measure|explainer|place+place` -> (N,): how far every two of them are apart on each text, as an audit has it.

    Of a model no more is kept than what it says, so that they may be loaded one after the other.
    """
    each = iter(models)
    first = next(each)
    name = order.explains(str(first.technique))

    def case_of(one: TextClassifier) -> AuditCase:
        return prepare(as_adapter(one), given.examples, {name: EXPLAINERS[name]()}, plan(order)).case

    def alike(one: TextClassifier) -> Tensor:
        return case_of(one).explain_class(name, label)

    case = case_of(first)
    label = case.probs.argmax(-1)  # reasons for one class: those for different ones differ
    said = [case.saliency(name), *map(alike, each)]  # no loop, which would hold a model while the next is loaded

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        here, few = [case.gather_rows(one, rows, batch) for one in said], batch.mask.sum(-1) < 2
        pairs = combinations(enumerate(here), 2)
        return {f"{i}+{j}": distance(p, q, batch.mask).masked_fill(few, torch.nan) for (i, p), (j, q) in pairs}

    found = case.gather(f"{name} of all models", work, case.rows(name))
    return {f"{BETWEEN}|{name}|{pair}": values.numpy() for pair, values in found.items()}


MODEL, VALUES, REPORT = "model", "values.safetensors", "report.json"
Watch = Callable[[str, int, int], None]


@dataclass(frozen=True)
class StudyCell:
    technique: str
    seed: int
    values: Arrays
    """`measure|explainer`, or the measure alone where it is about the prediction -> (N,)"""
    report: Report

    @property
    def name(self) -> str:
        return f"{self.technique}, seed {self.seed}"

    def found(self, measure: str) -> NDArray[np.float64] | str:
        """(N,) of a number for each text, (1,) of one for the whole set; else why there is none."""
        row = self.report.find(measure)
        if row is None:
            return "not applicable, because it was not asked"
        if not np.isfinite(row.value):
            return row.note
        named = [key for key in (f"{measure}|{self.report.facts['explanation']}", measure) if key in self.values]
        return self.values[named[0]] if named else np.array([row.value])


def is_finished(folder: Path) -> bool:
    return (folder / REPORT).is_file()


def read(folder: Path, technique: str, seed: int, texts: int) -> StudyCell:
    """`texts`: how many were audited, so many numbers each measure must have."""
    values, report = read_arrays(folder / VALUES, texts), Report.from_json(folder / REPORT)
    if "explanation" not in report.facts:
        raise UserError(f"{folder / REPORT} is damaged: its facts lack the explanation; delete {folder}")
    return StudyCell(technique, seed, values, report)


def train(
    order: CompareConfig, given: StudyData, folder: StudyFolder, technique: str, seed: int, device: str
) -> TextClassifier:
    """Trained now, or where an interruption left it, or loaded where it was finished."""
    clf = order.classifier(technique, seed, device)
    ready = references(order, folder, technique, seed, device)
    return resumable_training.train(
        clf, given.corpus, folder.cell(technique, seed) / MODEL, True, ready, folder.teacher_cache
    )


def audit(order: CompareConfig, given: StudyData, clf: TextClassifier, synonyms: Any, watch: Watch) -> AuditFindings:
    known = {**given.known, "encoder": clf.stored_.description.encoder, "technique": str(clf.technique)}
    asked = AuditRequest((order.explains(str(clf.technique)),), plan(order), known, synonyms, watch=watch)
    subject = replace(as_adapter(clf), name=f"{clf.technique}-{clf.seed}")
    return run_protocols(subject, given.examples, asked)


def write(folder: Path, examined: AuditFindings) -> None:
    """The report last: with it the cell is done."""
    per_text = {
        f"{one.measure}|{one.explainer}" if one.explainer else one.measure: one.values.double().cpu().numpy()
        for one in examined.findings
        if one.values is not None
    }
    write_arrays(folder / VALUES, per_text)
    examined.report().to_json(folder / REPORT)
