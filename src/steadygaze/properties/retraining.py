"""The data of a retraining: read and checked before the audit begins, because the audit takes long.

A retrained model must read the texts as the audited model does: the same vocabulary, from the same training texts.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example, Label, texts_of
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import fit, small_data
from steadygaze.estimator.inputs import read_split, read_validation
from steadygaze.estimator.model_folder import SavedModel, hash_texts
from steadygaze.estimator.resumable_training import columns
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import train_config
from steadygaze.models.inference import selects
from steadygaze.properties.protocols.wiegreffe_pinter import same_labels
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.progress import QuietWatcher

Labeled = tuple[list[Any], list[Label]]
"""Texts and labels, as `fit` takes them."""


def trainable(adapter: ModelAdapter) -> TextClassifier:
    """The classifier that can be retrained; raise an error if there is none, or if its technique is not known."""
    classifier = adapter.classifier
    if classifier is None:
        raise UserError(
            f"only a TextClassifier can be retrained, and {adapter.name} is {adapter.kind}: leave out the training "
            "texts"
        )
    if isinstance(classifier.technique, str) and classifier.technique not in TECHNIQUES:
        raise UserError(
            f"{adapter.name} was trained with the technique {classifier.technique!r}, and train= (--train) "
            "retrains it: first import the module that registers this technique (a command does so with "
            "--import MODULE), or leave out the training texts"
        )
    return classifier


def read_train(classifier: TextClassifier, train: Any, name: str = "train") -> Labeled:
    """Return lists of texts and labels, because generators can be read only once.

    Raise an error if these are not texts with the labels of the model; validation texts may lack some of them.
    """
    if not isinstance(train, Sequence) or len(train) != 2:
        raise UserError(f"{name} must be (texts, labels), found {train!r:.80}")
    split = read_split(*train) if name == "train" else read_validation(tuple(train))
    classes = list(classifier.stored_.description.classes)
    labels = set(split.labels)
    if labels != set(classes) if name == "train" else not labels <= set(classes):
        kind = "training" if name == "train" else name
        raise UserError(
            f"the {kind} texts have the labels {sorted(labels, key=str)}, the model has {classes}: "
            f"pass the texts and labels that the model was trained on as {name}= (--train)"
        )
    return split.inputs, split.labels


def check_vocabulary(classifier: TextClassifier, train: Labeled, validation: Labeled | None) -> None:
    """Raise an error if a model that is trained on these texts could not be compared with the audited one."""
    if selects(classifier.stored_.model):
        return
    split, held_out = read_split(*train), None if validation is None else read_validation(validation)
    config = small_data.resolve(train_config(same_labels(classifier, "adversary").get_params(deep=False)), split)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the training itself warns
            fit.prepare(config, split, held_out, QuietWatcher(), [classifier.stored_])
    except UserError as error:
        missing = ", and those that chose its epoch as validation=" if validation is None else ""
        raise UserError(
            f"the audited model cannot be compared with one trained on these texts: {error}.  Pass the texts that the "
            f"model was trained on as train= (--train){missing}"
        ) from None


def training_texts(saved: SavedModel, corpus: Corpus) -> tuple[Labeled, Labeled | None]:
    """The texts that `train` reads in a corpus: the training split, and the validation split if there is one.

    Texts that --test-share held out are left out, if the model was trained without them.
    """
    split = corpus.choose("train")
    validation = corpus.splits.get("validation")
    held_out = None if validation is None or split != "train" else columns(validation)
    return columns(_without_test_share(saved, corpus.splits[split], held_out)), held_out  # type: ignore[return-value]


def _without_test_share(saved: SavedModel, examples: Sequence[Example], validation: Any) -> Sequence[Example]:
    """The examples that the model was trained on, if these are exactly its training texts; otherwise all."""
    if saved.training_hashes is None:
        return examples
    is_known = np.isin(hash_texts(texts_of(examples), saved.description.corpus), saved.training_hashes)
    known = [example for example, seen in zip(examples, is_known, strict=True) if seen]
    if len(known) == len(examples) or len({example.label for example in known}) < 2:
        return examples
    splits = [read_split(*columns(known)), *([] if validation is None else [read_validation(validation)])]
    fingerprints = (":".join(split.fingerprint(by) for split in splits) for by in (False, True))
    return known if saved.description.corpus in fingerprints else examples
