"""Every measure in the catalogue keeps its word: bounds, symmetry, neutral value, padding, batch, a slow reference.

What a measure takes is read from the names of its arguments.
"""

import inspect
import pkgutil
from collections.abc import Callable
from importlib import import_module

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from contract.slow import SIZE, SLOW
from steadygaze.audit import measure as room
from steadygaze.audit.catalogue import MEASURES
from steadygaze.maths import masked

B, T, C, K = 40, 12, 3, 4
PER_TOKEN = {"p", "q", "x", "y", "w", "weights", "chosen", "evidence", "first", "mask"}
PER_EXAMPLE = [name for name, measure in MEASURES.items() if measure.per_example]
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-6}  # a quotient of counts is float32


def arguments(name: str) -> list[str]:
    return list(inspect.signature(MEASURES[name].fn).parameters)


def inputs(name: str) -> dict[str, Tensor | int]:
    """Random arguments: texts of 0 to T tokens with unread ones between, some without anything chosen or marked."""
    names = arguments(name)
    mask = torch.rand(B, T) < torch.rand(B, 1)
    mask[0], mask[1] = True, False

    def attention() -> Tensor:
        return masked.softmax(2 * torch.randn(B, T, dtype=torch.float64), mask)

    def classes(*shape: int) -> Tensor:
        return (2 * torch.randn(*shape, C, dtype=torch.float64)).softmax(-1)

    some = {a: (torch.rand(B, T) < torch.rand(B, 1)) & mask for a in ("chosen", "evidence", "first")}
    drawn = {
        **{a: attention() if "mask" in names else classes(B) for a in ("p", "q", "x", "y", "w", "weights")},
        **some,
        "full": classes(B),
        **{a: classes(B, K) for a in ("erased", "kept")},
        "probs": classes(B),
        "label": torch.randint(C, (B,)),
        "mask": mask,
        "k": SIZE,
    }
    return {a: drawn[a] for a in names}


def each(given: dict[str, Tensor | int], change: Callable[[Tensor], Tensor]) -> dict[str, Tensor | int]:
    return {a: change(value) if isinstance(value, Tensor) else value for a, value in given.items()}


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING[found.dtype], equal_nan=True)


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_measure_gives_one_number_per_example_within_its_bounds(name):
    value, (low, high) = MEASURES[name].fn(**inputs(name)), MEASURES[name].bounds
    assert value.shape == (B,)
    assert value.is_floating_point()
    told = value[~value.isnan()]
    assert len(told) > B / 2
    assert told.min() >= low
    assert told.max() <= high + 1e-12
    assert told.unique().numel() > 1


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_batch_is_its_examples(name):
    given = inputs(name)
    rows = [MEASURES[name].fn(**each(given, lambda x, i=i: x[i : i + 1])) for i in range(B)]
    assert_same(torch.cat(rows), MEASURES[name].fn(**given))


@pytest.mark.parametrize("name", [name for name in PER_EXAMPLE if "mask" in arguments(name)])
def test_what_is_masked_does_not_count_whatever_it_holds(name):
    given = inputs(name)
    worst = {a: True if x.dtype == torch.bool else torch.nan for a, x in given.items() if isinstance(x, Tensor)}
    mask = pad(given["mask"], (1, 4))
    dirty = {
        a: mask if a == "mask" else pad(x, (1, 4)).masked_fill(~mask, worst[a]) if a in PER_TOKEN else x
        for a, x in given.items()
    }
    assert_same(MEASURES[name].fn(**dirty), MEASURES[name].fn(**given))


@pytest.mark.parametrize("name", [name for name in PER_EXAMPLE if "mask" in arguments(name) and name != "iou-f1"])
def test_the_order_of_the_tokens_does_not_matter(name):
    """But to iou-f1, which is about runs of words."""
    given, order = inputs(name), torch.randperm(T)
    assert_same(MEASURES[name].fn(**each(given, lambda x: x[:, order])), MEASURES[name].fn(**given))


def test_the_order_of_the_tokens_matters_to_runs():
    """{0, 1} against {0, 1, 2} is one run in one; spread to {0, 2} against {0, 1, 2}, neither half is enough alone."""
    measure = MEASURES["iou-f1"].fn
    evidence, mask = torch.tensor([[True, True, True, False]]), torch.ones(1, 4, dtype=torch.bool)
    assert measure(torch.tensor([[True, True, False, False]]), evidence, mask).item() == 1
    assert measure(torch.tensor([[True, False, True, False]]), evidence, mask).item() == 0


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_symmetric_if_and_only_if_it_says_so(name):
    given = inputs(name)
    first, second, *rest = given.values()
    if first.shape != second.shape or first.dtype != second.dtype or arguments(name)[1] == "mask":
        assert not MEASURES[name].symmetric  # the two are different things
        return
    value, swapped = MEASURES[name].fn(first, second, *rest), MEASURES[name].fn(second, first, *rest)
    assert torch.allclose(swapped, value, atol=ROUNDING[value.dtype], equal_nan=True) == MEASURES[name].symmetric


@pytest.mark.parametrize("name", MEASURES)
def test_identical_inputs_score_the_neutral_value(name):
    given = inputs(name)
    first, second = arguments(name)[:2]
    if second in ("mask", "label"):
        assert MEASURES[name].neutral is None
        return
    one = given[second] if first in ("chosen", "weights") else given[first]
    alike = {first: one.double() if first == "weights" else one, second: one}
    if first == "full":
        alike[second] = one.unsqueeze(1).expand(B, K, C)
    value = MEASURES[name].fn(**{**given, **alike})
    if second == "first":
        value = value[one.any(-1)]  # of no weight at all, none is in the first sentence
    told = value[~value.isnan()]
    assert len(told) > B / 2
    assert_same(told, torch.full_like(told, MEASURES[name].neutral))


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_measure_agrees_with_a_slow_one(name):
    given = inputs(name)
    mask = given.get("mask", torch.ones(B, C, dtype=torch.bool))
    shown = {a: x for a, x in given.items() if a not in ("mask", "k")}
    rows = [
        SLOW[name](*(x[i][mask[i]].numpy() if a in PER_TOKEN else x[i].numpy() for a, x in shown.items()))
        for i in range(B)
    ]
    value = MEASURES[name].fn(**given)
    assert_same(value, torch.tensor(rows, dtype=value.dtype))


def test_calibration_agrees_with_a_slow_one_and_does_not_see_the_order_of_examples():
    name = "expected-calibration-error"
    given, order = inputs(name), torch.randperm(B)
    value = MEASURES[name].fn(**given)
    assert value == pytest.approx(SLOW[name](given["probs"].numpy(), given["label"].numpy()), abs=1e-12)
    assert MEASURES[name].fn(**each(given, lambda x: x[order])) == pytest.approx(value, abs=1e-12)
    assert [name for name, measure in MEASURES.items() if not measure.per_example] == [name]


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_leaves_its_arguments_alone(name):
    given = inputs(name)
    before = each(given, Tensor.clone)
    MEASURES[name].fn(**given)
    assert all(torch.equal(x, before[a]) for a, x in given.items() if isinstance(x, Tensor))


def test_nothing_is_forgotten():
    """Every measure has a slow reference and a plain sentence; every file of the room is in the catalogue."""
    assert set(SLOW) == set(MEASURES)
    assert all(measure.about.endswith(".") and measure.cite for measure in MEASURES.values())
    files = {
        module.name: import_module(f"{room.__name__}.{module.name}") for module in pkgutil.iter_modules(room.__path__)
    }
    listed = [measure.fn for measure in MEASURES.values()]
    unlisted = {
        f"{name}.{function}"
        for name, module in files.items()
        for function, value in vars(module).items()
        if inspect.isfunction(value) and not function.startswith("_") and value not in listed
    }
    assert unlisted == {"erasure.aopc", "erasure.drops"}  # the steps of two that are listed
    assert len(listed) == len(set(listed))
