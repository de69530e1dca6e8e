"""Gradient ascent stays in its ball, finds what is known in closed form, and leaves nothing behind."""

import pytest
import torch
from torch import Tensor, nn

from contract.tiny import assert_close
from steadygaze.perturbations.gradient_ascent import ascend

NORM = pytest.mark.parametrize("norm", ["l2", "linf"])
ROUNDING = 1e-12


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def length(delta: Tensor, norm: str) -> Tensor:
    return torch.linalg.vector_norm(delta.flatten(1), torch.inf if norm == "linf" else 2, dim=1)


@NORM
@pytest.mark.parametrize("radius", [1e-3, 0.3, torch.tensor([0.1, 0.7, 2.0], dtype=torch.float64)])
def test_no_entry_moves_further_than_the_radius_where_entries_are_negative_or_above_one(norm, radius):
    """A clamp of the point to [0, 1] would move −3 by 3 and 5 by 4."""
    center = torch.tensor([[-3.0, 5.0, 0.5], [-0.2, 1.7, -9.0], [0.0, 1.0, 30.0]], dtype=torch.float64)
    result = ascend(
        lambda x: (x.sin() * 7).sum(-1), draw(3, 3), center=center, radius=radius, norm=norm, steps=9, step_size=4.0
    )
    assert (length(result, norm) <= torch.as_tensor(radius) * (1 + ROUNDING)).all()
    assert (length(result, norm) > 0).all()


@NORM
def test_a_linear_loss_is_raised_to_its_exact_maximum(norm):
    """max g·δ is R·Σ|g| at R·sign(g) (ℓ∞), and R·‖g‖₂ at R·g/‖g‖₂ (ℓ2), from any start: the steps add up to 2R.

    By hand, g = (3, −4), R = ½: (½, −½) and (0.3, −0.4).  An ℓ2 path along the rim closes in on the maximum slowly.
    """
    g = torch.tensor([[3.0, -4.0]], dtype=torch.float64)
    settings = {"center": torch.zeros(1, 2, dtype=torch.float64), "radius": 0.5, "norm": norm}
    result = ascend(lambda x: (g * x).sum(-1), draw(1, 2), steps=200, step_size=0.2, **settings)
    expected = [[0.5, -0.5]] if norm == "linf" else [[0.3, -0.4]]
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-9)


@NORM
def test_one_step_of_the_radius_from_zero_is_the_fast_gradient_method(norm):
    g = draw(4, 6)
    settings = {"center": draw(4, 6), "radius": 0.3, "norm": norm, "steps": 1, "step_size": 0.3}
    result = ascend(lambda x: (g * x).sum(-1), torch.zeros_like(g), **settings)
    assert_close(result, 0.3 * (g.sign() if norm == "linf" else g / g.norm(dim=-1, keepdim=True)))


@NORM
def test_the_usual_step_is_twice_the_radius_over_the_steps(norm):
    """From the far side of the ball, P steps of 2R/P just reach the other; one fewer would not."""
    g = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    settings = {"center": torch.zeros_like(g), "radius": torch.tensor([0.5, 2.0], dtype=torch.float64), "norm": norm}
    start = -g * torch.tensor([[0.5], [2.0]], dtype=torch.float64)
    assert_close(ascend(lambda x: (g * x).sum(-1), start, steps=8, **settings), -start)
    assert_close(ascend(lambda x: (g * x).sum(-1), start, steps=7, step_size=0.125, **settings)[0], -start[0] * 0.75)


@NORM
def test_it_raises_a_loss_that_is_not_linear_and_leaves_no_gradients(norm):
    layer = nn.Linear(5, 3).double()
    center, label = draw(6, 5), torch.tensor([0, 1, 2, 0, 1, 2])

    def loss(x: Tensor) -> Tensor:
        return nn.functional.cross_entropy(layer(x).tanh(), label, reduction="none")

    for center_is_trained in (False, True):
        center.requires_grad_(center_is_trained)
        result = ascend(loss, 0.01 * draw(6, 5), center=center, radius=0.2, norm=norm, steps=10)
        assert (loss(center + result) > loss(center)).all()
        assert [value.grad for value in (layer.weight, layer.bias, center)] == [None] * 3
        assert not result.requires_grad


@NORM
def test_it_works_where_gradients_are_off(norm):
    settings = {"center": draw(1, 4), "radius": 1.0, "norm": norm, "steps": 1, "step_size": 1.0}
    with torch.no_grad():
        result = ascend(lambda x: x.sum(-1), torch.zeros(1, 4).double(), **settings)
        assert not torch.is_grad_enabled()
    assert_close(result, torch.full((1, 4), 1.0 if norm == "linf" else 0.5, dtype=torch.float64))


@NORM
def test_nothing_moves_where_it_is_not_to_and_padding_changes_nothing(norm):
    """(B,T,E) with a mask (B,T): a token moves or stays as a whole, and one that stays has no part in the length."""
    center, start, g = draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 3)
    keep = torch.tensor([[True, True, False, False], [True, True, True, True]])
    settings = {"radius": 0.2, "norm": norm, "steps": 5}
    result = ascend(lambda x: (g * x).sum((1, 2)).exp(), start, center=center, keep=keep, **settings)
    assert (result[~keep] == 0).all()
    assert (result[keep] != 0).all()
    short = ascend(lambda x: (g[:1, :2] * x).sum((1, 2)).exp(), start[:1, :2], center=center[:1, :2], **settings)
    assert_close(result[:1, :2], short)


@NORM
def test_each_example_is_searched_on_its_own(norm):
    center, start, g = draw(3, 4), draw(3, 4), draw(3, 4)
    settings = {"radius": 0.2, "norm": norm, "steps": 6, "best": True}
    whole = ascend(lambda x: (g * x).sum(-1).sin(), start, center=center, **settings)
    parts = [
        ascend(lambda x, i=i: (g[i : i + 1] * x).sum(-1).sin(), start[i : i + 1], center=center[i : i + 1], **settings)
        for i in range(3)
    ]
    assert_close(torch.cat(parts), whole)


@NORM
def test_best_keeps_the_highest_point_of_the_way_start_and_end_among_them(norm):
    """A loss that wiggles faster than the steps: the last point is not the best, and every point was seen."""
    center, seen = torch.zeros(5, 2, dtype=torch.float64), []

    def loss(x: Tensor) -> Tensor:
        seen.append((40 * x).sin().sum(-1).detach())
        return (40 * x).sin().sum(-1)

    result = ascend(loss, draw(5, 2), center=center, radius=0.5, norm=norm, steps=7, best=True)
    assert len(seen) == 8
    highest = torch.stack(seen).amax(0)
    assert_close(loss(result), highest)
    assert (highest > seen[7]).any(), "otherwise keeping the last would have done"


def test_without_a_step_the_start_is_brought_into_the_ball():
    start = torch.tensor([[3.0, -4.0], [0.1, 0.0]], dtype=torch.float64)
    settings = {"center": torch.zeros_like(start), "radius": 1.0, "norm": "l2", "steps": 0}
    result = ascend(lambda x: x.sum(-1), start, **settings)
    assert_close(result, torch.tensor([[0.6, -0.8], [0.1, 0.0]], dtype=torch.float64))


def test_an_example_whose_loss_is_flat_stays_where_it_began():
    start = torch.tensor([[0.1, 0.2]], dtype=torch.float64)
    for norm in ("l2", "linf"):
        result = ascend(lambda x: (0 * x).sum(-1), start, center=start, radius=1.0, norm=norm, steps=3, best=True)
        assert_close(result, start)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_loss_that_does_not_know_the_point_leaves_the_start_where_it_is(elsewhere):
    other = draw(3).requires_grad_(elsewhere)
    start = 0.1 * draw(3, 2)
    result = ascend(lambda _: other * 2, start, center=draw(3, 2), radius=1.0, norm="linf", steps=3, best=True)
    assert result.equal(start)
