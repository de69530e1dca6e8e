"""Scorers, attention maps and decoders on numbers worked by hand, and against their definition solved slowly."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.tiny import batch, classifier, split
from steadygaze.core.types import Encoded
from steadygaze.models.attention_layers import (
    MLP,
    Additive,
    Entmax15,
    Linear,
    ScaledDot,
    Softmax,
    Sparsemax,
    Uniform,
    context,
)

HIDDEN = torch.tensor([[[1.0, 2.0], [0.0, -1.0]], [[3.0, 0.0], [1.0, 1.0]]], dtype=torch.float64)  # (2,2,2)
QUESTION = torch.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=torch.float64)  # (2,2)


def fill(parameter: torch.Tensor, values: list[list[float]] | list[float]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(values))


@pytest.mark.parametrize(("pair", "inner"), [(False, ([3, -2], [5, 2])), (True, ([4, -1], [3.5, 0.5]))])
def test_additive_worked_by_hand(pair, inner):
    """v = 3, W = (2, 1), b = −1, U = (1, −1).

    W h + b: 2+2−1 = 3, 0−1−1 = −2; 6+0−1 = 5, 2+1−1 = 2; then 3·tanh of each.
    U q: 1 for the first row, 0.5 − 2 = −1.5 for the second, added to every W h + b of that row.
    """
    score = Additive(2, pair).double()
    fill(score.project.weight, [[2.0, 1.0]])
    fill(score.project.bias, [-1.0])
    fill(score.weigh.weight, [[3.0]])
    if pair:
        fill(score.ask.weight, [[1.0, -1.0]])
    expected = 3 * torch.tensor(inner, dtype=torch.float64).tanh()
    torch.testing.assert_close(score(Encoded(HIDDEN, QUESTION if pair else None)), expected)


@pytest.mark.parametrize(("pair", "products"), [(False, ([-3, 2], [3, -1])), (True, ([4, -2], [6, 3]))])
def test_scaled_dot_worked_by_hand(pair, products):
    """k = (1, −2): h·k = 1−4 = −3, 2; 3, 1−2 = −1.  W = ((0, 1), (2, 0)): k = W q = (0, 2) and (2, 1).  Over √2."""
    score = ScaledDot(2, pair).double()
    if pair:
        fill(score.key.weight, [[0.0, 1.0], [2.0, 0.0]])
    else:
        fill(score.key, [1.0, -2.0])
    expected = torch.tensor(products, dtype=torch.float64) / math.sqrt(2)
    torch.testing.assert_close(score(Encoded(HIDDEN, QUESTION if pair else None)), expected)


def test_softmax_worked_by_hand():
    """exp(log 1), exp(log 3), exp(log 4) over their sum 8; the masked score would have had most of it."""
    scores = torch.tensor([[math.log(1), math.log(3), 50.0, math.log(4)]], dtype=torch.float64)
    weights = Softmax()(scores, torch.tensor([[True, True, False, True]]))
    torch.testing.assert_close(weights, torch.tensor([[1 / 8, 3 / 8, 0.0, 4 / 8]], dtype=torch.float64))


MAPS = [(Sparsemax, 2.0), (Entmax15, 1.5)]


def bisected(scores: np.ndarray, alpha: float) -> np.ndarray:
    """p = [(α−1)s − τ]₊^(1/(α−1)), τ such that Σp = 1.

    τ lies between max−1, where the highest alone makes 1 or more, and max, where nothing is left.
    """
    scaled = (alpha - 1) * scores
    low, high = scaled.max() - 1, scaled.max()
    for _ in range(100):
        middle = (low + high) / 2
        total = (np.maximum(scaled - middle, 0) ** (1 / (alpha - 1))).sum()
        low, high = (middle, high) if total >= 1 else (low, middle)
    return np.maximum(scaled - low, 0) ** (1 / (alpha - 1))


@pytest.mark.parametrize(("attention", "alpha"), MAPS)
@settings(max_examples=40, deadline=None)
@given(
    scores=st.lists(st.floats(-8, 8), min_size=1, max_size=9),
    hidden=st.lists(st.floats(-50, 50), max_size=3),
)
def test_weights_are_those_that_bisection_finds(attention, alpha, scores, hidden):
    mask = torch.tensor([[True] * len(scores) + [False] * len(hidden)])
    result = attention()(torch.tensor([scores + hidden], dtype=torch.float64), mask)[0]
    np.testing.assert_allclose(result[: len(scores)].numpy(), bisected(np.array(scores), alpha), atol=1e-12)
    assert not result[len(scores) :].any()


def test_sparsemax_worked_by_hand():
    """Support {1.0, 0.6}: τ = (1.0 + 0.6 − 1)/2 = 0.3, which 0.2 does not reach: p = (0.7, 0.3, 0)."""
    weights = Sparsemax()(torch.tensor([[1.0, 9.0, 0.6, 0.2]]).double(), torch.tensor([[True, False, True, True]]))
    torch.testing.assert_close(weights, torch.tensor([[0.7, 0.0, 0.3, 0.0]]).double())


def test_entmax_worked_by_hand():
    """s/2 = (0.6, 0.4, −1); the first two make (0.6−τ)² + (0.4−τ)² = 1 with τ = 0.5 − √0.49: p = (0.64, 0.36, 0)."""
    weights = Entmax15()(torch.tensor([[1.2, 0.8, -2.0]]).double(), torch.ones(1, 3, dtype=torch.bool))
    torch.testing.assert_close(weights, torch.tensor([[0.64, 0.36, 0.0]]).double())


@pytest.mark.parametrize("attention", [Sparsemax, Entmax15])
def test_most_of_many_words_get_exactly_nothing(attention):
    weights = attention()(3 * torch.randn(20, 60), torch.ones(20, 60, dtype=torch.bool))
    assert (weights == 0).float().mean() > 0.8


@pytest.mark.parametrize("attention", [Sparsemax, Entmax15])
def test_half_precision_is_worked_in_single(attention):
    scores = torch.tensor([[0.0, 0.25, 0.5, 1.0]])
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert torch.equal(attention()(scores.half(), mask), attention()(scores, mask))


def test_uniform_worked_by_hand():
    """Four tokens, of which three are words: a third each, whatever their scores; none where there is no word."""
    scores = torch.tensor([[5.0, -7.0, 50.0, 0.0], [1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    weights = Uniform()(scores, torch.tensor([[True, True, False, True], [False] * 4]))
    torch.testing.assert_close(weights, torch.tensor([[1 / 3, 1 / 3, 0, 1 / 3], [0.0] * 4], dtype=torch.float64))


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan")])
def test_scores_that_are_not_finite_do_not_change_uniform_weights(score):
    weights = Uniform()(torch.tensor([[score, 0.0]]), torch.ones(1, 2, dtype=torch.bool))
    assert weights.tolist() == [[0.5, 0.5]]


def test_under_uniform_attention_scores_have_a_slope_of_zero_and_a_scorer_learns_nothing():
    model, texts = classifier("bilstm", attention="uniform"), batch(split())
    parameters = list(model.scorer.parameters())
    slopes = torch.autograd.grad(model(texts).logits.square().sum(), parameters)
    assert not any(slope.any() for slope in slopes)
    assert (model(texts).weights * texts.mask.sum(-1, keepdim=True) - texts.mask.double()).abs().max() < 1e-15


STATES = torch.tensor([[[1.0, 2.0], [3.0, -2.0], [9.0, 9.0]]], dtype=torch.float64)  # (1,3,2)
WEIGHTS = torch.tensor([[0.75, 0.25, 0.0]], dtype=torch.float64)
QUERY = torch.tensor([[2.0, -1.0]], dtype=torch.float64)


def test_the_context_worked_by_hand():
    """0.75·(1, 2) + 0.25·(3, −2) = (1.5, 1)"""
    assert context(Encoded(STATES), WEIGHTS).tolist() == [[1.5, 1.0]]


@pytest.mark.parametrize("pair", [False, True])
def test_linear_worked_by_hand(pair):
    """Θ = ((2, 0), (−2, 1)), b = (1, 0.5): Θc + b = (4, −1.5).  Θ_q = ((1, 1), (0, 3)): Θ_q q = (1, −3)."""
    decoder = Linear(2, 2, pair).double()
    fill(decoder.output.weight, [[2.0, 0.0], [-2.0, 1.0]])
    fill(decoder.output.bias, [1.0, 0.5])
    if pair:
        fill(decoder.ask.weight, [[1.0, 1.0], [0.0, 3.0]])
    result = decoder(Encoded(STATES, QUERY if pair else None), WEIGHTS)
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
    result = decoder(Encoded(STATES, QUERY if pair else None), WEIGHTS)
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
    decoder, encoded = MLP(2, 2, False).double(), Encoded(STATES)
    middle = decoder(encoded, 2 * WEIGHTS) / 2 + decoder(encoded, 0 * WEIGHTS) / 2
    assert (middle - decoder(encoded, WEIGHTS)).abs().max() > 1e-3
