"""Chance: a text's numbers are its own, evenly spread, and the same everywhere."""

import numpy as np
import torch
from scipy import stats

from steadygaze.maths.chance import Chance

ROWS = torch.arange(400)


def test_the_first_numbers_are_those_of_the_published_generator():
    """SplitMix64 seeded with 0 gives 0xE220A8397B1DCDAF first; mix(0 + γ) is that number."""
    from steadygaze.maths.chance import _GOLDEN, _mix

    assert int(_mix(torch.tensor(_GOLDEN))) % 2**64 == 0xE220A8397B1DCDAF


def test_uniform_numbers_are_uniform_and_normal_ones_normal():
    for dtype in (torch.float32, torch.float64):
        uniform = Chance(7).uniform(ROWS, 50, dtype=dtype)
        assert uniform.dtype == dtype
        assert stats.kstest(uniform.flatten().numpy(), "uniform").pvalue > 0.01
        assert stats.kstest(Chance(7).normal(ROWS, 50, dtype=dtype).flatten().numpy(), "norm").pvalue > 0.01


def test_neighbours_in_every_direction_are_unrelated():
    values = Chance(3).uniform(ROWS, 300, dtype=torch.float64).numpy()
    later = Chance(3).child(1).uniform(ROWS, 300, dtype=torch.float64).numpy()
    for one, other in ((values[1:], values[:-1]), (values[:, 1:], values[:, :-1]), (values, later)):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.02


def test_what_a_row_draws_depends_neither_on_its_company_nor_on_padding():
    wide = Chance(5).uniform(torch.tensor([9, 2, 7]), 6, 4)
    alone = Chance(5).uniform(torch.tensor([2]), 3, 4)
    assert torch.equal(wide[1:2, :3], alone)
    assert not torch.equal(wide[0], wide[1])


def test_the_same_key_draws_the_same_again_and_another_key_draws_something_else():
    assert torch.equal(Chance(1).normal(ROWS, 3), Chance(1).normal(ROWS, 3))
    assert Chance(1).child(2) == Chance(1).child(2)
    assert len({Chance(1), Chance(1).child(1), Chance(1).child(2), Chance(1).child(1, 2), Chance(1).child(2, 1)}) == 5


def test_one_is_never_drawn_and_the_normal_is_finite():
    assert Chance(0).uniform(torch.arange(20_000), 50).max() < 1
    assert Chance(0).normal(torch.arange(20_000), 50).isfinite().all()
