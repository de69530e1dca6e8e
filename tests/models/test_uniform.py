"""Uniform attention: the same weight for every word, and a scorer that is never used."""

import pytest
import torch

from contract.tiny import batch, classifier, split
from steadygaze.models.attention_layers import Uniform


def test_weights_worked_by_hand():
    """Four tokens, of which three are words: a third each, whatever their scores; none where there is no word."""
    scores = torch.tensor([[5.0, -7.0, 50.0, 0.0], [1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    weights = Uniform()(scores, torch.tensor([[True, True, False, True], [False] * 4]))
    torch.testing.assert_close(weights, torch.tensor([[1 / 3, 1 / 3, 0, 1 / 3], [0.0] * 4], dtype=torch.float64))


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan")])
def test_scores_that_are_not_finite_do_not_change_the_weights(score):
    weights = Uniform()(torch.tensor([[score, 0.0]]), torch.ones(1, 2, dtype=torch.bool))
    assert weights.tolist() == [[0.5, 0.5]]


def test_scores_have_a_slope_of_zero_and_a_scorer_learns_nothing():
    model, texts = classifier("bilstm", attention="uniform"), batch(split())
    parameters = list(model.scorer.parameters())
    slopes = torch.autograd.grad(model(texts).logits.square().sum(), parameters)
    assert not any(slope.any() for slope in slopes)
    assert (model(texts).weights * texts.mask.sum(-1, keepdim=True) - texts.mask.double()).abs().max() < 1e-15
