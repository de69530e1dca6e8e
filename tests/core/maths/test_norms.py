"""Unit vectors, projections and dual norms, against NumPy and against the definition: the best of many points."""

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import dual_norm, project, unit_vector

MASK = torch.tensor([[True, True, True, True], [True, False, True, False], [False] * 4])
NORMS = {"l2": 2, "linf": torch.inf}


def lengths(delta: torch.Tensor, norm: str) -> torch.Tensor:
    return torch.stack([row.flatten().norm(NORMS[norm]) for row in delta])


def test_unit_divides_each_example_by_its_own_length_over_all_other_dimensions():
    """Row 0: ‖(3, 4)‖ = 5.  Row 1: ‖(0, −2)‖ = 2.  Row 2 is zero and stays so."""
    g = torch.tensor([[[3.0], [4.0]], [[0.0], [-2.0]], [[0.0], [0.0]]])
    torch.testing.assert_close(unit_vector(g).squeeze(-1), torch.tensor([[0.6, 0.8], [0.0, -1.0], [0.0, 0.0]]))


def test_the_unit_of_a_gradient_too_small_to_be_squared_is_still_a_direction():
    small_and_large = torch.tensor([[3e-30, 4e-30], [3e30, 4e30]])
    torch.testing.assert_close(unit_vector(small_and_large), torch.tensor([[0.6, 0.8]] * 2))


def test_the_gradient_of_unit_is_right_and_finite_at_zero():
    g = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(unit_vector, g)
    zero = torch.zeros(1, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(unit_vector(zero).sum(), zero)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("norm", NORMS)
def test_a_point_inside_stays_exactly_and_one_outside_comes_to_the_surface(norm):
    delta = torch.randn(5, 3, 2, dtype=torch.float64) * torch.tensor([0.01, 0.1, 1, 10, 0]).reshape(5, 1, 1)
    radius = torch.tensor([0.5, 0.1, 0.7, 2.0, 0.0], dtype=torch.float64)
    projected = project(delta, radius, norm)
    before, after = lengths(delta, norm), lengths(projected, norm)
    assert ((before < radius).any(), (before > radius).any()) == (True, True)
    torch.testing.assert_close(after, torch.minimum(before, radius), rtol=1e-14, atol=0)
    assert torch.equal(projected[before <= radius], delta[before <= radius])


@pytest.mark.parametrize("norm", NORMS)
def test_no_point_of_the_ball_is_nearer_than_the_projection(norm):
    delta = 3 * torch.randn(1, 4, dtype=torch.float64)
    nearest = project(delta, 0.8, norm)
    others = project(2 * torch.randn(5000, 4, dtype=torch.float64), 0.8, norm)
    assert (others - delta).norm(dim=1).min() >= (nearest - delta).norm()


@pytest.mark.parametrize("norm", NORMS)
def test_a_radius_for_all_is_the_same_radius_for_each(norm):
    delta = torch.randn(4, 6, dtype=torch.float64)
    radius = torch.full((4,), 0.3, dtype=torch.float64)
    torch.testing.assert_close(project(delta, 0.3, norm), project(delta, radius, norm), rtol=0, atol=1e-12)
    torch.testing.assert_close(project(delta, 0.3, norm)[1:2], project(delta[1:2], 0.3, norm), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_the_dual_norm_is_the_best_inner_product_in_the_unit_ball(norm):
    """From above by 5000 points of the ball, and reached by the one that theory names."""
    a = torch.randn(3, 4, dtype=torch.float64)
    best = {"l2": unit_vector(a.masked_fill(~MASK, 0.0)), "linf": a.sign() * MASK}[norm]
    torch.testing.assert_close(dual_norm(a, norm, MASK), (a * best).sum(-1), rtol=1e-14, atol=0)
    points = project(2 * torch.randn(5000, 4, dtype=torch.float64), 1.0, norm).unsqueeze(1) * MASK
    assert ((points * a).sum(-1) <= dual_norm(a, norm, MASK) + 1e-12).all()


@pytest.mark.parametrize(("norm", "order"), [("l2", 2), ("linf", 1)])
def test_the_dual_norm_is_numpys_over_the_real_tokens(norm, order):
    a = torch.randn(3, 4, dtype=torch.float64)
    expected = [np.linalg.norm(row[real].numpy(), order) for row, real in zip(a, MASK, strict=True)]
    np.testing.assert_allclose(dual_norm(a, norm, MASK), expected, rtol=1e-14)
    dirty = pad(a.masked_fill(~MASK, torch.nan), (0, 2), value=torch.inf)
    np.testing.assert_allclose(dual_norm(dirty, norm, pad(MASK, (0, 2))), expected, rtol=1e-14)


@pytest.mark.parametrize("norm", NORMS)
def test_the_gradient_of_the_dual_norm_is_finite_even_at_zero_and_none_on_padding(norm):
    a = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: dual_norm(a, norm, MASK), a)
    zero = torch.zeros(3, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(dual_norm(zero, norm, MASK).sum(), zero)
    assert gradient.isfinite().all()
    assert not gradient[~MASK].any()


@pytest.mark.parametrize(
    "call", [lambda: project(torch.ones(1, 2), 1.0, "l1"), lambda: dual_norm(MASK * 1.0, "l1", MASK)]
)
def test_another_norm_is_refused(call):
    with pytest.raises(ValueError, match="norm is 'l1'; it must be 'l2' or 'linf'"):
        call()
