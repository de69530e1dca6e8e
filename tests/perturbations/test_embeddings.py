"""Units of a small step, the slope of a loss, and the way to other words, on numbers worked out by hand."""

import pytest
import torch
from torch import nn

from contract.tiny import assert_close
from steadygaze.perturbations.gradient_ascent import (
    LOSS_SCALE,
    embedding_norm,
    embedding_std,
    loss_gradient,
    toward_neighbors,
)

VECTORS = torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, -1.0]], dtype=torch.float64)
"""Padding, and two words."""


def test_sigma_and_length_by_hand():
    """Entries 3, 4, 0, −1: mean 3/2, squares 26/4 − 9/4 = 17/4, σ = √17/2.  Lengths 5 and 1: mean 3.

    The row of zeros is padding and counts in neither.
    """
    assert embedding_std(VECTORS).item() == pytest.approx(17**0.5 / 2, abs=1e-12)
    assert embedding_norm(VECTORS).item() == pytest.approx(3, abs=1e-12)
    assert_close(embedding_std(VECTORS[1:]), embedding_std(VECTORS))


def test_units_scale_with_the_vectors_and_are_constants():
    trained = nn.Parameter(VECTORS.clone())
    assert_close(embedding_std(7 * trained), 7 * embedding_std(VECTORS))
    assert_close(embedding_norm(7 * trained), 7 * embedding_norm(VECTORS))
    assert not embedding_std(trained).requires_grad
    assert not embedding_norm(trained).requires_grad


def test_slope_by_hand_and_nothing_outside_the_mask():
    """ℓ_b = Σ_t t·|x_bt|²/2, t counted from 1: g = t·x, times the factor.  The second text has one word."""
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]], dtype=torch.float64).requires_grad_()
    mask = torch.tensor([[True, True], [True, False]])
    losses = (x.square().sum(-1) * torch.tensor([1, 2])).sum(-1) / 2
    g = loss_gradient(losses, x, mask)
    expected = [[[1.0, 2.0], [6.0, 8.0]], [[5.0, 6.0], [0.0, 0.0]]]
    assert_close(g, LOSS_SCALE * torch.tensor(expected, dtype=torch.float64))
    assert not g.requires_grad
    assert x.grad is None
    losses.sum().backward()  # the graph is still there


def test_the_slope_of_a_faint_loss_survives_half_precision():
    """1e-8 is below the smallest number a half can hold (6e-8); 1024 times that is not."""
    x = torch.ones(1, 1, 1, dtype=torch.float16, requires_grad=True)
    assert loss_gradient((x.sum((1, 2)).float() * 1e-6).half() * 0.01, x, torch.ones(1, 1, dtype=torch.bool)).item() > 0


def test_toward_neighbors_by_hand():
    """x = (1, 1), neighbors (4, 1) and (1, 3): d̃ = (1, 0) and (0, 1).  g = (3, 4): α = (3/5, 4/5) = d.

    With neighbors (4, 1) and (9, 1), both along (1, 0): α = (1, 1)/√2, d = (√2, 0).
    With (1, 3) and (1, −1): d̃ = (0, 1) and (0, −1), rise 4 and −4, α = (1, −1)/√2, d = (0, √2): away from a word too.

    As printed, with one norm over the text: G = (3, 4), (3, 3), (4, −4), ‖G‖² = 25 + 18 + 32 = 75, and
    d = (3, 4)/√75, (6, 0)/√75, (0, 8)/√75: each word keeps the size of its gradient.
    """
    g, x = (torch.tensor([[row] * 3], dtype=torch.float64) for row in ((3.0, 4.0), (1.0, 1.0)))
    near = torch.tensor([[[[4, 1], [1, 3]], [[4, 1], [9, 1]], [[1, 3], [1, -1]]]], dtype=torch.float64)
    each = torch.tensor([[[0.6, 0.8], [2**0.5, 0], [0, 2**0.5]]], dtype=torch.float64)
    printed = torch.tensor([[[3, 4], [6, 0], [0, 8]]], dtype=torch.float64) / 75**0.5
    for per_word, expected in ((True, each), (False, printed)):
        assert_close(toward_neighbors(g, x, near, per_word=per_word), expected)


@pytest.mark.parametrize("per_word", [False, True])
@pytest.mark.parametrize("scale", [1e-30, 1e-14, 1e20])
def test_only_the_direction_of_the_slope_counts(scale, per_word):
    """A text that is predicted with certainty has a slope of 1e-14 and less."""
    g, x, near = (torch.randn(2, 3, *rest, dtype=torch.float64) for rest in ((4,), (4,), (5, 4)))
    small, plain = (toward_neighbors(size * g, x, near, per_word=per_word) for size in (scale, 1.0))
    assert_close(small, plain)


@pytest.mark.parametrize("per_word", [False, True])
def test_there_is_no_way_to_oneself_nor_without_neighbors_nor_along_no_slope(per_word):
    g, x = torch.randn(1, 2, 4, dtype=torch.float64), torch.randn(1, 2, 4, dtype=torch.float64)
    nobody, others = (torch.randn(1, 2, many, 4, dtype=torch.float64) for many in (0, 3))
    for slope_, near in ((g, x.unsqueeze(2)), (g, nobody), (0 * g, others)):
        assert (toward_neighbors(slope_, x, near, per_word=per_word) == 0).all()
