"""Softmax attention on numbers worked by hand."""

import math

import torch

from steadygaze.models.attention_layers import Softmax


def test_weights_worked_by_hand():
    """exp(log 1), exp(log 3), exp(log 4) over their sum 8; the masked score would have had most of it."""
    scores = torch.tensor([[math.log(1), math.log(3), 50.0, math.log(4)]], dtype=torch.float64)
    weights = Softmax()(scores, torch.tensor([[True, True, False, True]]))
    torch.testing.assert_close(weights, torch.tensor([[1 / 8, 3 / 8, 0.0, 4 / 8]], dtype=torch.float64))


def test_every_word_gets_some_weight():
    weights = Softmax()(torch.tensor([[0.0, -30.0, 4.0]]), torch.ones(1, 3, dtype=torch.bool))
    assert (weights > 0).all()
