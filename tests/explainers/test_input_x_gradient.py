"""Input × gradient: exact on a straight line, and Captum's own answer for one text."""

import torch
from captum.attr import InputXGradient as Direct

from contract.tiny import assert_close, batch, classifier, split
from explainers.worked import WORTH, Line, row, texts
from steadygaze.explainers.gradient import Gradient, InputXGradient


def test_of_a_straight_line_every_word_gets_what_it_adds():
    """p(1) = ½ + Σ x·θ: x·∂p/∂x = x·θ, which is WORTH of the word's id; of class 0 the opposite."""
    words = texts([1, 2, 4], [6, 3])
    result = InputXGradient().explain(Line(), words, torch.tensor([1, 0])).weights
    assert_close(result, torch.tensor([[0.03, -0.04, -0.11], [-0.06, 0.01, 0.0]], dtype=torch.float64))
    assert WORTH[4] == -0.11


def test_captum_called_directly_on_one_text_gives_the_same():
    model, words = classifier("bilstm"), batch(split())
    result = InputXGradient().explain(model, words, torch.full((len(words),), 1)).weights
    for place in (0, 2, 3):
        text = row(words, place)
        parts = Direct(lambda x, text=text: model(text, x).logits.softmax(-1)).attribute(
            model.embed(text).detach().requires_grad_(), target=1
        )
        assert_close(result[place, : text.ids.shape[1]], parts[0].sum(-1) * text.mask[0])


def test_it_is_never_more_than_length_times_length():
    """Cauchy and Schwarz: |x·g| ≤ ‖x‖ ‖g‖."""
    model, words = classifier("transformer"), batch(split())
    target = torch.zeros(len(words), dtype=torch.long)
    product = InputXGradient().explain(model, words, target).weights.abs()
    assert (product <= Gradient().explain(model, words, target).weights * model.embed(words).norm(dim=-1) + 1e-12).all()
