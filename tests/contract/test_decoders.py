"""What every decoder promises: logits from the attended context alone, whatever stands where there is no weight."""

import pytest
import torch

from contract.tiny import CLASSES, assert_close
from steadygaze.core.types import Encoded
from steadygaze.models.attention_layers import DECODERS

DECODER = pytest.mark.parametrize("name", DECODERS)
PAIR = pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])


def random_inputs(pair: bool) -> tuple[Encoded, torch.Tensor]:
    question = torch.randn(2, 6, dtype=torch.float64) if pair else None
    weights = torch.tensor([[0.2, 0.5, 0.3, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    return Encoded(torch.randn(2, 4, 6, dtype=torch.float64), question), weights


@PAIR
@DECODER
def test_logits_do_not_see_a_token_without_weight(name, pair):
    decoder, (encoded, weights) = DECODERS[name](6, CLASSES, pair).double(), random_inputs(pair)
    logits = decoder(encoded, weights)
    assert logits.shape == (2, CLASSES)
    hidden = encoded.hidden.masked_fill(weights.eq(0).unsqueeze(-1), 1e6)
    assert_close(decoder(Encoded(hidden, encoded.question), weights), logits)


@PAIR
@DECODER
def test_its_gradient_is_right(name, pair):
    decoder, (encoded, weights) = DECODERS[name](6, CLASSES, pair).double(), random_inputs(pair)
    inputs = [weights, encoded.hidden, *([encoded.question] if pair else [])]
    for value in inputs:
        value.requires_grad_()
    assert torch.autograd.gradcheck(lambda weights, *states: decoder(Encoded(*states), weights), inputs)


@DECODER
def test_for_a_pair_the_question_moves_the_logits_even_of_a_text_without_words(name):
    decoder, (encoded, weights) = DECODERS[name](6, CLASSES, True).double(), random_inputs(True)
    other = Encoded(encoded.hidden, encoded.question + 1)
    assert (decoder(encoded, 0 * weights) - decoder(other, 0 * weights)).abs().min() > 1e-6


@DECODER
def test_weights_of_another_precision_are_taken(name):
    decoder, (encoded, weights) = DECODERS[name](6, CLASSES, False).double(), random_inputs(False)
    torch.testing.assert_close(decoder(encoded, weights.float()), decoder(encoded, weights), rtol=1e-6, atol=1e-6)
