"""Agreement of two saliencies."""

import pytest
import torch

from steadygaze.core.maths.distributions import kendall, pearson

ALL = torch.ones(1, 4, dtype=torch.bool)


def test_order_and_share_are_different_questions():
    """1 2 3 4 and 1 2 3 100 are in one order (τ = 1) and far from one line.

    Centered: (−1.5, −0.5, 0.5, 1.5) and (−25.5, −24.5, −23.5, 73.5): r = 149 / √(5 · 7205) = 0.7850.
    """
    x, y = torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[1.0, 2, 3, 100]])
    assert kendall(x, y, ALL).item() == 1
    assert pearson(x, y, ALL).item() == pytest.approx(149 / (5 * 7205) ** 0.5, rel=1e-6)


@pytest.mark.parametrize("measure", [pearson, kendall])
def test_opposite_saliencies_disagree_wholly(measure):
    x = torch.tensor([[0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    assert measure(x, -x, ALL).item() == pytest.approx(-1)


@pytest.mark.parametrize("measure", [pearson, kendall])
def test_constant_weights_give_nan_and_can_be_counted(measure):
    """Uniform attention; a text of two words; a text of none; and an informative one."""
    x = torch.tensor([[0.25] * 4, [0.5, 0.5, 0, 0], [0.0] * 4, [0.4, 0.3, 0.2, 0.1]])
    mask = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4, [True] * 4])
    assert measure(x, torch.rand(4, 4), mask).isnan().tolist() == [True, True, True, False]
