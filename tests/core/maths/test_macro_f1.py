"""Macro-F1 against scikit-learn, bit for bit: validation scores select epochs."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score

from steadygaze.core.maths.macro_f1 import confusion_counts, macro_f1_of, macro_f1_of_resamples


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_counts_and_macro_f1_are_those_of_scikit_learn(classes: int) -> None:
    random = np.random.default_rng(classes)
    for size in (1, 2, 5, 40, 300):  # few examples: some classes neither occur nor are predicted
        label, predicted = random.integers(classes, size=(2, size))
        counts = confusion_counts(label, predicted, classes)
        assert np.array_equal(counts, confusion_matrix(label, predicted, labels=range(classes)))
        assert macro_f1_of(counts) == f1_score(label, predicted, average="macro", zero_division=0.0)


def test_a_class_that_is_only_predicted_counts() -> None:
    """Class 0: 2·1 / (2·1 + 0 + 1) = 2/3.  Class 1: 0, predicted once.  Class 2 does not count: the mean is 1/3."""
    assert macro_f1_of(confusion_counts(np.array([0, 0]), np.array([0, 1]), 3)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("classes", [2, 7, 300])
def test_every_resample_has_the_macro_f1_of_its_examples(classes: int) -> None:
    random = np.random.default_rng(classes)
    label, predicted = random.integers(classes, size=(2, 40))
    draws = random.integers(40, size=(20, 40))
    expected = [float(macro_f1_of(confusion_counts(label[rows], predicted[rows], classes))) for rows in draws]
    assert macro_f1_of_resamples(draws, label, predicted, classes) == pytest.approx(expected, abs=1e-12)


def test_the_resamples_of_many_classes_and_texts_need_no_table_of_both() -> None:
    """Texts times classes would be 4 GB."""
    label = np.arange(100_000) % 5_000
    (value,) = macro_f1_of_resamples(np.arange(100_000)[None], label, label, 5_000)
    assert value == 1.0
