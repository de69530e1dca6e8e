"""Every kind of container and label a scikit-learn user may hand over; all of them train the same model."""

import copy

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pytest

from estimator.tiny import LABELS, PAIRS, TEXTS, fitted, fitted_pair, tiny

NUMBERS = [int(label == "pos") for label in LABELS]
DATASET = datasets.Dataset.from_dict({"text": TEXTS, "label": LABELS, "row": range(24)})
SINGLE = {
    "tuple": tuple(TEXTS),
    "array": np.array(TEXTS),
    "object array": np.array(TEXTS, dtype=object),
    "string array": np.array(TEXTS, dtype=np.dtypes.StringDType()),
    "array of one column": np.array(TEXTS)[:, None],
    "numpy strings": [np.str_(text) for text in TEXTS],
    "series": pd.Series(TEXTS, index=range(100, 124)),
    "object series": pd.Series(TEXTS, dtype=object),
    "string series": pd.Series(TEXTS, dtype="string"),
    "arrow series": pd.Series(TEXTS, dtype="string[pyarrow]"),
    "frame of one column": pd.DataFrame({"review": TEXTS}),
    "polars series": pl.Series(TEXTS),
    "polars frame of one column": pl.DataFrame({"review": TEXTS}),
    "dataset": DATASET,
    "dataset column": DATASET["text"],
}
DOUBLE = {
    "lists": [list(pair) for pair in PAIRS],
    "array": np.array(PAIRS),
    "frame": pd.DataFrame(PAIRS, columns=["passage", "question"]),
    "objects": pd.Series(PAIRS),
    "polars frame": pl.DataFrame(PAIRS, schema=["passage", "question"], orient="row"),
    "string array": np.array(PAIRS, dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("kind", SINGLE)
def test_single_texts_in_any_container_are_the_same_texts(kind):
    expected = fitted().predict_proba(TEXTS)
    assert np.array_equal(fitted().predict_proba(SINGLE[kind]), expected)


def test_an_iterator_is_read_once():
    assert np.array_equal(fitted().predict_proba(iter(TEXTS)), fitted().predict_proba(TEXTS))


@pytest.mark.parametrize("kind", DOUBLE)
def test_pairs_in_any_container_are_the_same_pairs(kind):
    assert np.array_equal(fitted_pair().predict_proba(DOUBLE[kind]), fitted_pair().predict_proba(PAIRS))


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array(TEXTS), np.array(LABELS)),
        (pd.Series(TEXTS), pd.Series(LABELS, dtype="category")),
        (np.array(TEXTS, dtype=np.dtypes.StringDType()), np.array(LABELS, dtype=np.dtypes.StringDType())),
        (pd.Series(TEXTS, dtype="string"), pd.Series(LABELS, dtype="string")),
        (pl.Series(TEXTS), pl.Series(LABELS)),
        (pl.Series(TEXTS), pl.Series(LABELS, dtype=pl.Categorical)),
        (pl.DataFrame({"text": TEXTS}), pl.DataFrame({"label": LABELS})["label"]),
        (DATASET, DATASET["label"]),
        (DATASET["text"], [np.str_(label) for label in LABELS]),
    ],
    ids=["numpy", "pandas", "strings", "pandas strings", "polars", "categories", "frame", "dataset", "column"],
)
def test_fit_takes_them_too(X, y):
    clf = tiny().fit(X, y, validation=(X, y))
    expected = tiny().fit(TEXTS, LABELS, validation=(TEXTS, LABELS))
    assert np.array_equal(clf.predict_proba(TEXTS), expected.predict_proba(TEXTS))
    assert clf.stored_.description.corpus == expected.stored_.description.corpus


@pytest.mark.parametrize(
    "y",
    [NUMBERS, np.array(NUMBERS), np.array(NUMBERS, dtype=np.uint8), np.array(NUMBERS, bool), np.array(NUMBERS, float)],
    ids=["list", "int64", "uint8", "bool", "whole floats"],
)
def test_whole_numbers_are_labels(y):
    clf = tiny().fit(TEXTS, y)
    assert clf.classes_.tolist() == [0, 1]
    assert clf.classes_.dtype == np.int64
    assert clf.predict(TEXTS).dtype == np.int64
    assert np.array_equal(clf.predict_proba(TEXTS), tiny().fit(TEXTS, LABELS).predict_proba(TEXTS))


def test_numbers_are_sorted_as_numbers():
    assert tiny().fit(TEXTS, [10, 9, -1] * 8).classes_.tolist() == [-1, 9, 10]


def test_nothing_that_is_handed_over_is_changed():
    texts, labels, weights = np.array(TEXTS, dtype=object), pd.Series(LABELS), np.arange(1.0, 25.0)
    settings, class_weight = {"hidden": 4, "dimension": 6}, {"pos": 2.0, "neg": 1.0}
    inputs = [texts, labels, weights, settings, class_weight]
    before = copy.deepcopy(inputs)
    clf = tiny(settings=settings, class_weight=class_weight).fit(texts, labels, weights, validation=(texts, labels))
    clf.predict(texts)
    clf.explain(texts)
    assert np.array_equal(texts, before[0])
    assert labels.equals(before[1])
    assert np.array_equal(weights, before[2])
    assert [settings, class_weight] == before[3:]


@pytest.mark.parametrize(
    "X",
    [
        pd.Series([TEXTS[0], None], dtype="string"),
        pl.Series([TEXTS[0], None]),
        np.array([TEXTS[0], None], dtype=np.dtypes.StringDType(na_object=None)),
    ],
    ids=["pandas", "polars", "numpy"],
)
def test_a_missing_text_is_named(X):
    with pytest.raises(ValueError, match=r"\[1\] is (missing|empty)"):
        fitted().score(X, LABELS[:2])
    with pytest.warns(UserWarning, match=r"no prediction for 1 empty text: texts\[1\]$"):
        assert fitted().predict(X).tolist() == [fitted().predict(TEXTS[:1])[0], None]
