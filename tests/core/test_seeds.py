"""Seeds: one random stream for each purpose."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from steadygaze.core.random_key import derive_seed, forked_generators, generator_states, set_generator_states

PARTS = st.lists(st.integers(0, 2**40), min_size=1, max_size=4)


@given(PARTS)
def test_a_derived_seed_is_one_that_every_generator_takes(parts: list[int]) -> None:
    assert 0 <= derive_seed(*parts) < 2**31
    assert derive_seed(*parts) == derive_seed(*parts)


def test_derived_seeds_do_not_change() -> None:
    """Saved models name the seeds that they were trained with."""
    expected = [917752063, 1417063493, 1860276006, 153813223, 595780456]
    assert [derive_seed(*parts) for parts in ((0,), (0, 0), (0, 1), (1, 0), (7, 0, 1))] == expected


def test_purposes_do_not_share_a_stream() -> None:
    seeds = {derive_seed(seed, visits, purpose) for seed in range(20) for visits in range(5) for purpose in range(5)}
    seeds |= {derive_seed(seed, visits) for seed in range(20) for visits in range(5)}
    assert len(seeds) == 600


def test_what_is_drawn_inside_is_not_seen_outside() -> None:
    with forked_generators():
        torch.manual_seed(1)
        torch.rand(5)
    first = torch.rand(3)
    torch.manual_seed(0)  # as the test began
    assert torch.equal(torch.rand(3), first)


def test_generators_go_on_from_where_they_were() -> None:
    states = generator_states()
    drawn = torch.rand(2)
    assert not torch.equal(torch.rand(2), drawn)
    set_generator_states(states)
    assert torch.equal(torch.rand(2), drawn)
