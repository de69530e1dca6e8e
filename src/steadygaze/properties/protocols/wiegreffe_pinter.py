"""Necessity of the attention: retrain the model with uniform attention and with an adversarial attention.

Wiegreffe & Pinter, "Attention is not not Explanation", EMNLP 2019 (arXiv:1908.04626), §3.1 and §4.

    accuracy/uniform                     of a model of the same architecture with uniform attention
    accuracy/above-uniform               the model's accuracy minus that.  Near 0: attention is not necessary
    jensen-shannon/trained-adversary     divergence of the attention of a model trained to predict the same with a
                                         different attention (techniques/adversary.py)
    prediction-change/trained-adversary  change of its predictions.  A large divergence with a small change: the
                                         attention is not unique

Departs from the paper: one λ instead of a curve.  Both models use the model's own settings; the uniform one is trained
with cross-entropy only.  The protocol trains two models, so it runs only if the training texts are passed.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from steadygaze.core.errors import HealthWarning, UserError
from steadygaze.core.maths.distributions import jensen_shannon
from steadygaze.core.settings import field_names
from steadygaze.core.types import OnProgress, no_progress
from steadygaze.estimator.inputs import read_texts
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import TextConfig
from steadygaze.models import inference
from steadygaze.models.classifier import Architecture
from steadygaze.properties.audit_case import NO_LABELS, Finding, TrainingTask, missing_findings
from steadygaze.properties.measures import stability_measures
from steadygaze.results.note import Note, NoteCode
from steadygaze.training.optimizers import Training

DIFFERENCE = 1e-3
"""λ."""
UNIFORM = ("accuracy/uniform", "accuracy/above-uniform")
TRAINED = (*UNIFORM, "jensen-shannon/trained-adversary", "prediction-change/trained-adversary")
NOT_OURS = Note(NoteCode.NOT_A_TEXT_CLASSIFIER)
Split = tuple[Any, Any]
"""Texts and labels, as `fit` takes them."""


def attention_necessity(
    clf: TextClassifier,
    train: Split,
    validation: Split | None,
    test: Split,
    difference: float = DIFFERENCE,
    on_progress: OnProgress = no_progress,
) -> Iterator[Finding]:
    """`train` and `validation`: the data `clf` was trained on; `test`: texts and class indices, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)  # expected here
        on_progress(TrainingTask.UNIFORM, 0, 2)
        uniform = same_labels(clf, "vanilla", attention="uniform").fit(*train, validation=validation)
        on_progress(TrainingTask.ADVERSARIAL, 1, 2)
        adversary = same_labels(clf, "adversary", difference=difference).fit(
            *train, validation=validation, reference=clf
        )
    if list(uniform.classes_) != list(clf.classes_):
        raise UserError(
            f"the training texts have the labels {list(uniform.classes_)}, the model has {list(clf.classes_)}: "
            "pass the texts and labels that the model was trained on"
        )
    yield from _necessity(clf, uniform, test)
    yield from _adversary(clf, adversary, test[0], {"difference": difference})


def same_labels(clf: TextClassifier, technique: str, **settings: Any) -> TextClassifier:
    """An unfitted classifier with the same architecture and settings, and another technique."""
    names = {name for kind in (Architecture, Training, TextConfig) for name in field_names(kind)}
    common = {name: value for name, value in (clf.settings or {}).items() if name in names}
    model: TextClassifier = clone(clf).set_params(technique=technique, settings={**common, **settings}, verbose=False)
    return model


def _necessity(clf: TextClassifier, uniform: TextClassifier, test: Split) -> Iterator[Finding]:
    texts, labels = test
    if labels is None:
        yield from missing_findings(UNIFORM, NO_LABELS)
        return
    accuracy, baseline = (
        torch.from_numpy(model.predict_proba(texts).argmax(-1) == labels).double() for model in (clf, uniform)
    )
    yield Finding("accuracy/uniform", baseline)
    yield Finding("accuracy/above-uniform", accuracy - baseline)


def _adversary(
    clf: TextClassifier, adversary: TextClassifier, texts: Any, settings: dict[str, float]
) -> Iterator[Finding]:
    data = clf.stored_.data(*read_texts(texts))
    outputs, adversarial = (inference.split_outputs(model.stored_.model, data) for model in (clf, adversary))
    divergence = jensen_shannon(outputs.weights.double(), adversarial.weights.double(), outputs.mask)
    divergence = divergence.masked_fill(outputs.mask.sum(-1) < 2, torch.nan)
    change = stability_measures.prediction_change(_probs(outputs), _probs(adversarial))
    yield Finding("jensen-shannon/trained-adversary", divergence, "attention", settings)
    yield Finding("prediction-change/trained-adversary", change, "attention", settings)


def _probs(outputs: inference.SplitOutputs) -> Tensor:
    return outputs.logits.double().softmax(-1)
