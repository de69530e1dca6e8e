"""Masked softmax, shares, mean and maximum, against loops over the real tokens of each row."""

import numpy as np
import pytest
import scipy.special
import torch

from steadygaze.core.maths import distributions

MASK = torch.tensor([[True, True, True, True], [True, False, True, False], [False] * 4, [False, False, False, True]])
POOLS = {distributions.mean: lambda rows: rows.mean(0), distributions.maximum: lambda rows: rows.amax(0)}


def test_softmax_is_scipys_over_the_real_tokens():
    scores = 5 * torch.randn(4, 4, dtype=torch.float64)
    result = distributions.softmax(scores, MASK)
    for row, real, weights in zip(scores.numpy(), MASK.numpy(), result.numpy(), strict=True):
        assert not weights[~real].any()
        if real.any():
            np.testing.assert_allclose(weights[real], scipy.special.softmax(row[real]), rtol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_softmax_does_not_see_a_masked_score_however_high(dtype):
    highest = torch.finfo(dtype).max
    scores = torch.tensor([[0.0, highest, 0.0], [-highest / 2, highest, -highest / 2]], dtype=dtype)
    assert distributions.softmax(scores, torch.tensor([[True, False, True]] * 2)).tolist() == [[0.5, 0.0, 0.5]] * 2


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_is_what_a_loop_over_the_real_tokens_makes(pool):
    values = torch.randn(4, 4, 3, dtype=torch.float64)
    for row, real, result in zip(values, MASK, pool(values, MASK), strict=True):
        expected = POOLS[pool](row[real]) if real.any() else torch.zeros(3, dtype=torch.float64)
        torch.testing.assert_close(result, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("function", [distributions.softmax, distributions.mean, distributions.maximum])
def test_the_gradient_is_right_and_zero_on_what_is_masked(function):
    shape = (4, 4) if function is distributions.softmax else (4, 4, 3)
    values = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: function(v, MASK), values)
    (gradient,) = torch.autograd.grad(function(values, MASK).square().sum(), values)
    assert not gradient[~MASK].any()
    assert gradient[0].any()


@pytest.mark.parametrize("function", [distributions.mean, distributions.maximum])
def test_what_is_masked_may_even_be_infinite_or_no_number(function):
    values = torch.tensor([[[1.0], [torch.inf], [3.0], [torch.nan]]], requires_grad=True)
    pooled = function(values, MASK[1:2])
    assert pooled.tolist() == ([[2.0]] if function is distributions.mean else [[3.0]])
    pooled.sum().backward()
    assert values.grad.isfinite().all()


def test_leading_dimensions_are_free():
    values = torch.randn(2, 4, 4, 3, dtype=torch.float64)
    mask = MASK.expand(2, 4, 4)
    assert torch.equal(distributions.maximum(values, mask)[1], distributions.maximum(values[1], MASK))
    pairs = (
        (distributions.mean(values, mask)[1], distributions.mean(values[1], MASK)),
        (distributions.softmax(values[..., 0], mask)[1], distributions.softmax(values[1, ..., 0], MASK)),
    )
    for whole, part in pairs:  # sums of other shapes can round in another way
        torch.testing.assert_close(whole, part, rtol=0, atol=1e-12)


def test_shares_are_over_the_words_alone_whatever_their_sign_and_even_where_none_has_any():
    looked = torch.tensor([[0.5, -0.3, 0.1, 0.1], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    mask = torch.tensor([[False, True, True, False], [False, True, True, False], [False] * 4])
    expected = torch.tensor([[0.0, 0.75, 0.25, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0] * 4])
    torch.testing.assert_close(distributions.normalize(looked, mask), expected)
    looked.requires_grad_()
    distributions.normalize(looked, mask).square().sum().backward()
    assert looked.grad.isfinite().all()
