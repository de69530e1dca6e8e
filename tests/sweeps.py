"""Sweeps over parameters: three tiers of the cases of one test function with the mark `sweep`.

- `make test` runs representatives.  They satisfy each-choice coverage (Ammann and Offutt, Introduction to Software
  Testing, 2016, ch. 6): every value of every parameter is in one of them.
- `make test-slow` runs cases that, with the representatives, satisfy pair-wise coverage: every pair of values of two
  parameters is in one of them.  They get the mark `slow`.  Most faults need one or two values (Kuhn, Wallace and Gallo,
  IEEE TSE 30(6), 2004), so these two tiers find almost all.
- `make test-all` also runs the rest.  They get the mark `exhaustive`, and `slow`, so `-m "not slow"` leaves them out.

`sweep(strength=2)` covers the pairs in `make test`: the rest is exhaustive, as `make test-slow` has no pair to add.
`sweep(keep=1)` is for values that repeat one behavior: only the first case is a representative.  `sweep(keep=("duel",
"lens"))` names the representatives by their ids.  Among the other cases, those that add a pair are slow.
`sweep(slow=4)` and `sweep(slow=("duel", "lens"))` name the cases of `make test-slow` in the same way, where pairs are
more than a behavior needs, as in repetitions with other seeds.
`sweep(split="damage")` counts a value such as "config-empty" of the parameter `damage` as two: "config" and "empty".
"""

import heapq
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import combinations

import pytest

Case = Mapping[str, Hashable]
"""Parameter name -> value."""
Combination = tuple[tuple[str, Hashable], ...]
Keep = int | tuple[str, ...]
"""How many of the first cases, or the ids of cases."""


def mark_tiers(items: Sequence[pytest.Item]) -> None:
    """Add the marks `slow` and `exhaustive` to cases of sweeps, and `slow` to other tests that are exhaustive."""
    groups: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sweep") and hasattr(item, "callspec"):
            groups.setdefault((str(item.path), item.originalname), []).append(item)
    for group in groups.values():
        options, cases = group[0].get_closest_marker("sweep").kwargs, [case_of(item) for item in group]
        ids = [item.callspec.id for item in group]
        stay, pairs = tiers(cases, ids, **{name: value for name, value in options.items() if name != "split"})
        for position, item in enumerate(group):
            if position not in stay | pairs:
                item.add_marker(pytest.mark.exhaustive)
            elif position not in stay:
                item.add_marker(pytest.mark.slow)
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.slow)


def tiers(
    cases: Sequence[Case], ids: Sequence[str], strength: int = 1, keep: Keep | None = None, slow: Keep | None = None
) -> tuple[set[int], set[int]]:
    """Positions of the representatives, and of the cases of `make test-slow`."""
    stay = representatives(cases, strength) if keep is None else kept(keep, ids)
    return stay, representatives(cases, 2, stay) - stay if slow is None else kept(slow, ids) - stay


def kept(keep: Keep, ids: Sequence[str]) -> set[int]:
    """Positions of the first cases, or of those with these ids."""
    if isinstance(keep, int):
        return set(range(min(keep, len(ids))))
    return {position for position, name in enumerate(ids) if name in keep}


def case_of(item: pytest.Function) -> Case:
    """The parameters of a test; a value whose text holds an address is known by its position."""
    spec, mark = item.callspec, item.get_closest_marker("sweep")
    texts = {name: repr(value) for name, value in spec.params.items()}
    case = {name: (name, spec.indices[name]) if " at 0x" in text else text for name, text in texts.items()}
    if (name := mark.kwargs.get("split")) is not None:
        case[name], _, case[f"{name}, second part"] = spec.params[name].partition("-")
    return case


def representatives(cases: Sequence[Case], strength: int = 1, first: Collection[int] = ()) -> set[int]:
    """Positions of cases, `first` among them, that hold every value, or every combination of `strength` values.

    Greedy: the next case adds most combinations, then most pairs of values, and is the first of such.  What a case adds
    only shrinks, so cases wait in a heap by what they last added, and only its top is counted anew.
    """
    wanted, pairs = ([_combinations(case, size) for case in cases] for size in (strength, 2))
    chosen = set(first)
    missing, unseen = (set().union(*parts).difference(*(parts[i] for i in chosen)) for parts in (wanted, pairs))

    def added(position: int) -> tuple[int, int, int]:
        return -len(wanted[position] & missing), -len(pairs[position] & unseen), position

    heap = [added(position) for position in range(len(cases))]
    heapq.heapify(heap)
    while missing:
        best = added(heap[0][2])
        if best > heap[0]:
            heapq.heapreplace(heap, best)
            continue
        chosen.add(best[2])
        missing -= wanted[best[2]]
        unseen -= pairs[best[2]]
    return chosen


def _combinations(case: Case, size: int) -> set[Combination]:
    return set(combinations(sorted(case.items()), min(size, len(case))))
