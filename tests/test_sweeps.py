"""Sweeps: `make test` runs every value of every parameter, `make test-slow` every pair, `make test-all` every case."""

from itertools import combinations, product

import pytest

from sweeps import kept, mark_tiers, representatives, tiers

GRID = [
    {"encoder": encoder, "pair": pair, "seed": seed} for encoder, pair, seed in product("abcd", (False, True), "01")
]


def test_every_value_of_every_parameter_stays() -> None:
    chosen = [GRID[position] for position in representatives(GRID)]
    for name in GRID[0]:
        assert {case[name] for case in chosen} == {case[name] for case in GRID}
    assert len(chosen) == 4, "as many as the longest parameter has values"


def test_the_representatives_vary_all_parameters_at_once() -> None:
    chosen = [GRID[position] for position in representatives(GRID)]
    assert len({(case["pair"], case["seed"]) for case in chosen}) == 4


def test_strength_two_keeps_every_pair_of_values() -> None:
    chosen = [GRID[position] for position in representatives(GRID, strength=2)]
    for setting, other in combinations(GRID[0], 2):
        assert {(case[setting], case[other]) for case in chosen} == {(case[setting], case[other]) for case in GRID}
    assert len(chosen) == 8


def test_the_slow_cases_add_the_pairs_that_the_representatives_lack() -> None:
    stay, slow = tiers(GRID, [])
    assert stay == representatives(GRID)
    assert not stay & slow
    both = [GRID[position] for position in stay | slow]
    for setting, other in combinations(GRID[0], 2):
        assert {(case[setting], case[other]) for case in both} == {(case[setting], case[other]) for case in GRID}
    assert len(both) < len(GRID), "the others are exhaustive"


def test_a_sweep_of_strength_two_and_a_sweep_of_one_parameter_have_two_tiers() -> None:
    assert tiers(GRID, [], strength=2)[1] == set(), "`make test` runs every pair"
    assert tiers([{"name": name} for name in "abc"], [*"abc"], keep=1) == ({0}, {1, 2}), "every value is a pair's"


def test_the_slow_cases_are_named_by_their_number_or_by_their_ids() -> None:
    cases = [{"seed": seed} for seed in range(6)]
    assert tiers(cases, [*"abcdef"], keep=1, slow=3) == ({0}, {1, 2})
    assert tiers(cases, [*"abcdef"], keep=0, slow=("f", "b")) == (set(), {1, 5})


def test_the_cases_are_those_that_counting_every_case_anew_chooses() -> None:
    grid = [{"a": a, "b": b, "c": (a * b) % 3, "d": a > b} for a, b in product(range(7), range(6))]
    pairs = [set(combinations(sorted(case.items()), 2)) for case in grid]
    missing, chosen = set().union(*pairs), set()
    while missing:
        best = max(range(len(grid)), key=lambda i: (len(pairs[i] & missing), -i))
        chosen.add(best)
        missing -= pairs[best]
    assert representatives(grid, 2) == chosen


def test_without_a_value_in_common_every_case_stays() -> None:
    cases = [{"name": name} for name in "abc"]
    assert representatives(cases) == {0, 1, 2}


def test_cases_are_kept_by_their_number_or_by_their_ids() -> None:
    assert kept(2, "abc") == {0, 1}
    assert kept(4, "abc") == {0, 1, 2}
    assert kept(("c", "a"), "abc") == {0, 2}
    assert kept(("c", "a"), "bc") == {1}, "the others are not collected"


def test_the_other_cases_of_a_sweep_are_slow_and_of_other_tests_none_is(
    request: pytest.FixtureRequest,
) -> None:
    """Of this very module: four of eight cases of the sweep below stay, and all of this file's other tests."""
    items = [item for item in request.session.items if item.path == request.path]
    sweep = [item for item in items if getattr(item, "originalname", "") == "test_a_sweep"]
    assert not [item for item in items if not item.get_closest_marker("sweep") and item.get_closest_marker("slow")]
    stay = [item.callspec.params for item in sweep if not item.get_closest_marker("slow")]
    assert {params["encoder"] for params in stay} == {*"abcd"}
    assert {params["pair"] for params in stay} == {False, True}
    assert len(stay) == 4


def test_the_cases_without_a_pair_of_their_own_are_exhaustive_and_slow(request: pytest.FixtureRequest) -> None:
    items = [item for item in request.node.parent.collect() if item.originalname == "test_a_larger_sweep"]
    mark_tiers(items)
    marks = [{mark.name for mark in item.iter_markers()} & {"slow", "exhaustive"} for item in items]
    assert all(marked in (set(), {"slow"}, {"slow", "exhaustive"}) for marked in marks)
    assert [marks.count(marked) for marked in (set(), {"slow"}, {"slow", "exhaustive"})] == [2, 3, 3]


@pytest.mark.sweep
@pytest.mark.parametrize("encoder", ["average", "bigru"])
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_larger_sweep(encoder: str, pair: bool, seed: int) -> None:
    """Collected for the test above."""


def test_a_split_parameter_counts_as_two(request: pytest.FixtureRequest) -> None:
    sweep = [item for item in request.session.items if getattr(item, "originalname", "") == "test_a_split_sweep"]
    stay = {item.callspec.params["damage"] for item in sweep if not item.get_closest_marker("slow")}
    assert {damage.partition("-")[0] for damage in stay} == {"config", "weights", "alone"}
    assert {damage.partition("-")[2] for damage in stay} == {"empty", "cut", ""}
    assert len(stay) == 3


@pytest.mark.sweep(split="damage")
@pytest.mark.parametrize("damage", ["config-empty", "config-cut", "weights-empty", "weights-cut", "alone"])
def test_a_split_sweep(damage: str) -> None:
    assert damage


@pytest.mark.sweep
@pytest.mark.parametrize("encoder", [*"abcd"])
@pytest.mark.parametrize("pair", [False, True])
def test_a_sweep(encoder: str, pair: bool) -> None:
    assert encoder.isalpha()
    assert pair in (False, True)


def test_only_the_first_cases_of_a_sweep_with_keep_stay(request: pytest.FixtureRequest) -> None:
    sweep = [item for item in request.session.items if getattr(item, "originalname", "") == "test_a_sweep_with_keep"]
    assert [item.callspec.params["seed"] for item in sweep if not item.get_closest_marker("slow")] == [0, 1]


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("seed", range(4))
def test_a_sweep_with_keep(seed: int) -> None:
    """Collected for the test above."""
