"""sg.evaluate: accuracy, macro-F1, calibration and the confusion matrix of any model; errors of regression models.

MAE          mean |v − y|
R²           1 − Σ (y − v)² / Σ (y − ȳ)²
correlation  Pearson's, of v and y
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.output_labels import numbers
from steadygaze.adapters.two_class_models import two_class_models
from steadygaze.audit.measures import correctness_measures
from steadygaze.core import __version__
from steadygaze.core.arguments import integer, optional, sequence_of, validated
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import digest_values
from steadygaze.estimator.inputs import read_texts
from steadygaze.models import inference
from steadygaze.results.evaluation import Evaluation, tabulate
from steadygaze.results.row import Row, mean_row

ERRORS = 100
"""Largest number of wrong predictions in an evaluation."""


@validated(labels=sequence_of, classes=optional(sequence_of), batch_size=integer(1), seed=integer(0))
def evaluate(
    model: Any,
    texts: Any,
    labels: Sequence[Label],
    *,
    classes: Sequence[Label] | None = None,
    target: Label | None = None,
    device: str = "auto",
    batch_size: int = inference.BATCH,
    seed: int = 0,
) -> Evaluation:
    """Evaluate the predictions of any model.

    model, classes, device : as for `load`.
    texts, labels, target : as for `audit`.  A regression model gets MAE, R² and correlation.
    seed : random seed of the bootstrap intervals.
    """
    adapter = as_adapter(model, classes=classes, device=device)
    return evaluate_adapter(adapter, texts, labels, batch_size, seed, target)


def evaluate_adapter(
    adapter: ModelAdapter,
    texts: Any,
    labels: Sequence[Label],
    batch_size: int = inference.BATCH,
    seed: int = 0,
    target: Label | None = None,
) -> Evaluation:
    if adapter.task == "regression":
        return _regression(adapter, texts, labels, batch_size, seed, target)
    (adapter,), convert = two_class_models([adapter], texts, target, None)
    labels = convert(labels)
    codes = np.array(adapter.label_codes(list(labels)))
    inputs = _texts(texts, len(codes))
    probabilities = adapter.predict_proba(texts, batch_size=batch_size)
    return evaluation(adapter.name, adapter.classes, inputs, codes, probabilities, seed)


def _texts(texts: Any, labels: int) -> list[str]:
    inputs, _ = read_texts(texts)
    if labels != len(inputs):
        raise UserError(f"{len(inputs):,} texts and {labels:,} labels: there must be one label for each text")
    return inputs


def _regression(
    adapter: ModelAdapter, texts: Any, labels: Sequence[Any], batch_size: int, seed: int, target: Label | None
) -> Evaluation:
    name, index = adapter.output_position(target)
    true = np.array(numbers(labels))
    inputs = _texts(texts, len(true))
    value = adapter.predict_covered(texts, batch_size)[0][:, index]
    settings = {
        "model": adapter.name,
        "output": str(name),
        "data": digest_values(list(inputs), true)[:12],
        "steadygaze": __version__,
    }
    rows = [mean_row("mean-absolute-error", np.abs(value - true).tolist(), settings, seed=seed)]
    if true.std() > 0:
        r2 = 1 - ((true - value) ** 2).sum() / ((true - true.mean()) ** 2).sum()
        rows.append(Row("r2", float(r2), len(true), None, settings))
    if true.std() > 0 and value.std() > 0:
        rows.append(Row("correlation", float(np.corrcoef(true, value)[0, 1]), len(true), None, settings))
    return Evaluation(adapter.name, (), tuple(rows), (), ())


def evaluation(
    name: str, classes: Sequence[Label], texts: Sequence[str], codes: Any, probabilities: Any, seed: int = 0
) -> Evaluation:
    """The evaluation of these probabilities.  codes (N,): the label of each text as an index; (N,C)"""
    probs, label = torch.as_tensor(probabilities), torch.as_tensor(codes)
    hits = correctness_measures.accuracy(probs, label).tolist()
    settings = {"model": name, "data": digest_values(list(texts), label.numpy())[:12], "steadygaze": __version__}
    rows = [mean_row("accuracy", hits, settings, seed=seed)]
    for measure, (value, interval) in correctness_measures.set_scores(probs, label, seed).items():
        rows.append(Row(measure, value, len(hits), interval, settings))
    return tabulate(name, classes, rows, texts, label.numpy(), probs.numpy(), ERRORS)
