"""sg.evaluate: accuracy, macro-F1, calibration and the confusion matrix of any model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.audit.measures import correctness_measures
from steadygaze.core import __version__
from steadygaze.core.arguments import integer, optional, sequence_of, validated
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import digest_values
from steadygaze.estimator.inputs import read_texts
from steadygaze.models import inference
from steadygaze.results.evaluation import Evaluation, WrongPrediction
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
    device: str = "auto",
    batch_size: int = inference.BATCH,
    seed: int = 0,
) -> Evaluation:
    """Evaluate the predictions of any model.

    model, classes, device : as for `load`.
    texts, labels : as for `audit`.
    seed : random seed of the bootstrap intervals.
    """
    return evaluate_adapter(as_adapter(model, classes=classes, device=device), texts, labels, batch_size, seed)


def evaluate_adapter(
    adapter: ModelAdapter, texts: Any, labels: Sequence[Label], batch_size: int = inference.BATCH, seed: int = 0
) -> Evaluation:
    codes = np.array(adapter.label_codes(list(labels)))
    inputs, _ = read_texts(texts)
    if len(codes) != len(inputs):
        raise UserError(f"{len(inputs):,} texts and {len(codes):,} labels: there must be one label for each text")
    probabilities = adapter.predict_proba(texts, batch_size=batch_size)
    return evaluation(adapter.name, adapter.classes, inputs, codes, probabilities, seed)


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
    confidence, predicted = (part.tolist() for part in probs.max(-1))
    wrong = sorted((row for row, hit in enumerate(hits) if not hit), key=lambda row: -confidence[row])[:ERRORS]
    errors = [
        WrongPrediction(row, texts[row], classes[int(label[row])], classes[predicted[row]], confidence[row])
        for row in wrong
    ]
    counts = correctness_measures.confusion_matrix(probs, label).tolist()
    return Evaluation(name, tuple(classes), tuple(rows), tuple(map(tuple, counts)), tuple(errors))
