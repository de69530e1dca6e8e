"""What every score promises: one number per token, from that token's hidden state (and the question) alone."""

import pytest
import torch

from steadygaze.core.types import Encoded
from steadygaze.models.attention_layers import SCORES

SCORE = pytest.mark.parametrize("name", SCORES)
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def encoded(pair: bool, rows: int = 3, tokens: int = 4, size: int = 6) -> Encoded:
    question = torch.randn(rows, size, dtype=torch.float64) if pair else None
    return Encoded(torch.randn(rows, tokens, size, dtype=torch.float64), question)


@PAIR
@SCORE
def test_a_score_depends_on_its_own_token_and_the_question_of_its_row_alone(name, pair):
    score, states = SCORES[name](6, pair).double(), encoded(pair)
    hidden = states.hidden.requires_grad_()
    inputs = (hidden,) if states.question is None else (hidden, states.question.requires_grad_())
    scores = score(states)
    assert scores.shape == (3, 4)
    gradient, *question_gradients = torch.autograd.grad(scores[1, 2], inputs)
    assert gradient[1, 2].any()
    gradient[1, 2] = 0
    assert not gradient.any()
    for value in question_gradients:
        assert value[1].any()
        assert not value[[0, 2]].any()


@PAIR
@SCORE
def test_its_gradient_is_right(name, pair):
    score, states = SCORES[name](6, pair).double(), encoded(pair, rows=2, tokens=2)
    inputs = [states.hidden.requires_grad_(), *([states.question.requires_grad_()] if pair else [])]
    assert torch.autograd.gradcheck(lambda *values: score(Encoded(*values)), inputs)


@SCORE
@pytest.mark.parametrize("size", [2, 3])
def test_it_can_be_as_small_as_the_smallest_encoder(name, size):
    assert SCORES[name](size, True)(Encoded(torch.ones(1, 2, size), torch.ones(1, size))).isfinite().all()
