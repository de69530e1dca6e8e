"""Texts and labels of a user, and the errors for other values."""

from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.core.errors import UserError
from steadygaze.data.text_checks import BooleanLabel, check_labels, check_texts

readable = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@given(st.lists(readable, min_size=1))
def test_good_texts_come_back_unchanged(texts):
    assert check_texts(texts) == texts
    assert check_texts(pd.Series(texts, dtype=object)) == texts


def test_numpy_texts_become_plain_strings():
    for array in (np.array(["a", "b"]), np.array([np.str_("a"), "b"], dtype=object)):
        texts = check_texts(array)
        assert texts == ["a", "b"]
        assert {type(text) for text in texts} == {str}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["a", "", " \n"], r"texts\[1\] is empty \(2 such texts in all\)"),
        (["a", "\u2003"], r"texts\[1\] is empty; every"),
        (["a", None], r"texts\[1\] is empty"),
        (["a", float("nan")], r"texts\[1\] is missing; every text must be a string"),
        (pd.Series(["a", pd.NA]), r"texts\[1\] is missing"),
        (["a", 7], r"texts\[1\] is 7 \(int\)"),
        (["a", b"b"], r"texts\[1\] is b'b' \(bytes\)"),
        (["a", "b\ud800"], r"texts\[1\] contains '\\ud800', half of a surrogate pair"),
        ("a text", "texts is a single string"),
        ([], "there are no texts"),
        (np.array([["a"], ["b"]]), r"texts has shape \(2, 1\)"),
        (pd.DataFrame({"text": ["a"]}), r"texts has shape \(1, 1\)"),
    ],
)
def test_a_bad_text_is_named(texts, sentence):
    with pytest.raises(UserError, match=sentence):
        check_texts(texts)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["no", "yes", "no"], ["no", "yes", "no"]),
        (np.array(["no", "yes"]), ["no", "yes"]),
        (np.array([0, 1], dtype=np.int8), [0, 1]),
        (np.array([np.int64(0), np.int64(5)], dtype=object), [0, 5]),
        ([0.0, 2.0, -1.0], [0, 2, -1]),
        (np.array([True, False]), [BooleanLabel(1), BooleanLabel(0)]),
        ([BooleanLabel(1), BooleanLabel(0)], [BooleanLabel(1), BooleanLabel(0)]),
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (iter([2**63 - 1, -(2**63)]), [2**63 - 1, -(2**63)]),
    ],
)
def test_labels_become_strings_or_integers(labels, expected):
    checked = check_labels(labels)
    assert checked == expected
    assert {type(label) for label in checked} == {type(expected[0])}


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", None], r"labels\[1\] is empty"),
        (["a", ""], r"labels\[1\] is empty"),
        ([1.0, float("nan")], r"labels\[1\] is empty"),
        (pd.Series(["a", pd.NA]), r"labels\[1\] is empty"),
        ([pd.NaT, "a"], r"labels\[0\] is empty"),
        ([["a", "b"], ["a"]], r"labels\[0\] is \['a', 'b'\]: steadygaze trains single-label classifiers"),
        ([{"a"}, {"b"}], "single-label"),
        (np.eye(2, dtype=int), r"labels has shape \(2, 2\).*single-label"),
        (pd.DataFrame({"a": [0, 1]}), "single-label"),
        ([0, 0.37], r"labels\[1\] is 0.37: steadygaze trains classifiers, not regressions"),
        (np.array([0.5, 1.5], dtype=np.float32), r"labels\[0\] is 0.5.*regressions"),
        (["a", 1], r"labels\[0\] is 'a' but labels\[1\] is 1"),
        ([date(2020, 1, 1), date(2020, 1, 2)], r"labels\[0\] is datetime.date\(2020, 1, 1\) \(date\)"),
        ([Decimal(1), Decimal(2)], r"\(Decimal\); labels must be strings or whole numbers"),
        ([1, 2**63], r"labels\[1\] is an integer of more than 64 bits; .* convert them to strings"),
        ([-(2**63) - 1, 1], r"labels\[0\] is an integer of more than 64 bits"),
        ([10**5000, 1], r"labels\[0\] is an integer of more than 64 bits"),
        (np.array([1e30, 1.0]), r"labels\[0\] is an integer of more than 64 bits"),
        (["a", "b\ud800"], r"labels\[1\] contains '\\ud800', half of a surrogate pair"),
        ([], "there are no labels"),
        ("yes", "labels is a single string"),
        (["yes"] * 3, r"the 3 labels have 1 class \('yes'\); a classifier needs at least 2"),
    ],
)
def test_a_bad_label_is_named(labels, sentence):
    with pytest.raises(UserError, match=sentence):
        check_labels(labels)


def test_one_class_is_enough_where_nothing_is_trained():
    assert check_labels(["yes", "yes"], minimum_classes=1) == ["yes", "yes"]


def test_the_caller_names_the_location():
    with pytest.raises(UserError, match=r"^row 3 is empty"):
        check_labels(["a", None], location=lambda i: f"row {i + 2}")
