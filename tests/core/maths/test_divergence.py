"""Distances between distributions, against SciPy over the real tokens of each row."""

import math

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.stats
import torch
from torch.nn.functional import pad

from steadygaze.core.maths import distributions
from steadygaze.core.maths.distributions import cross_entropy, entropy, jensen_shannon, kl, kl_logits, total_variation

MASK = torch.tensor([[True] * 5, [True, False, True, True, False], [False] * 4 + [True]])
SCIPY = {
    total_variation: lambda p, q: np.abs(p - q).sum() / 2,
    kl: lambda p, q: scipy.stats.entropy(p, q),
    jensen_shannon: lambda p, q: scipy.spatial.distance.jensenshannon(p, q) ** 2,
}


def random_distributions(count: int = 2) -> list[torch.Tensor]:
    return [distributions.softmax(2 * torch.randn(3, 5, dtype=torch.float64), MASK) for _ in range(count)]


@pytest.mark.parametrize("distance", SCIPY)
def test_a_distance_is_scipys_over_the_real_tokens(distance):
    p, q = random_distributions()
    expected = [SCIPY[distance](a[real].numpy(), b[real].numpy()) for a, b, real in zip(p, q, MASK, strict=True)]
    np.testing.assert_allclose(distance(p, q, MASK), expected, rtol=1e-12, atol=1e-15)


def test_the_values_of_two_small_distributions():
    """p = (½, ½, 0), q = (¼, ¼, ½):  TV = ½(¼ + ¼ + ½) = ½;  KL(p‖q) = ln 2;  H(p) = ln 2.

    m = (⅜, ⅜, ¼):  KL(p‖m) = ln(4/3);  KL(q‖m) = ½ ln(2/3) + ½ ln 2 = ½ ln(4/3);  JSD = ¾ ln(4/3).
    """
    p, q, mask = torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([[0.25, 0.25, 0.5]]), torch.ones(1, 3, dtype=torch.bool)
    assert total_variation(p, q, mask).item() == 0.5
    assert kl(p, q, mask).item() == pytest.approx(math.log(2), rel=1e-6)
    assert entropy(p, mask).item() == pytest.approx(math.log(2), rel=1e-6)
    assert jensen_shannon(p, q, mask).item() == pytest.approx(0.75 * math.log(4 / 3), rel=1e-6)


def test_disjoint_distributions_are_as_far_apart_as_can_be_and_equal_ones_not_at_all():
    p, q = torch.tensor([[1.0, 0.0], [0.3, 0.7]]), torch.tensor([[0.0, 1.0], [0.3, 0.7]])
    mask = torch.ones(2, 2, dtype=torch.bool)
    assert total_variation(p, q, mask).tolist() == [1.0, 0.0]
    assert jensen_shannon(p, q, mask).tolist() == pytest.approx([math.log(2), 0.0])
    assert kl(p, q, mask)[0].isfinite()
    assert kl(p, q, mask)[0] > 80
    assert kl(p, q, mask)[1] == 0


def test_no_distance_rounds_below_nothing():
    """In float32, without the floor, some of these come out at −3e-8."""
    p = torch.rand(4000, 30).softmax(-1)
    q = (p * (1 + 1e-4 * torch.randn_like(p))).abs()
    q = q / q.sum(-1, keepdim=True)
    mask = torch.ones_like(p, dtype=torch.bool)
    assert jensen_shannon(p, q, mask).min() >= 0
    m = (p + q) / 2
    assert ((kl(p, m, mask) + kl(q, m, mask)) / 2).min() < 0


@pytest.mark.parametrize("distance", SCIPY)
def test_what_is_masked_changes_neither_value_nor_gradient(distance):
    p, q = random_distributions()
    value = distance(p, q, MASK)
    dirty = [pad(x.masked_fill(~MASK, torch.nan), (0, 3), value=0.7).requires_grad_() for x in (p, q)]
    again = distance(*dirty, pad(MASK, (0, 3)))
    torch.testing.assert_close(again, value, rtol=1e-14, atol=0)
    for gradient in torch.autograd.grad(again.sum(), dirty):
        assert gradient.isfinite().all()
        assert not gradient[~pad(MASK, (0, 3))].any()


@pytest.mark.parametrize("distance", SCIPY)
def test_the_gradient_through_a_softmax_is_right_and_finite_on_exact_zeros(distance):
    scores = [torch.randn(3, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(
        lambda a, b: distance(distributions.softmax(a, MASK), distributions.softmax(b, MASK), MASK), scores
    )
    p, q = torch.tensor([[1.0, 0.0]], requires_grad=True), torch.tensor([[0.0, 1.0]], requires_grad=True)
    gradients = torch.autograd.grad(distance(p, q, torch.ones(1, 2, dtype=torch.bool)).sum(), (p, q))
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("distance", SCIPY)
def test_a_batch_is_its_examples_and_leading_dimensions_are_free(distance):
    p, q = random_distributions()
    value = distance(p, q, MASK)
    alone = torch.cat([distance(p[i : i + 1], q[i : i + 1], MASK[i : i + 1]) for i in range(3)])
    # Sums of other shapes can round in another way.
    torch.testing.assert_close(alone, value, rtol=0, atol=1e-12)
    torch.testing.assert_close(distance(p[None], q[None], MASK[None]), value[None], rtol=0, atol=1e-12)


def test_entropy_is_scipys_and_none_of_a_sure_thing_is_plain_zero():
    (p,) = random_distributions(1)
    expected = [scipy.stats.entropy(row[real].numpy()) for row, real in zip(p, MASK, strict=True)]
    np.testing.assert_allclose(entropy(p, MASK), expected, rtol=1e-12, atol=1e-15)
    assert str(entropy(torch.tensor([[1.0, 0.0]]), torch.tensor([[True, True]])).item()) == "0.0"


def test_cross_entropy_is_torchs_with_soft_targets_and_kl_is_what_exceeds_the_targets_entropy():
    target, logits = torch.rand(6, 4, dtype=torch.float64).softmax(-1), torch.randn(6, 4, dtype=torch.float64)
    every = torch.ones_like(target, dtype=torch.bool)
    result = cross_entropy(target, logits)
    torch.testing.assert_close(result, torch.nn.functional.cross_entropy(logits, target, reduction="none"))
    torch.testing.assert_close(kl_logits(target, logits), result - entropy(target, every))
    torch.testing.assert_close(kl_logits(target, logits), kl(target, logits.softmax(-1), every))
    torch.testing.assert_close(kl_logits(logits.softmax(-1), logits), torch.zeros(6, dtype=torch.float64))


def test_a_target_of_exactly_nothing_or_all_has_a_finite_divergence_and_gradient():
    """t = (1, 0), z = (0, 0):  KL = −ln ½ = ln 2.  At z = (−200, 200) softmax is 0 in float32, and KL still 400."""
    target = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    logits = torch.tensor([[0.0, 0.0], [-200.0, 200.0]], requires_grad=True)
    value = kl_logits(target, logits)
    assert value.tolist() == pytest.approx([math.log(2), 400.0])
    assert all(g.isfinite().all() for g in torch.autograd.grad(value.sum(), (target, logits)))
