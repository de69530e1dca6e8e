"""sg.evaluate: accuracy, macro-F1, calibration and the confusion matrix of any model; errors of regression models.

MAE          mean |v − y|
R²           1 − Σ (y − v)² / Σ (y − ȳ)²
correlation  Pearson's, of v and y

The intervals of R² and correlation are bootstraps over texts.  Resamples of equal values y have neither, and are left
out; for the correlation also those of equal values v.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.adapters.as_adapter import as_adapter, two_class_models
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.output_labels import numbers
from steadygaze.auditing.prepare_case import fingerprint
from steadygaze.core import __version__
from steadygaze.core.arguments import integer, optional, sequence_of, validated
from steadygaze.core.types import Example, Label
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.text_checks import check_labels
from steadygaze.estimator.inputs import check_label_count, join_questions, list_labels, read_inputs
from steadygaze.models import inference
from steadygaze.properties.measures import correctness_measures
from steadygaze.properties.measures.measure import measures_of
from steadygaze.results.evaluation import Evaluation, tabulate
from steadygaze.results.health import constant_prediction
from steadygaze.results.intervals import Interval, Values, bootstrap_statistic
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

    Parameters
    ----------
    model : any model that `sg.load` takes, or the result of `sg.load`
        The model.
    texts : list of str, or list of (text, question)
        The texts.
    labels : list of str or int
        Their labels.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    target : str or int, default=None
        Output of a multi-label or regression model.  A regression model gets MAE, R² and correlation.
    device : str, default="auto"
        Device of a model that this call loads.
    batch_size : int, default=128
        Texts per batch.
    seed : int, default=0
        Random seed of the bootstrap intervals.

    Returns
    -------
    Evaluation
        Accuracy, macro-F1 and calibration with intervals, scores per class, confusion matrix and wrong predictions.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> scores = sg.evaluate(cheerful, ["a good film", "a dull one"], ["yes", "no"], classes=["no", "yes"])
    >>> scores["accuracy"]
    1.0
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
    texts, questions, sentences = read_inputs(texts)
    inputs = join_questions(texts, questions)
    if adapter.task == "regression":
        return _regression(adapter, inputs, labels, batch_size, seed, target)
    (adapter,), convert = two_class_models([adapter], inputs, target, None)
    labels = convert(labels)
    check_label_count(len(inputs), len(labels))
    codes = np.array(adapter.label_codes(labels))
    probabilities = adapter.predict_proba(join_questions(texts, questions, sentences), batch_size=batch_size)
    settings = _settings(adapter, inputs, check_labels(labels, minimum_classes=1), probabilities, seed)
    probs, label = torch.from_numpy(probabilities), torch.from_numpy(codes)
    rows = [
        mean_row(name, measure.function(probs, label).tolist(), settings, seed=seed, proportion=measure.proportion)
        for name, measure in measures_of("labels", correctness_measures.MEASURES).items()
    ]
    for name, (value, interval) in correctness_measures.set_scores(probs, label, seed).items():
        rows.append(Row(name, value, len(codes), interval, settings))
    evaluation = tabulate(adapter.name, adapter.classes, rows, texts, codes, probabilities, ERRORS)
    constant = constant_prediction(probabilities.argmax(-1).tolist(), codes.tolist(), adapter.classes)
    return replace(evaluation, training_texts=adapter.training_overlap(inputs), health=adapter.health + constant)


def _settings(
    adapter: ModelAdapter, inputs: Sequence[Any], labels: Sequence[Any], predictions: NDArray[np.float64], seed: int
) -> dict[str, str | int | float]:
    """Settings that identify a result.  A black box is identified by its predictions."""
    pairs = (item if isinstance(item, tuple) else (item, None) for item in inputs)
    examples = [Example(text, label, question) for (text, question), label in zip(pairs, labels, strict=True)]
    output = {"output": adapter.facts["output"]} if "output" in adapter.facts else {}
    identity = {} if adapter.fingerprint else {"predictions": digest_values(predictions)[:12]}
    return {
        "model": adapter.fingerprint[:12] or adapter.name,
        **output,
        **identity,
        "data": fingerprint(examples)[:12],
        "seed": seed,
        "steadygaze": __version__,
    }


def _regression(
    adapter: ModelAdapter, inputs: Sequence[Any], labels: Any, batch_size: int, seed: int, target: Label | None
) -> Evaluation:
    name, index = adapter.output_position(target)
    true = np.array(numbers(list_labels(labels)))
    check_label_count(len(inputs), len(true))
    value = adapter.predict_covered(inputs, batch_size)[0][:, index]
    settings = {**_settings(adapter, inputs, true.tolist(), value, seed), "output": str(name)}
    rows = [mean_row("mean-absolute-error", np.abs(value - true).tolist(), settings, seed=seed)]
    scores: tuple[tuple[str, Score, list[Values]], ...] = (
        ("r2", _r2, [true]),
        ("correlation", _correlation, [true, value]),
    )
    for measure, score, varied in scores:
        if all(np.ptp(values) > 0 for values in varied):
            interval = _score_interval(score, true, value, varied, seed)
            rows.append(Row(measure, float(score(true, value)), len(true), interval, settings))
    return Evaluation(adapter.name, (), tuple(rows), (), (), health=adapter.health)


Score = Callable[[Values, Values], Values]


def _r2(true: Values, value: Values) -> Values:
    """(…,N), (…,N) -> (…)"""
    return np.asarray(1 - ((true - value) ** 2).mean(-1) / true.var(-1))


def _correlation(true: Values, value: Values) -> Values:
    """(…,N), (…,N) -> (…)"""
    covariance = ((true - true.mean(-1, keepdims=True)) * (value - value.mean(-1, keepdims=True))).mean(-1)
    return np.asarray(np.clip(covariance / (true.std(-1) * value.std(-1)), -1.0, 1.0))


def _score_interval(score: Score, true: Values, value: Values, varied: Sequence[Values], seed: int) -> Interval:
    """The bootstrap interval over texts, from resamples in which each array of `varied` has different values."""

    def draws(rows: NDArray[np.int64]) -> Values:
        defined = rows[np.all([np.ptp(values[rows], axis=-1) > 0 for values in varied], axis=0)]
        return score(true[defined], value[defined])

    return bootstrap_statistic(draws, len(true), seed=seed)
