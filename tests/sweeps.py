"""Sweeps over parameters: `make test` runs representatives, `make test-all` and CI run every case.

A test function with the mark `sweep` keeps a few of its cases; all others get the mark `slow`.  The choice satisfies
each-choice coverage (Ammann and Offutt, Introduction to Software Testing, 2016, ch. 6): every value of every parameter
is in a case that stays.  `sweep(strength=2)` satisfies pair-wise coverage: every pair of values is in one that stays.
`sweep(keep=1)` is for values that repeat one behavior: only the first case stays.  `sweep(keep=("duel", "lens"))`
names the cases that stay by their ids.
`sweep(split="damage")` counts a value such as "config-empty" of the parameter `damage` as two: "config" and "empty".
"""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import pytest

Case = Mapping[str, Hashable]
"""Parameter name -> value."""


def mark_slow(items: Sequence[pytest.Item]) -> None:
    """Add the mark `slow` to the cases of each sweep that are not representatives."""
    groups: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sweep") and hasattr(item, "callspec"):
            groups.setdefault((str(item.path), item.originalname), []).append(item)
    for group in groups.values():
        options, cases = group[0].get_closest_marker("sweep").kwargs, [case_of(item) for item in group]
        chosen = representatives(cases, options.get("strength", 1))
        if "keep" in options:
            chosen = kept(options["keep"], [item.callspec.id for item in group])
        for position, item in enumerate(group):
            if position not in chosen:
                item.add_marker(pytest.mark.slow)


def kept(keep: int | tuple[str, ...], ids: Sequence[str]) -> set[int]:
    """Positions of the first cases, or of those with these ids."""
    if isinstance(keep, int):
        return set(range(keep))
    return {position for position, name in enumerate(ids) if name in keep}


def case_of(item: pytest.Function) -> Case:
    """The parameters of a test; a value whose text holds an address is known by its position."""
    spec, mark = item.callspec, item.get_closest_marker("sweep")
    texts = {name: repr(value) for name, value in spec.params.items()}
    case = {name: (name, spec.indices[name]) if " at 0x" in text else text for name, text in texts.items()}
    if (name := mark.kwargs.get("split")) is not None:
        case[name], _, case[f"{name}, second part"] = spec.params[name].partition("-")
    return case


def representatives(cases: Sequence[Case], strength: int = 1) -> set[int]:
    """Positions of cases that together hold every value, or every combination of `strength` values.

    Greedy: the next case adds most combinations, then most pairs of values, and is the first of such.
    """
    wanted, pairs = ([_combinations(case, size) for case in cases] for size in (strength, 2))
    missing, seen, chosen = set().union(*wanted), set(), set()
    while missing:
        best = max(range(len(cases)), key=lambda i: (len(wanted[i] & missing), len(pairs[i] - seen), -i))
        chosen.add(best)
        missing -= wanted[best]
        seen |= pairs[best]
    return chosen


def _combinations(case: Case, size: int) -> set[tuple[tuple[str, Hashable], ...]]:
    return set(combinations(sorted(case.items()), min(size, len(case))))
