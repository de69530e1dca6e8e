"""Random keys: the numbers of a text depend on the text, are uniform, and the same on every device."""

import numpy as np
import torch
from scipy import stats

from steadygaze.core.random_key import RandomKey

ROWS = torch.arange(400)


def test_the_first_numbers_are_those_of_the_published_generator():
    """SplitMix64 seeded with 0 gives 0xE220A8397B1DCDAF first; mix(0 + γ) is that number."""
    from steadygaze.core.random_key import _GOLDEN, _mix

    assert int(_mix(torch.tensor(_GOLDEN))) % 2**64 == 0xE220A8397B1DCDAF


def test_uniform_numbers_are_uniform_and_normal_ones_normal():
    for dtype in (torch.float32, torch.float64):
        uniform = RandomKey(7).uniform(ROWS, 50, dtype=dtype)
        assert uniform.dtype == dtype
        assert stats.kstest(uniform.flatten().numpy(), "uniform").pvalue > 0.01
        assert stats.kstest(RandomKey(7).normal(ROWS, 50, dtype=dtype).flatten().numpy(), "norm").pvalue > 0.01


def test_neighbors_in_every_direction_are_unrelated():
    values = RandomKey(3).uniform(ROWS, 300, dtype=torch.float64).numpy()
    later = RandomKey(3).child(1).uniform(ROWS, 300, dtype=torch.float64).numpy()
    for numbers, other in ((values[1:], values[:-1]), (values[:, 1:], values[:, :-1]), (values, later)):
        assert abs(np.corrcoef(numbers.ravel(), other.ravel())[0, 1]) < 0.02


def test_what_a_row_draws_depends_neither_on_its_company_nor_on_padding():
    wide = RandomKey(5).uniform(torch.tensor([9, 2, 7]), 6, 4)
    alone = RandomKey(5).uniform(torch.tensor([2]), 3, 4)
    assert torch.equal(wide[1:2, :3], alone)
    assert not torch.equal(wide[0], wide[1])


def test_the_same_key_draws_the_same_again_and_another_key_draws_something_else():
    assert torch.equal(RandomKey(1).normal(ROWS, 3), RandomKey(1).normal(ROWS, 3))
    assert RandomKey(1).child(2) == RandomKey(1).child(2)
    assert len({RandomKey(1), *(RandomKey(1).child(*parts) for parts in ((1,), (2,), (1, 2), (2, 1)))}) == 5


def test_one_is_never_drawn_and_the_normal_is_finite():
    assert RandomKey(0).uniform(torch.arange(20_000), 50).max() < 1
    assert RandomKey(0).normal(torch.arange(20_000), 50).isfinite().all()


def test_half_precision_draws_are_finite_and_those_of_single_precision_rounded():
    for half in (torch.bfloat16, torch.float16):
        assert RandomKey(0).normal(torch.arange(20_000), 5, dtype=half).isfinite().all()
        assert torch.equal(RandomKey(0).uniform(ROWS, 5, dtype=half), RandomKey(0).uniform(ROWS, 5).to(half))


def test_scramble_is_the_published_mixing_of_number_and_key_by_python_alone():
    def mixed(number: int, key: int | None) -> int:
        own = 0 if key is None else mixed(key, None)
        z = ((number ^ own) + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    numbers = torch.tensor([[0, 1, -1], [2**62, -(2**63), 12345]])
    for key in (0, 1, 2**40 + 3):
        result = RandomKey(key).scramble(numbers)
        assert result.dtype == torch.int64
        assert [[number % 2**64 for number in row] for row in result.tolist()] == [
            [mixed(number % 2**64, key) for number in row] for row in numbers.tolist()
        ]


def test_scramble_leaves_its_numbers_alone_and_never_makes_one_of_two():
    numbers = torch.arange(-50_000, 50_000)
    before = numbers.clone()
    result = RandomKey(1).scramble(numbers)
    assert numbers.equal(before)
    assert len(result.unique()) == len(numbers)
    assert not result.equal(RandomKey(2).scramble(numbers))
    bits = (result.unsqueeze(-1) >> torch.arange(64)) & 1
    assert (bits.double().mean(0) - 0.5).abs().max() < 5 * 0.5 / len(numbers) ** 0.5


def test_no_row_of_one_key_draws_what_another_row_of_another_key_draws():
    rows = torch.arange(50)
    drawn = torch.cat([RandomKey(key).uniform(rows, 4, dtype=torch.float64) for key in range(50)])
    assert len(drawn.unique(dim=0)) == len(drawn)
