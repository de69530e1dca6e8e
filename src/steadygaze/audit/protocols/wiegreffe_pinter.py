"""Was attention needed at all, and was it this one?  Two models more, trained on the same texts.

Wiegreffe & Pinter, "Attention is not not Explanation", EMNLP 2019 (arXiv:1908.04626), §3.1 and §4.

    accuracy/uniform                     of a model of the same shape whose attention is held uniform
    accuracy/above-uniform               how much more often the model is right.  Near 0: attention was not needed, and
                                         explains little whatever it looks at
    jensen-shannon/trained-adversary     how far the attention of a model trained to predict the same and to look
                                         elsewhere (techniques/adversary.py) is from the model's own
    prediction-change/trained-adversary  how far its predictions are.  Far in the one and near in the other: the
                                         attention was not the only one that could be learnt

Departs from the paper: one λ, where it draws a curve over many; both trained with the model's own settings, the
uniform one by cross-entropy alone.  Costs two trainings, so that it is asked for by giving the training texts.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from sklearn.base import clone
from torch import Tensor

from steadygaze.audit.finding import NO_LABELS, Finding, missing_findings
from steadygaze.audit.measure_names import probe_names
from steadygaze.audit.measures import stability_measures
from steadygaze.core.errors import UserError
from steadygaze.core.settings import field_names
from steadygaze.estimator.inputs import read_texts
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import TextConfig
from steadygaze.models import inference
from steadygaze.models.classifier import Architecture
from steadygaze.training.optimizers import Training

DIFFERENCE = 1e-3
"""λ."""
TRAINED = probe_names("uniform", "above-uniform", "trained-adversary")
UNTRAINED = "it takes two trainings: in Python, train= gives the texts and labels for them"
NOT_OURS = "only a TextClassifier can be trained again"
Split = tuple[Any, Any]
"""Texts and labels, as `fit` takes them."""


def attention_necessity(
    clf: TextClassifier, train: Split, validation: Split | None, test: Split, difference: float = DIFFERENCE
) -> Iterator[Finding]:
    """`train` and `validation` are what `clf` was trained with; of `test` the labels are places among the classes.

    They may be None.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "collapsed attention")  # uniform is meant, and elsewhere may be nowhere
        even = same_labels(clf, "vanilla", attention="uniform").fit(*train, validation=validation)
        other = same_labels(clf, "adversary", difference=difference).fit(*train, validation=validation, reference=clf)
    if list(even.classes_) != list(clf.classes_):
        raise UserError(f"the texts to train on have the labels {list(even.classes_)}, the model {list(clf.classes_)}")
    yield from _needed(clf, even, test)
    yield from _moved(clf, other, test[0], {"difference": difference})


def same_labels(clf: TextClassifier, technique: str, **settings: Any) -> TextClassifier:
    """Not trained yet: of the same shape, trained by the same settings, by another technique."""
    shared = {name for kind in (Architecture, Training, TextConfig) for name in field_names(kind)}
    kept = {name: value for name, value in (clf.settings or {}).items() if name in shared}
    made: TextClassifier = clone(clf).set_params(technique=technique, settings={**kept, **settings}, verbose=False)
    return made


def _needed(clf: TextClassifier, even: TextClassifier, test: Split) -> Iterator[Finding]:
    texts, labels = test
    if labels is None:
        yield from missing_findings(probe_names("uniform", "above-uniform"), NO_LABELS)
        return
    ours, theirs = (torch.from_numpy(one.predict_proba(texts).argmax(-1) == labels).double() for one in (clf, even))
    yield Finding("accuracy/uniform", theirs)
    yield Finding("accuracy/above-uniform", ours - theirs)


def _moved(clf: TextClassifier, other: TextClassifier, texts: Any, how: dict[str, float]) -> Iterator[Finding]:
    data = clf.stored_.data(*read_texts(texts))
    ours, theirs = (inference.split_outputs(one.stored_.model, data) for one in (clf, other))
    apart = stability_measures.jensen_shannon(ours.weights.double(), theirs.weights.double(), ours.mask)
    apart = apart.masked_fill(ours.mask.sum(-1) < 2, torch.nan)
    change = stability_measures.prediction_change(_probs(ours), _probs(theirs))
    yield Finding("jensen-shannon/trained-adversary", apart, "attention", how)
    yield Finding("prediction-change/trained-adversary", change, "attention", how)


def _probs(read: inference.SplitOutputs) -> Tensor:
    return read.logits.double().softmax(-1)
