"""Sparsemax and 1.5-entmax, against their definition solved slowly.

p = [(α−1)s − τ]₊^(1/(α−1)),   τ such that Σp = 1
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from steadygaze.models.attention_layers import Entmax15, Sparsemax

MAPS = [(Sparsemax, 2.0), (Entmax15, 1.5)]


def bisected(scores: np.ndarray, alpha: float) -> np.ndarray:
    """τ lies between max−1, where the highest alone makes 1 or more, and max, where nothing is left."""
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
