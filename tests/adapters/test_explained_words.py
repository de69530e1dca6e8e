"""Words of several pieces: perturbation explainers remove the word that is shown, whole.

The reference is the transformers library itself, called with ids without the subwords of a word.
"""

import math
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from adapters.folders import network, tokenizer
from steadygaze.adapters import streaming
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.explain_texts import ResolvedRequest, explain_texts
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.explainers.lime import Lime

TEXT = "A good, unbelievable film!"
WORDS = [[4], [5], [19], [13, 14, 15], [6], [17]]
"""Ids of the pieces of each word: "unbelievable" is three of them."""
PAIR = ("A good film", "was unbelievable bad?")
QUESTION_WORDS = [[9], [13, 14, 15], [7], [18]]
NAMES = ("A", "good", ",", "unbelievable", "film", "!")


@cache
def own_network():
    return network("bert").double()


def probabilities(words, question=None):
    """By the network alone, of the ids of these words and of those of a question."""
    ids = [2, *chain.from_iterable(words), 3]
    kinds = [0] * len(ids)
    if question is not None:
        ids += [*chain.from_iterable(question), 3]
        kinds += [1] * (len(ids) - len(kinds))
    with torch.no_grad():
        output = own_network()(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([kinds]))
    return output.logits[0].softmax(-1)


def plain(kept):
    """The probability of the predicted class, of a text of these words."""
    return float(probabilities([WORDS[i] for i in sorted(kept)])[probabilities(WORDS).argmax()])


def test_the_library_has_the_same_ids():
    pair = [2, 4, 5, 6, 3, *chain.from_iterable(QUESTION_WORDS), 3]
    assert tokenizer("bert")(TEXT)["input_ids"] == [2, *chain.from_iterable(WORDS), 3]
    assert tokenizer("bert")(*PAIR)["input_ids"] == pair


@pytest.fixture(scope="module")
def bert(folder):
    adapter = as_adapter(folder("bert"))
    adapter.model.double()
    return adapter


def explained(adapter, explainer, granularity="word"):
    (result,) = streaming.explain(adapter, iter([[TEXT]]), ExplainRequest(None, explainer, granularity=granularity))
    return result


def test_leave_one_out_of_a_word_is_what_the_text_loses_without_all_its_pieces(bert):
    result = explained(bert, "leave-one-out")
    everything = set(range(len(WORDS)))
    assert result.tokens == NAMES
    np.testing.assert_allclose(
        result.weights, [plain(everything) - plain(everything - {i}) for i in everything], atol=1e-9
    )


def test_kernel_shap_gives_the_shapley_values_of_words(bert):
    result, n = explained(bert, "kernel-shap"), len(WORDS)
    value = {frozenset(some): plain(some) for k in range(n + 1) for some in combinations(range(n), k)}
    exact = [
        sum(
            math.factorial(len(some)) * math.factorial(n - 1 - len(some)) / math.factorial(n)
            * (value[some | {i}] - value[some])
            for some in value
            if i not in some
        )
        for i in range(n)
    ]  # fmt: skip
    np.testing.assert_allclose(result.weights, exact, atol=1e-8)


@pytest.mark.slow
def test_lime_is_a_ridge_regression_on_words(bert):
    result, n = explained(bert, "lime"), len(WORDS)
    kept = [some for k in range(n + 1) for some in combinations(range(n), k)]
    z = np.array([[i in some for i in range(n)] for some in kept], float)
    near = [math.exp(-((1 - math.sqrt(len(some) / n)) ** 2) / (2 * 0.25**2)) for some in kept]
    weight = [
        1000 / (n + 1) / math.comb(n, len(some)) * close for some, close in zip(kept, near, strict=True)
    ]  # every size as likely
    line = Ridge(alpha=1.0).fit(z, [plain(some) for some in kept], sample_weight=weight)
    np.testing.assert_allclose(result.weights, line.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("explainer", ["gradient", "input-x-gradient", "integrated-gradients", "attention"])
def test_explainers_that_weigh_vectors_add_up_the_pieces_of_a_word(bert, explainer):
    words, pieces = (explained(bert, explainer, granularity) for granularity in ("word", "piece"))
    assert len(pieces) == 8
    assert words.weights[3] == pytest.approx(sum(pieces.weights[3:6]), abs=1e-12)
    assert words.weights[4] == pytest.approx(pieces.weights[6], abs=1e-12)


def test_subwords_are_removed_one_by_one_if_requested(bert):
    result = explained(bert, "leave-one-out", "piece")
    ids = [[piece] for word in WORDS for piece in word]
    aim = probabilities(ids).argmax()
    lost = [float((probabilities(ids) - probabilities(ids[:i] + ids[i + 1 :]))[aim]) for i in range(len(ids))]
    np.testing.assert_allclose(result.weights, lost, atol=1e-9)


@pytest.mark.parametrize(("explainer", "readings"), [(LeaveOneOut(), 6), (Lime(), 2**6)])
def test_a_text_is_read_once_for_each_word_or_subset_of_words(bert, explainer, readings, monkeypatch):
    many = []
    right = type(bert.model)._read
    monkeypatch.setattr(type(bert.model), "_read", lambda *a: many.append(len(a[1])) or right(*a))
    explain_texts(bert.model, bert.tokens, bert.classes, [TEXT], None, ResolvedRequest(explainer, "x"))
    assert sum(many) == 1 + readings  # the whole text first


def test_both_texts_of_a_pair_are_explained_the_question_by_words_too(bert):
    """Against the network's own reading of [CLS] text [SEP] question [SEP], less one word of the question."""
    (result,) = streaming.explain(bert, iter([[PAIR]]), ExplainRequest(None, "leave-one-out"))
    words, aim = WORDS[:2] + WORDS[4:5], probabilities(WORDS[:2] + WORDS[4:5], QUESTION_WORDS).argmax()
    before = probabilities(words, QUESTION_WORDS)[aim]
    lost = [
        float(before - probabilities(words, QUESTION_WORDS[:i] + QUESTION_WORDS[i + 1 :])[aim])
        for i in range(len(QUESTION_WORDS))
    ]
    assert result.question_tokens == ("was", "unbelievable", "bad", "?")
    np.testing.assert_allclose(result.question_weights, lost, atol=1e-9)
    assert len(result.weights) == 3


@pytest.mark.parametrize("explainer", ["gradient", "input-x-gradient", "integrated-gradients", "lime", "kernel-shap"])
def test_every_explainer_but_attention_weighs_the_words_of_the_question(bert, explainer):
    (result,) = streaming.explain(bert, iter([[PAIR]]), ExplainRequest(None, explainer))
    assert all(result.question_weights)
    assert len(result.question_weights) == 4
    (shown,) = streaming.explain(bert, iter([[PAIR]]), ExplainRequest(None, "attention"))
    assert shown.question_weights is None


def test_kernel_shap_of_a_pair_sums_to_what_all_words_of_both_change(bert):
    (result,) = streaming.explain(bert, iter([[PAIR]]), ExplainRequest(None, "kernel-shap"))
    whole, nothing = probabilities(WORDS[:2] + WORDS[4:5], QUESTION_WORDS), probabilities([], [])
    gained = (whole - nothing)[whole.argmax()]
    assert sum(result.weights) + sum(result.question_weights) == pytest.approx(float(gained), abs=1e-9)
