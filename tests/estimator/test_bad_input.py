"""Wrong input of a user is an error of one sentence, and nothing is written."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, fitted_pair, tiny
from steadygaze.core.errors import UserError
from steadygaze.techniques.vanilla import Vanilla

NAN = math.nan


def with_text(value):
    return [*TEXTS[:3], value, *TEXTS[4:]]


def with_label(value):
    return [*LABELS[:3], value, *LABELS[4:]]


@pytest.fixture(autouse=True)
def nothing_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    yield
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([], "there are no texts"),
        ("one text", "texts must be a list, found one string"),
        (b"bytes", "texts must be a list, found one string"),
        (None, "texts must be a list or an array, found None"),
        (7, "texts must be a list or an array, found 7"),
        (np.array("no dimension"), "texts must be a list or an array"),
        ({"text": TEXTS}, "found a dict; pass its values in a list"),
        (set(TEXTS), "found a set"),
        (with_text(""), r"texts\[3\] is empty"),
        (with_text(NAN), r"texts\[3\] is missing"),
        (pd.Series(with_text(None), dtype="string"), r"texts\[3\] is missing"),
        (with_text(5), r"texts\[3\] is 5 \(int\)"),
        (with_text(("a", "b")), r"texts\[3\] is \('a', 'b'\) \(tuple\)"),
        ([*PAIRS[:3], ("a text", " "), *PAIRS[4:]], r"questions\[3\] is empty"),
        ([(*pair, "third") for pair in PAIRS], r"rows of \[3\] parts"),
        (np.array([(*pair, "third") for pair in PAIRS]), "found 3 columns"),
        (np.zeros((24, 2)), r"texts\[0\] is 0.0 \(float\)"),
        (TEXTS[:-1], "found 23 texts and 24 labels"),
    ],
)
def test_texts_that_cannot_be_trained_on(X, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny().fit(X, LABELS)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([], "there are no labels"),
        (None, "labels must be a list or an array, found None"),
        (1, "labels must be a list or an array, found 1"),
        ("pos", "labels must be a list, found one string"),
        (["pos"] * 24, r"have 1 class \('pos'\)"),
        (with_label(None), r"labels\[3\] is empty"),
        (with_label(1), "all strings or all whole numbers"),
        (with_label(["pos", "neg"]), "single-label"),
        (np.eye(24), "single-label"),
        (np.linspace(0, 1, 24), "not regressions"),
        (LABELS[:-1], "found 24 texts and 23 labels"),
    ],
)
def test_labels_that_cannot_be_trained_on(y, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny().fit(TEXTS, y)


@pytest.mark.parametrize(
    ("validation", "sentence"),
    [
        (5, r"validation must be \(texts, labels\), found 5"),
        (TEXTS, r"validation must be \(texts, labels\)"),
        ((TEXTS, LABELS, LABELS), r"validation must be \(texts, labels\)"),
        (([], []), "there are no texts"),
        ((TEXTS, LABELS[:2]), "found 24 texts and 2 labels"),
        ((TEXTS, ["poz"] * 24), "unknown validation label 'poz': did you mean 'pos'"),
        ((PAIRS, LABELS), "both be single texts, or both pairs"),
    ],
)
def test_validation_that_cannot_choose(validation, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny().fit(TEXTS, LABELS, validation=validation)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1] * 23, r"weights of shape \(23,\)"),
        (np.ones((24, 1)), r"weights of shape \(24, 1\)"),
        (2, r"weights of shape \(\)"),
        ([-1] * 24, "finite numbers of at least 0"),
        ([NAN] * 24, "finite numbers of at least 0"),
        ([math.inf] * 24, "finite numbers of at least 0"),
        (["much"] * 24, "must be numbers"),
        ("much", "must be numbers"),
        ([0] * 24, "at least two classes"),
        ([1] * 12 + [0] * 12, "at least two classes"),
    ],
)
def test_sample_weights_that_weigh_nothing(weights, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny().fit(TEXTS, LABELS, sample_weight=weights)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"technique": "vanila"}, "unknown technique 'vanila': did you mean 'vanilla'"),
        ({"technique": "fr"}, "unknown technique 'fr': FR is 'rnp' with shared_encoder=True"),
        ({"technique": ["vanilla"]}, "unknown technique"),
        ({"technique": Vanilla}, "unknown technique"),
        ({"encoder": "bilstmm"}, "unknown encoder 'bilstmm': did you mean 'bilstm'"),
        ({"encoder": ["bilstm"]}, "unknown encoder"),
        ({"encoder": None}, "unknown encoder None"),
        ({"encoder": "transformer:"}, "unknown encoder 'transformer:'"),
        ({"encoder": "transformer:./no such folder"}, "no such folder, and not a name on the hub"),
        ({"settings": {"hiden": 3}}, "unknown setting 'hiden': did you mean 'hidden'"),
        ({"settings": {5: 3}}, "unknown setting 5"),
        ({"settings": [3]}, "settings must be a mapping"),
        ({"settings": ""}, "settings must be a mapping"),
        ({"settings": {"hidden": 1}}, "setting 'hidden': found 1; it should be greater than or equal to 2"),
        ({"settings": {"hidden": "many"}}, "setting 'hidden': found 'many'"),
        ({"settings": {"attention": "softmx"}}, "'softmax', 'sparsemax', 'entmax15' or 'uniform'"),
        ({"settings": {"learning_rate": NAN}}, "setting 'learning_rate': found nan"),
        ({"settings": {"epochs": 3}}, "epochs is set twice: 1, and 3"),
        ({"settings": {**SMALL, "min_df": 25}}, "no word occurs in 25 training texts"),
        ({"technique": "rnp", "settings": {"costs": 3}}, "^costs is set by training: leave it out$"),
        ({"technique": "hardkuma", "settings": {"averages": "x"}}, "^averages is set by training: leave it out$"),
        ({"epochs": 0}, "setting 'epochs': found 0"),
        ({"epochs": 1.5}, "setting 'epochs': found 1.5"),
        ({"batch_size": 0}, "setting 'batch_size': found 0"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4,294,967,295, found -1"),
        ({"seed": 2**32}, "seed must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be a whole number"),
        ({"max_length": 0}, "max_length must be a whole number from 1 to 1,000,000, found 0"),
        ({"max_length": True}, "max_length must be a whole number"),
        ({"max_length": 10**9}, "max_length must be a whole number"),
        ({"device": "gpu"}, "unknown device 'gpu': did you mean 'cpu'"),
        ({"device": None}, "unknown device None"),
        ({"vectors": "nowhere.txt"}, "no file 'nowhere.txt'"),
        ({"vectors": 5}, "vectors must be the name of a file"),
        ({"class_weight": "balance"}, "class_weight must be 'balanced' or a mapping"),
        ({"class_weight": [1, 2]}, "class_weight must be 'balanced' or a mapping"),
        ({"class_weight": {"pox": 2}}, "class_weight does not fit the labels"),
        ({"class_weight": {"pos": -1}}, "class_weight of 'pos' must be a finite number of at least 0, found -1"),
        ({"class_weight": {"pos": NAN}}, "class_weight of 'pos'"),
        ({"class_weight": {"pos": "much"}}, "class_weight of 'pos'"),
        ({"class_weight": {"pos": 0, "neg": 0}}, "every text weight 0"),
    ],
)
def test_parameters_out_of_range_or_unknown(parameters, sentence):
    clf = tiny(**parameters)
    with pytest.raises(UserError, match=sentence) as caught:
        clf.fit(TEXTS, LABELS)
    assert "\n" not in str(caught.value)
    assert not hasattr(clf, "classes_")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_missed():
    with pytest.raises(UserError, match="torch finds no GPU"):
        tiny(device="cuda").fit(TEXTS, LABELS)


def test_resuming_needs_the_folder_of_the_run():
    with pytest.raises(UserError, match="checkpoint="):
        tiny().fit(TEXTS, LABELS, resume=True)


def test_a_transformer_reports_what_it_does_not_support(encoder):
    with pytest.raises(UserError, match="reads at most 61 tokens of a text here; max_length is 62"):
        tiny(encoder, max_length=62).fit(TEXTS, LABELS)
    with pytest.raises(UserError, match="has its own vectors"):
        tiny(encoder, vectors="glove.txt").fit(TEXTS, LABELS)


@pytest.mark.parametrize("verb", ["predict", "predict_proba", "explain"])
def test_texts_of_another_kind_than_those_of_training(verb):
    with pytest.raises(UserError, match=r"trained on single texts, found pairs \(text, question\)"):
        getattr(fitted(), verb)(PAIRS)
    with pytest.raises(UserError, match=r"trained on pairs \(text, question\), found single texts"):
        getattr(fitted_pair(), verb)(TEXTS)
    with pytest.raises(UserError, match="there are no texts"):
        getattr(fitted(), verb)([])
    with pytest.raises(UserError, match=r"texts\[1\] is 7 "):
        getattr(fitted(), verb)(["", 7])


def test_one_text_of_another_kind_cannot_be_explained():
    with pytest.raises(UserError, match="found pairs"):
        fitted().explain(PAIRS[0])
    with pytest.raises(UserError, match="found single texts"):
        fitted_pair().explain(TEXTS[0])


def test_a_score_needs_labels_that_could_be_right():
    with pytest.raises(UserError, match="unknown label 'poss': did you mean 'pos'"):
        fitted().score(TEXTS, with_label("poss"))
    with pytest.raises(UserError, match="found 24 texts and 2 labels"):
        fitted().score(TEXTS, LABELS[:2])


def test_predict_takes_a_list():
    with pytest.raises(UserError, match="put it in a list"):
        fitted().predict("one text")
