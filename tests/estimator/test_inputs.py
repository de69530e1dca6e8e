"""Splits: read, weighed and set aside.  (Every kind of container: tests/estimator/test_kinds.py)"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.auditing.prepare_case import draw_texts
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.splits import HELD_OUT
from steadygaze.estimator.inputs import (
    SMALL_DATASET,
    Split,
    hold_out_validation,
    is_single_text,
    read_split,
    read_texts,
    read_validation,
)


def split(labels, weights=None):
    return Split([f"text {i}" for i in range(len(labels))], None, list(labels), weights)


@given(st.lists(st.sampled_from("abcdef"), min_size=SMALL_DATASET, max_size=120), st.integers(0, 2**32 - 1))
def test_a_tenth_is_set_aside_and_no_class_is_lost(labels, seed):
    whole = split(labels)
    train, validation = hold_out_validation(whole, seed)
    assert sorted(train.texts + validation.texts) == sorted(whole.texts)
    assert set(train.labels) == set(labels)
    spare = len(labels) - len(set(labels))
    assert len(validation.texts) == min(spare, int(np.ceil(len(labels) * HELD_OUT)))


@given(st.integers(2, 12), st.integers(20, 60), st.integers(0, 99))
def test_each_class_gives_its_share(few, many, seed):
    labels = ["rare"] * (10 * few) + ["common"] * (10 * many)
    given_up = Counter(hold_out_validation(split(labels), seed)[1].labels)
    assert abs(given_up["rare"] - few) <= 1
    assert abs(given_up["common"] - many) <= 1


def test_what_is_set_aside_is_drawn_from_the_seed():
    whole = split(["a", "b"] * 50)
    first, again, other = (hold_out_validation(whole, seed)[1].texts for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first) & set(other)) < len(first)


@pytest.mark.parametrize(
    "labels", [["a", "b"] * (SMALL_DATASET // 2 - 1), list(range(SMALL_DATASET))], ids=["few", "no two alike"]
)
def test_where_none_can_be_spared_all_are_used_with_a_warning(labels):
    whole = split(labels)
    with pytest.warns(UserWarning, match=f"{len(labels)} texts are too few to hold any out"):
        assert hold_out_validation(whole, 0) == (whole, whole)


def test_weights_have_mean_one_and_multiply():
    labels = ["a", "a", "b"]
    assert split(labels).weighted(None) is None
    assert split(labels, np.array([1.0, 2.0, 3.0])).weighted(None).tolist() == [0.5, 1.0, 1.5]
    assert split(labels).weighted("balanced").tolist() == [0.75, 0.75, 1.5]
    assert split(labels).weighted({"a": 1, "b": 4}).tolist() == [0.5, 0.5, 2.0]
    assert split(labels, np.array([2.0, 2.0, 1.0])).weighted({"b": 2}).tolist() == [1.0, 1.0, 1.0]
    assert split(labels).weighted("balanced").dtype == np.float32


def test_a_text_of_weight_zero_is_left_out():
    result = read_split(["a", "b", "c"], ["x", "y", "x"], [1, 2, 0])
    assert (result.texts, result.labels, result.weights.tolist()) == (["a", "b"], ["x", "y"], [1.0, 2.0])


def test_pairs_are_texts_with_questions():
    assert read_texts([("a text", "a question"), ["b", "c"]]) == (["a text", "b"], ["a question", "c"])
    assert read_texts(["a"]) == (["a"], None)


def test_a_validation_set_may_hold_one_class():
    assert read_validation((["a"], ["x"])).labels == ["x"]
    assert read_validation([["a"], ["x"]]).texts == ["a"]


@pytest.mark.parametrize(
    ("inputs", "is_single"),
    [("text", True), (("text", "question"), True), (["text"], False), (["a", "b"], False), (("a", "b", "c"), False)],
)
def test_one_text_is_a_string_and_one_pair_a_tuple(inputs, is_single):
    assert is_single_text(inputs) is is_single


def test_rows_keep_what_belongs_together():
    whole = Split(["a", "b", "c"], ["p", "q", "r"], [1, 2, 3], np.array([0.1, 0.2, 0.3]))
    some = whole.rows([2, 0])
    assert (some.texts, some.questions, some.labels) == (["c", "a"], ["r", "p"], [3, 1])
    assert some.weights.tolist() == [0.3, 0.1]


def test_the_fingerprint_changes_with_everything_and_with_nothing_else():
    base = Split(["a", "b"], None, [1, 2])
    others = [
        Split(["a", "c"], None, [1, 2]),
        Split(["ab", ""], None, [1, 2]),
        Split(["a", "b"], ["q", "q"], [1, 2]),
        Split(["a", "b"], None, ["1", "2"]),
        Split(["a", "b"], None, [1, 2], np.ones(2)),
    ]
    assert len({base.fingerprint(), *(other.fingerprint() for other in others)}) == 6
    assert Split(["a", "b"], None, [1, 2]).fingerprint() == base.fingerprint()


def test_a_dataset_without_the_column_names_those_it_has():
    import datasets

    with pytest.raises(UserError, match=r"no column 'text', only sentence, label: pass dataset\[column\]"):
        read_texts(datasets.Dataset.from_dict({"sentence": ["a"], "label": [0]}))


def test_a_column_of_numbers_is_not_taken_for_labels():
    texts = [f"text {i}" for i in range(30)]
    with pytest.raises(UserError, match="30 texts have 30 different labels, '0' among them: check the column of lab"):
        read_split(texts, [str(i) for i in range(30)])
    assert read_split(texts, [str(i % 15) for i in range(30)]).labels[0] == "0"


def test_a_sample_for_the_audit_is_not_what_training_held_out():
    """Both draw with seed 0: of 300 texts a tenth is held out, and a sample has about a tenth of these."""
    examples = [Example(f"text {i}", str(i % 2)) for i in range(300)]
    held_out = hold_out_validation(
        read_split([example.text for example in examples], [example.label for example in examples])
    )[1].texts
    assert sum(example.text in held_out for example in draw_texts(300, 30, 0).select(examples)) < 10
