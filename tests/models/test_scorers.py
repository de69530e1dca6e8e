"""Scores on numbers worked by hand."""

import math

import torch

from steadygaze.core.types import Encoded
from steadygaze.models.attention_layers import Additive, ScaledDot

HIDDEN = torch.tensor([[[1.0, 2.0], [0.0, -1.0]], [[3.0, 0.0], [1.0, 1.0]]], dtype=torch.float64)  # (2,2,2)
QUESTION = torch.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=torch.float64)  # (2,2)


def fill(parameter: torch.Tensor, values: list[list[float]] | list[float]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


def additive(pair: bool) -> Additive:
    """v = 3, W = (2, 1), b = −1, U = (1, −1)"""
    score = Additive(2, pair).double()
    fill(score.project.weight, [[2.0, 1.0]])
    fill(score.project.bias, [-1.0])
    fill(score.weigh.weight, [[3.0]])
    if pair:
        fill(score.ask.weight, [[1.0, -1.0]])
    return score


def test_additive_worked_by_hand():
    """W h + b: 2+2−1 = 3, 0−1−1 = −2; 6+0−1 = 5, 2+1−1 = 2; then 3·tanh of each."""
    expected = [[3 * math.tanh(x) for x in row] for row in ([3, -2], [5, 2])]
    torch.testing.assert_close(additive(False)(Encoded(HIDDEN)), torch.tensor(expected, dtype=torch.float64))


def test_additive_with_a_question_worked_by_hand():
    """U q: 1 for the first row, 0.5 − 2 = −1.5 for the second, added to every W h + b of that row."""
    expected = [[3 * math.tanh(x) for x in row] for row in ([4, -1], [3.5, 0.5])]
    result = additive(True)(Encoded(HIDDEN, QUESTION))
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64))


def test_scaled_dot_worked_by_hand():
    """k = (1, −2): h·k = 1−4 = −3, 2; 3, 1−2 = −1; over √2."""
    score = ScaledDot(2, False).double()
    fill(score.key, [1.0, -2.0])
    expected = torch.tensor([[-3.0, 2.0], [3.0, -1.0]], dtype=torch.float64) / math.sqrt(2)
    torch.testing.assert_close(score(Encoded(HIDDEN)), expected)


def test_scaled_dot_with_a_question_worked_by_hand():
    """W = ((0, 1), (2, 0)): k = W q = (0, 2) and (2, 1); h·k = 4, −2; 6, 3; over √2."""
    score = ScaledDot(2, True).double()
    fill(score.key.weight, [[0.0, 1.0], [2.0, 0.0]])
    expected = torch.tensor([[4.0, -2.0], [6.0, 3.0]], dtype=torch.float64) / math.sqrt(2)
    torch.testing.assert_close(score(Encoded(HIDDEN, QUESTION)), expected)
