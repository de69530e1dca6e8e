"""Integrated gradients: completeness, and exact answers where they are known."""

from dataclasses import replace

import pytest
import torch
from captum.attr import IntegratedGradients as Direct

from contract.tiny import CLASSES, assert_close, batch, cached_classifier, classifier, split
from explainers.worked import WORTH, Line, row, texts
from steadygaze.explainers import gradient
from steadygaze.explainers.gradient import IntegratedGradients

MODEL = pytest.mark.parametrize("encoder", ["average", "bilstm", "cnn", "transformer"])
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def test_of_a_straight_line_every_word_gets_what_it_adds():
    words = texts([1, 2, 4], [6, 3])
    result = IntegratedGradients(steps=1).explain(Line(), words, torch.tensor([1, 1])).weights
    expected = torch.tensor([[WORTH[1], WORTH[2], WORTH[4]], [WORTH[6], WORTH[3], 0.0]], dtype=torch.float64)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)


@pytest.mark.sweep
@PAIR
@MODEL
def test_the_weights_of_a_text_sum_to_what_its_words_change_against_padding(encoder, pair):
    model, words = cached_classifier(encoder, pair), batch(split(pair=pair))
    target = torch.arange(len(words)) % CLASSES
    saliency = IntegratedGradients(steps=200).explain(model, words, target)
    result = saliency.weights.sum(-1) + (saliency.question.sum(-1) if pair else 0.0)
    nothing = replace(words, ids=words.ids.masked_fill(words.mask, 0))
    if pair:
        nothing = replace(nothing, question_ids=words.question_ids.masked_fill(words.question_mask, 0))
    p, empty = (
        model(some).logits.softmax(-1).gather(-1, target.unsqueeze(-1)).squeeze(-1) for some in (words, nothing)
    )
    torch.testing.assert_close(result, p - empty, rtol=0, atol=2e-4)
    assert (p - empty).abs().max() > 1e-2


def test_more_steps_err_less():
    model, words = cached_classifier("bilstm"), batch(split())
    exact = IntegratedGradients(steps=300).explain(model, words).weights
    few, more = (
        (IntegratedGradients(steps=steps).explain(model, words).weights - exact).abs().max() for steps in (1, 5)
    )
    assert more < few / 10


def test_captum_called_directly_on_one_text_gives_the_same():
    model, words = cached_classifier("bilstm"), batch(split())
    result = IntegratedGradients(steps=20).explain(model, words, torch.full((len(words),), 1)).weights
    for place in (0, 2, 3):
        text = row(words, place)
        embedded = model.embed(text).detach()
        parts = Direct(lambda x, text=text: model(text, x).logits.softmax(-1)).attribute(
            embedded, baselines=embedded * ~text.mask.unsqueeze(-1), target=1, n_steps=20, internal_batch_size=1
        )  # padding is 0 in a model of words
        own = result[place, : text.ids.shape[1]]
        torch.testing.assert_close(own, parts[0].sum(-1), rtol=0, atol=1e-9)  # Captum's nodes are in single precision


def test_where_padding_has_a_vector_of_its_own_the_way_begins_there():
    """One word: w = (x − x′)·∫g, and w = p(x) − p(x′).  With x′ = x nothing is left to explain."""
    model = Line()
    with torch.no_grad():
        model.table.weight[0] = torch.tensor([1.0, 0.0])
    result = IntegratedGradients().explain(model, texts([1], [2]), torch.tensor([1, 1])).weights
    torch.testing.assert_close(result, torch.tensor([[0.0], [-0.07]], dtype=torch.float64), rtol=0, atol=1e-7)


@pytest.mark.parametrize("most", [1, 30, 64, 1000])
def test_no_more_tokens_are_read_at_once_than_may_be(most, monkeypatch):
    model, words = Line(), texts([1, 2, 4], [3], [5, 6, 1, 2], [1], [2, 2])
    whole = IntegratedGradients(steps=7).explain(model, words).weights
    model.read.clear()
    monkeypatch.setitem(gradient.GRADIENT_TOKENS, "cpu", most)
    assert_close(IntegratedGradients(steps=7).explain(model, words).weights, whole)
    assert max(read.ids.numel() for read in model.read[1:]) <= max(most, 4)
    assert sum(map(len, model.read[1:])) == 7 * len(words)


def test_single_precision_is_enough():
    model, words = classifier("bilstm"), batch(split())
    exact = IntegratedGradients().explain(model, words).weights
    torch.testing.assert_close(IntegratedGradients().explain(model.float(), words).weights, exact, rtol=0, atol=1e-6)
