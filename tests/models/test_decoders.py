"""Decoders on numbers worked by hand, and the linearity that the certificate rests on."""

import math

import pytest
import torch

from steadygaze.core.types import Encoded
from steadygaze.models.attention_layers import MLP, Linear, context

HIDDEN = torch.tensor([[[1.0, 2.0], [3.0, -2.0], [9.0, 9.0]]], dtype=torch.float64)  # (1,3,2)
WEIGHTS = torch.tensor([[0.75, 0.25, 0.0]], dtype=torch.float64)
QUESTION = torch.tensor([[2.0, -1.0]], dtype=torch.float64)


def fill(parameter: torch.Tensor, values: list[list[float]] | list[float]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


def test_the_context_worked_by_hand():
    """0.75·(1, 2) + 0.25·(3, −2) = (1.5, 1)"""
    assert context(Encoded(HIDDEN), WEIGHTS).tolist() == [[1.5, 1.0]]


@pytest.mark.parametrize("pair", [False, True])
def test_linear_worked_by_hand(pair):
    """Θ = ((2, 0), (−2, 1)), b = (1, 0.5): Θc + b = (4, −1.5).  Θ_q = ((1, 1), (0, 3)): Θ_q q = (1, −3)."""
    decoder = Linear(2, 2, pair).double()
    fill(decoder.output.weight, [[2.0, 0.0], [-2.0, 1.0]])
    fill(decoder.output.bias, [1.0, 0.5])
    if pair:
        fill(decoder.ask.weight, [[1.0, 1.0], [0.0, 3.0]])
    result = decoder(Encoded(HIDDEN, QUESTION if pair else None), WEIGHTS)
    assert result.tolist() == ([[5.0, -4.5]] if pair else [[4.0, -1.5]])


@pytest.mark.parametrize("pair", [False, True])
def test_mlp_worked_by_hand(pair):
    """W = (1, −1), b = 0.25: Wc + b = 0.75.  W_q = (1, 3): W_q q = −1.  Θ = (2, −4), a = (0.5, 1)."""
    decoder = MLP(2, 2, pair).double()
    fill(decoder.inner.weight, [[1.0, -1.0]])
    fill(decoder.inner.bias, [0.25])
    fill(decoder.output.weight, [[2.0], [-4.0]])
    fill(decoder.output.bias, [0.5, 1.0])
    if pair:
        fill(decoder.ask.weight, [[1.0, 3.0]])
    inner = math.tanh(-0.25 if pair else 0.75)
    result = decoder(Encoded(HIDDEN, QUESTION if pair else None), WEIGHTS)
    torch.testing.assert_close(result, torch.tensor([[2 * inner + 0.5, 1 - 4 * inner]], dtype=torch.float64))


@pytest.mark.parametrize("pair", [False, True])
def test_linear_is_linear_in_the_weights(pair):
    """z(w + δ) = z(w) + Aᵀδ with A = HΘᵀ: row t of A is what one unit of attention on token t adds to each logit."""
    decoder = Linear(6, 3, pair).double()
    hidden, weights, shift = (torch.randn(*shape, dtype=torch.float64) for shape in ((4, 5, 6), (4, 5), (4, 5)))
    encoded = Encoded(hidden, torch.randn(4, 6, dtype=torch.float64) if pair else None)
    per_token = hidden @ decoder.output.weight.T  # A, (B,T,C)
    expected = decoder(encoded, weights) + torch.einsum("btc,bt->bc", per_token, shift)
    torch.testing.assert_close(decoder(encoded, weights + shift), expected, rtol=1e-12, atol=1e-12)


def test_mlp_is_not_linear_in_the_weights():
    decoder, encoded = MLP(2, 2, False).double(), Encoded(HIDDEN)
    middle = decoder(encoded, 2 * WEIGHTS) / 2 + decoder(encoded, 0 * WEIGHTS) / 2
    assert (middle - decoder(encoded, WEIGHTS)).abs().max() > 1e-3
