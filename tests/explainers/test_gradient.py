"""Gradient: the length of the slope, by hand, by finite differences and by Captum itself."""

import pytest
import torch
from captum.attr import Saliency

from contract.tiny import CLASSES, assert_close, batch, classifier, split
from explainers.worked import SLOPE, Line, row, texts
from steadygaze.explainers import gradient
from steadygaze.explainers.gradient import Gradient


def test_of_a_straight_line_every_word_has_the_length_of_its_slope():
    """p = ½ + Σ x·θ, θ = (0.03, −0.04): ∂p/∂x = θ for every word, ‖θ‖ = 0.05.  Of the other class −θ: the same."""
    batch = texts([1, 2, 4], [3])
    expected = 0.05 * batch.mask.double()
    assert_close(Gradient().explain(Line(), batch).weights, expected)
    assert_close(Gradient().explain(Line(), batch, torch.tensor([0, 1])).weights, expected)
    assert torch.tensor(SLOPE).norm().item() == pytest.approx(0.05)


@pytest.mark.parametrize("encoder", ["bilstm", "cnn"])
def test_it_is_the_length_of_the_slope_by_finite_differences(encoder):
    model, words, step = classifier(encoder), batch(split()), 1e-5
    target = torch.arange(len(words)) % CLASSES
    embedded = model.embed(words).detach()
    slope = torch.zeros_like(embedded)
    with torch.no_grad():
        for t in range(embedded.shape[1]):
            for d in range(embedded.shape[2]):
                moved = torch.zeros_like(embedded)
                moved[:, t, d] = step
                high, low = (model(words, embedded + sign * moved).logits.softmax(-1) for sign in (1, -1))
                slope[:, t, d] = ((high - low) / (2 * step)).gather(-1, target.unsqueeze(-1)).squeeze(-1)
    result = Gradient().explain(model, words, target).weights
    torch.testing.assert_close(result, slope.norm(dim=-1) * words.mask, rtol=1e-6, atol=1e-9)


def test_captum_called_directly_on_one_text_gives_the_same():
    model, words = classifier("cnn"), batch(split())
    result = Gradient().explain(model, words, torch.full((len(words),), 2)).weights
    for place in (0, 2, 3):
        text = row(words, place)
        slope = Saliency(lambda x, text=text: model(text, x).logits.softmax(-1)).attribute(
            model.embed(text).detach().requires_grad_(), target=2, abs=False
        )
        assert_close(result[place, : text.ids.shape[1]], slope[0].norm(dim=-1) * text.mask[0])


def test_a_sure_prediction_still_has_slopes():
    """In single precision 1 − p rounds to 0 from a margin of 17 on, and with it the slope of the class itself."""
    model, words = classifier("average", dtype=torch.float32), batch(split())
    with torch.no_grad():
        model.decoder.output.bias += torch.tensor([25.0, 0.0, 0.0])
    result = Gradient().explain(model, words).weights
    assert model(words).logits.softmax(-1)[0, 0] == 1
    assert result.any(-1).equal(words.mask.any(-1))
    exact = Gradient().explain(model.double(), words).weights
    torch.testing.assert_close(result, exact, rtol=1e-4, atol=0)


@pytest.mark.parametrize("most", [1, 9, 20])
def test_no_more_tokens_are_read_at_once_than_may_be(most, monkeypatch):
    model, words = Line(), texts([1, 2, 4], [3], [5, 6, 1, 2], [1], [2, 2])
    whole = Gradient().explain(model, words).weights
    model.read.clear()
    monkeypatch.setitem(gradient.GRADIENT_TOKENS, "cpu", most)
    assert_close(Gradient().explain(model, words).weights, whole)
    assert all(len(read) == 1 or read.ids.numel() <= most for read in model.read[1:])  # the first is the prediction
    assert sum(map(len, model.read[1:])) == len(words)
