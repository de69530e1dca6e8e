"""Black boxes: models of which only the predictions are known."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from contract.probing import state
from contract.tiny import littered, widened
from estimator.tiny import LABELS, TEXTS
from steadygaze.adapters import black_box
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.errors import UserError
from steadygaze.data.batches import collate
from steadygaze.explainers.attention import Attention
from steadygaze.explainers.learned.black_box_queries import check_probabilities
from steadygaze.perturbations.word_removal import remove_words, take_rows
from steadygaze.properties.probes.text_perturbations import observe


@pytest.fixture(scope="module")
def sklearn():
    return make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0)).fit(TEXTS, LABELS)


class Counting:
    """Predicts by the count of "good", and records its queries."""

    def __init__(self):
        self.calls = []

    def __call__(self, texts):
        self.calls.append(list(texts))
        good = np.array([str(text).count("good") for text in texts])
        return np.stack([1 / (1 + good), good / (1 + good)], 1)

    @property
    def texts(self):
        return [text for call in self.calls for text in call]


def batch_of(adapter, texts, questions=None):
    adapter = adapter.for_pairs(questions is not None)
    return collate(adapter.data(adapter.tokens.place(texts), questions), np.arange(len(texts)))


def test_a_pipeline_of_scikit_learn_predicts_the_same_for_tokens_as_for_texts(sklearn):
    adapter = as_adapter(sklearn)
    assert (adapter.name, adapter.kind, adapter.fingerprint) == ("Pipeline", "a black box", "")
    assert list(adapter.classes) == ["neg", "pos"]
    assert (adapter.model.capabilities, adapter.pair) == (frozenset(), None)
    batch = batch_of(adapter, TEXTS)
    seen = observe(adapter.model, batch)
    assert seen.shown is None
    np.testing.assert_allclose(seen.probs.numpy(), sklearn.predict_proba(TEXTS), rtol=1e-12)
    for other in (widened(batch, 3), littered(batch)):
        assert torch.equal(observe(adapter.model, other).probs, seen.probs)


def test_a_removed_word_is_a_query_of_the_text_without_it(sklearn):
    adapter = as_adapter(sklearn)
    batch = batch_of(adapter, ["the film was good and fine", "a bad, dull plot"])
    gone = torch.zeros_like(batch.mask)
    gone[0, 3] = gone[1, 1] = True
    seen = observe(adapter.model, remove_words(batch, gone))
    expected = sklearn.predict_proba(["the film was and fine", "a , dull plot"])
    np.testing.assert_allclose(seen.probs.numpy(), expected, rtol=1e-12)


def test_equal_texts_are_queried_once_in_a_call_and_once_in_all():
    model = Counting()
    adapter = as_adapter(model, classes=["bad", "good"])
    batch = batch_of(adapter, ["a good film", "a bad film", "a good film"])
    seen = observe(adapter.model, batch)
    assert model.calls == [["a good film", "a bad film"]]
    torch.testing.assert_close(seen.probs[:, 1], torch.tensor([0.5, 0.0, 0.5], dtype=torch.float64))
    gone = torch.zeros_like(batch.mask)
    gone[:, 1] = True
    observe(adapter.model, remove_words(batch, gone))
    observe(adapter.model, batch)
    assert model.texts == ["a good film", "a bad film", "a film"]


def test_the_cache_is_bounded_and_holds_the_latest_queries(monkeypatch):
    """A cache of two entries: after one, two and one again, three displaces two."""
    monkeypatch.setattr(black_box, "REMEMBERED", 2)
    model = Counting()
    adapter = as_adapter(model, classes=["bad", "good"])
    batch = batch_of(adapter, ["one", "two", "three"])
    for row in (0, 1, 0, 2, 0, 1):
        observe(adapter.model, take_rows(batch, torch.tensor([row])))
        assert len(adapter.model._cache) <= 2
    assert model.texts == ["one", "two", "three", "two"]
    seen = observe(adapter.model, batch)  # more at once than it can remember
    assert seen.probs.shape == (3, 2)
    assert len(adapter.model._cache) == 2


def test_many_texts_are_queried_in_parts(monkeypatch):
    monkeypatch.setattr(black_box, "CHUNK", 2)
    model = Counting()
    adapter = as_adapter(model, classes=["bad", "good"])
    texts = ["good", "good good", "bad", "dull", "good good good"]
    seen = observe(adapter.model, batch_of(adapter, texts))
    assert [len(call) for call in model.calls] == [2, 2, 1]
    expected = torch.tensor([1 / 2, 2 / 3, 0, 0, 3 / 4], dtype=torch.float64)
    torch.testing.assert_close(seen.probs[:, 1], expected)


def test_a_pair_is_given_as_text_and_question():
    model = Counting()
    adapter = as_adapter(model, classes=["bad", "good"])
    batch = batch_of(adapter, ["a good film", "a good film"], ["good?", " is it bad ?"])
    assert observe(adapter.model, batch).probs[0, 1] == pytest.approx(2 / 3)
    assert model.texts == [("a good film", "good?"), ("a good film", " is it bad ?")]


def test_a_probability_of_nothing_stays_finite():
    adapter = as_adapter(lambda texts: [[0.0, 1.0]] * len(texts), classes=["a", "b"])
    output = adapter.model(batch_of(adapter, ["x"]))
    assert output.logits.isfinite().all()
    assert output.logits.softmax(-1).tolist() == [[pytest.approx(0, abs=1e-300), 1.0]]


@pytest.mark.parametrize(
    "kind",
    [
        lambda rows: rows,
        np.array,
        lambda rows: np.array(rows, np.float32),
        lambda rows: torch.tensor(rows, requires_grad=True),
        lambda rows: pd.DataFrame(rows, columns=["a", "b"]),
        lambda rows: [np.array(row) for row in rows],
    ],
)
def test_probabilities_may_come_in_any_table(kind):
    rows = [[0.25, 0.75], [0.5, 0.5]]
    assert check_probabilities(kind(rows), 2, 2).tolist() == rows


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ([[0.5, 0.5]], r"shape \(1, 2\); 2 rows of 2 probabilities"),
        ([0.5, 0.5], r"shape \(2,\); 2 rows of 2 probabilities were expected, one row per input"),
        ([[0.2, 0.3, 0.5]] * 2, r"shape \(2, 3\)"),
        ([["pos", "neg"]] * 2, "returned .*pos.*; 2 rows of 2 probabilities"),
        (None, "numbers of shape|gave None"),
        ([[0.5, 0.5], [0.5]], "2 rows of 2 probabilities"),
        ([[0.5, 0.5], [np.nan, 1.0]], r"\[nan, 1\.0\], which are not all finite"),
        ([[0.5, 0.5], [np.inf, 1.0]], "which are not all finite"),
        ([[0.5, 0.5], [-0.25, 1.25]], r"\[-0\.25, 1\.25\], which are not all at least 0"),
        ([[0.5, 0.5], [0.5, 0.6]], r"\[0\.5, 0\.6\], which do not sum to 1"),
        ([[2.0, -1.5]] * 2, r"\[2\.0, -1\.5\]"),
    ],
)
def test_what_are_no_probabilities_is_shown(output, sentence):
    with pytest.raises(UserError, match=sentence):
        check_probabilities(output, 2, 2)


def test_rounding_is_forgiven():
    assert check_probabilities([[0.3333, 0.3333, 0.3333]], 1, 3).shape == (1, 3)
    with pytest.raises(UserError, match="do not sum to 1"):
        check_probabilities([[0.333, 0.333, 0.332]], 1, 3)


def test_a_model_that_is_not_fitted_or_has_no_classes_is_an_error(sklearn):
    with pytest.raises(UserError, match="Pipeline has not been fitted: call fit first"):
        as_adapter(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    with pytest.raises(UserError, match=r"Pipeline has no predict_proba.*CalibratedClassifierCV"):
        as_adapter(make_pipeline(TfidfVectorizer(), LinearSVC()).fit(["good", "bad"], ["good", "bad"]))
    with pytest.raises(UserError, match="Pipeline has 2 classes, but classes= has 3 names"):
        as_adapter(sklearn, classes=["a", "b", "c"])
    with pytest.raises(UserError, match="needs at least 2: name them all in classes="):
        as_adapter(len, classes=["only"])
    renamed = as_adapter(sklearn, classes=["schlecht", "gut"])
    assert renamed.label_codes(["gut", "schlecht"]) == [1, 0]


def test_classes_that_are_numbers_of_numpy_are_python_s():
    numbers = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, np.array([1.0] * 12 + [0.0] * 12))
    adapter = as_adapter(numbers)
    assert [type(name) for name in adapter.classes] == [int, int]
    assert adapter.label_codes([0, 1]) == [0, 1]


def test_vectors_are_refused_and_attention_is_not_there(sklearn):
    adapter = as_adapter(sklearn)
    batch = batch_of(adapter, TEXTS[:2])
    with pytest.raises(ValueError, match="reads texts, not vectors"):
        adapter.model(batch, torch.zeros(2, batch.ids.shape[1], 3))
    assert Attention.requires - adapter.model.capabilities == {"attention"}


def test_a_query_does_not_change_the_model(sklearn):
    adapter = as_adapter(sklearn)
    weights = sklearn[-1].coef_.copy()
    adapter.model.train()
    before = state(adapter.model)
    observe(adapter.model, batch_of(adapter, TEXTS))
    assert state(adapter.model) == before
    assert np.array_equal(sklearn[-1].coef_, weights)


def test_a_black_box_may_change_the_list_that_it_is_given():
    model = Counting()

    def clearing(texts):
        result = model(texts)
        texts.clear()
        return result

    adapter = as_adapter(clearing, classes=["bad", "good"])
    seen = observe(adapter.model, batch_of(adapter, ["a good film", "a bad film"]))
    torch.testing.assert_close(seen.probs[:, 1], torch.tensor([0.5, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("error", [StopIteration("no more"), KeyError("film"), RuntimeError("out of order")])
def test_what_a_black_box_raises_is_named_and_is_the_cause(error):
    def failing(texts):
        raise error

    adapter = as_adapter(failing, classes=["bad", "good"])
    with pytest.raises(UserError, match=f"the black box failed: {type(error).__name__}: ") as raised:
        observe(adapter.model, batch_of(adapter, ["a good film"]))
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, np.ndarray.tolist])
def test_complex_numbers_are_not_probabilities(kind):
    with pytest.raises(UserError, match="2 probabilities were expected, one row per input"):
        check_probabilities(kind(np.array([[0.5 + 0.1j, 0.5]])), 1, 2)
