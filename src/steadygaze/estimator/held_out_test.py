"""A test part for `steadygaze train`: texts held out before training, and the scores of the model on them.

The validation score can be optimistic, because it selects the epoch.  The test part selects nothing: training, the
vocabulary and the choice of the epoch do not read it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from steadygaze.core.errors import UserError
from steadygaze.data.corpus import Corpus
from steadygaze.data.splits import hold_out
from steadygaze.estimator.inputs import read_labels
from steadygaze.estimator.model_config import HeldOutScore
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.results.evaluation import macro_f1_row
from steadygaze.results.row import mean_row


def hold_out_test(corpus: Corpus, share: float) -> Corpus:
    """Move a stratified share of the training texts to the split `test`."""
    if "test" in corpus.splits:
        raise UserError(
            f"{corpus.name} already has a test split: remove --test-share, and measure the model with "
            f"steadygaze evaluate MODEL --data {corpus.name} --split test"
        )
    examples = corpus.training
    train, test = hold_out(len(examples), [example.label for example in examples], share=share)
    if not test:
        raise UserError(f"{corpus.name} has too few texts for a test part ({len(examples)}): remove --test-share")
    parts = {name: [examples[row] for row in sorted(rows)] for name, rows in (("train", train), ("test", test))}
    return dataclasses.replace(corpus, splits={**corpus.splits, **parts})


def measure(clf: TextClassifier, inputs: Sequence[Any], labels: Sequence[Any]) -> dict[str, HeldOutScore]:
    """Accuracy and macro-F1 on these texts, with bootstrap intervals."""
    index = {label: i for i, label in enumerate(clf.stored_.description.classes)}
    codes = np.array([index[label] for label in read_labels(labels, minimum_classes=1)])
    predicted = clf.predict_proba(inputs).argmax(-1)
    rows = mean_row("accuracy", (predicted == codes).tolist()), macro_f1_row(codes, predicted, len(index))
    return {row.measure: HeldOutScore(value=row.value, interval=row.interval, n=row.n) for row in rows}
