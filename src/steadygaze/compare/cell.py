"""Cell: one technique with one seed, trained and audited; and how it becomes one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze import verbs
from steadygaze.audit.audit import Asked, Examined, examine
from steadygaze.compare.folder import Arrays, Folder, read_arrays, write_arrays
from steadygaze.compare.identity import plan
from steadygaze.compare.material import Material
from steadygaze.compare.order import Order
from steadygaze.compare.references import references
from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.report.report import Report
from steadygaze.subject import as_subject

MODEL, VALUES, REPORT = "model", "values.safetensors", "report.json"
Watch = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Cell:
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


def finished(folder: Path) -> bool:
    return (folder / REPORT).is_file()


def read(folder: Path, technique: str, seed: int, texts: int) -> Cell:
    """`texts`: how many were audited, so many numbers each measure must have."""
    values, report = read_arrays(folder / VALUES, texts), Report.from_json(folder / REPORT)
    if "explanation" not in report.facts:
        raise UserError(f"{folder / REPORT} is damaged: its facts lack the explanation; delete {folder}")
    return Cell(technique, seed, values, report)


def train(order: Order, given: Material, folder: Folder, technique: str, seed: int, device: str) -> TextClassifier:
    """Trained now, or where an interruption left it, or loaded where it was finished."""
    clf = order.classifier(technique, seed, device)
    ready = references(order, folder, technique, seed, device)
    return verbs.train(clf, given.corpus, folder.cell(technique, seed) / MODEL, True, ready, folder.shelf)


def audit(order: Order, given: Material, clf: TextClassifier, synonyms: Any, watch: Watch) -> Examined:
    known = {**given.known, "encoder": clf.stored_.description.encoder, "technique": str(clf.technique)}
    asked = Asked((order.explains(str(clf.technique)),), plan(order), known, synonyms, watch=watch)
    subject = replace(as_subject(clf), name=f"{clf.technique}-{clf.seed}")
    return examine(subject, given.examples, asked)


def write(folder: Path, examined: Examined) -> None:
    """The report last: with it the cell is done."""
    per_text = {
        f"{one.measure}|{one.explainer}" if one.explainer else one.measure: one.values.double().cpu().numpy()
        for one in examined.findings
        if one.values is not None
    }
    write_arrays(folder / VALUES, per_text)
    examined.report().to_json(folder / REPORT)
