"""Fit several classifiers on the same texts: as stacks where possible on a GPU, the others one after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.estimator.fit import CheckpointConfig, FitRequest, fit_models
from steadygaze.estimator.inputs import read_split, read_validation
from steadygaze.estimator.text_classifier import TextClassifier, references
from steadygaze.estimator.train_config import train_config
from steadygaze.training.progress import OnEpoch


@dataclass(frozen=True)
class ClassifierFit:
    """A classifier to fit, with the arguments of its own `fit`."""

    classifier: TextClassifier
    reference: Sequence[TextClassifier] = ()
    checkpoint: Path | None = None
    resume: bool = False
    teacher_cache: Path | None = None
    on_epoch: OnEpoch | None = None


def fit_many(
    fits: Sequence[ClassifierFit],
    X: Any,
    y: Any,
    *,
    validation: tuple[Any, Any] | None = None,
) -> list[TextClassifier | None]:
    """Fit classifiers in place; each equals its own fit, to rounding on a GPU.

    On a GPU, one program trains the classifiers of one technique and architecture.  They may differ in seed, in
    learning rate, clipping and weight decay, and in the numbers of the technique that its `stacked_settings` name.

    Returns
    -------
    list
        The classifiers in order; None for a model that diverged, if another did not, or that its `on_epoch` stopped.
    """
    for item in fits:
        if item.classifier.n_seeds != 1:
            raise UserError("fit_many takes classifiers with n_seeds=1: pass one classifier for each seed")
    requests = [
        FitRequest(
            train_config(item.classifier.get_params(deep=False)),
            CheckpointConfig(item.checkpoint, item.resume, item.teacher_cache),
            references(item.reference),
            item.on_epoch,
        )
        for item in fits
    ]
    held_out = None if validation is None else read_validation(validation)
    models = fit_models(requests, read_split(X, y), held_out, fits[0].classifier._watcher())
    return [None if model is None else item.classifier._take(model) for item, model in zip(fits, models, strict=True)]
