"""Every measure in the catalog keeps its word: bounds, symmetry, neutral value, padding, batch, a slow reference.

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

import steadygaze.properties.measures as room
from contract.slow import RADII, SHARES, SIZE, SLOW, SLOW_SETS
from steadygaze.core.maths import distributions
from steadygaze.properties import all_measures
from steadygaze.properties.measures.faithfulness_measures import LARGEST

B, T, C, K = 40, 12, 3, 4
MANY = 120  # where a class needs twenty different texts
OPTIMUM = {"position-leak": 1e-5}
"""Two optimizers stop at different points near the optimum."""
IDS = {"before", "after", "ids"}
PER_TOKEN = {"p", "q", "x", "y", "w", "weights", "selected", "rationales", "first", "blank", "mask"} | IDS
READINGS = ("reading", "baseline", "missing", "answer", "best_answer", "no_answer", "no_label")
OF_RUNS = ("iou-f1", "selected-spans")
"""Measures about runs of words, which the order of the tokens matters to."""
MEASURES = all_measures()
PER_EXAMPLE = [name for name, measure in MEASURES.items() if measure.per_example]
OF_A_SET = [name for name, measure in MEASURES.items() if not measure.per_example]
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-6}  # a quotient of counts is float32


def arguments(name: str) -> list[str]:
    """But for those with a value of their own: lists of sizes."""
    return [a for a, p in inspect.signature(MEASURES[name].function).parameters.items() if p.default is p.empty]


def slow(name: str) -> Callable[..., float]:
    return (SLOW | SLOW_SETS).get(name) or SLOW[name.partition("/")[0]]


def inputs(name: str) -> dict[str, Tensor | int]:
    """Random arguments: texts of 0 to T tokens with unread ones between, some without anything chosen or marked.

    For a number about equal texts, the first twenty occur twice.
    """
    names = arguments(name)
    many = MANY if "key" in names else B
    mask = torch.rand(many, T) < torch.rand(many, 1)
    mask[0], mask[1] = True, False

    def attention() -> Tensor:
        return distributions.softmax(2 * torch.randn(many, T, dtype=torch.float64), mask)

    def classes(*shape: int) -> Tensor:
        return (2 * torch.randn(*shape, C, dtype=torch.float64)).softmax(-1)

    def probabilities() -> Tensor:
        """Of a whole text, or one for each radius."""
        return classes(many, len(RADII)) if name == "seat-sensitivity" else classes(many)

    some = {a: (torch.rand(many, T) < torch.rand(many, 1)) & mask for a in ("selected", "rationales", "first", "blank")}
    drawn = {
        **{a: attention() if "mask" in names else classes(many) for a in ("p", "q", "x", "y", "w", "weights")},
        **some,
        "full": classes(many),
        **{a: classes(many, K) for a in ("erased", "kept", "changed", "extended", "part_of_top", "part_of_rest")},
        "alone": classes(many),
        "members": torch.arange(K) < torch.randint(1, K + 1, (many, 1)),
        "probs": probabilities(),
        **{a: torch.randint(C, (many,)) for a in ("label", "predicted")},
        **{a: torch.randint(3, (many, T)) for a in IDS},
        **{a: LARGEST * torch.rand(many, len(SHARES), dtype=torch.float64) for a in ("radii", "random_radii")},
        **{a: torch.randn(many, K, dtype=torch.float64).tanh() for a in ("attributed", "drops")},
        "distances": torch.rand(many, K, dtype=torch.float64),
        "agreement": torch.randint(6, 9, (many,)).double() / 8,
        "gap": torch.randint(-1, 2, (many,)).double(),
        "norm": torch.rand(many, dtype=torch.float64),
        **{a: torch.rand(many, dtype=torch.float64) + place for place, a in enumerate(("floor", "own", "best"))},
        **{a: torch.rand(many, dtype=torch.float64) for a in READINGS},
        "key": torch.randperm(many),
        "mask": mask,
        "k": SIZE,
    }
    values = {a: drawn[a] for a in names}
    return each(values, lambda x: torch.cat([x, x[:20]])) if "key" in names else values


def each(inputs: dict[str, Tensor | int], change: Callable[[Tensor], Tensor]) -> dict[str, Tensor | int]:
    return {a: change(value) if isinstance(value, Tensor) else value for a, value in inputs.items()}


def assert_same(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=ROUNDING[actual.dtype], equal_nan=True)


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_measure_gives_one_number_per_example_within_its_bounds(name):
    value, (low, high) = MEASURES[name].function(**inputs(name)), MEASURES[name].bounds
    assert value.shape == (B,)
    assert value.is_floating_point()
    numbers = value[~value.isnan()]
    assert len(numbers) > B / 2
    assert numbers.min() >= low
    assert numbers.max() <= high + 1e-12
    assert numbers.unique().numel() > 1


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_measure_is_a_proportion_if_and_only_if_its_values_are_zero_and_one(name):
    """Its interval is then Wilson's."""
    value = MEASURES[name].function(**inputs(name))
    assert MEASURES[name].proportion == ({*value[~value.isnan()].tolist()} <= {0.0, 1.0})


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_batch_is_its_examples(name):
    values = inputs(name)
    rows = [MEASURES[name].function(**each(values, lambda x, i=i: x[i : i + 1])) for i in range(B)]
    assert_same(torch.cat(rows), MEASURES[name].function(**values))


@pytest.mark.parametrize("name", [name for name in PER_EXAMPLE if "mask" in arguments(name)])
def test_what_is_masked_does_not_count_whatever_it_holds(name):
    values = inputs(name)
    worst = {a: x.dtype == torch.bool or (99 if a in IDS else torch.nan) for a, x in values.items() if a != "k"}
    mask = pad(values["mask"], (1, 4))
    dirty = {
        a: mask if a == "mask" else pad(x, (1, 4)).masked_fill(~mask, worst[a]) if a in PER_TOKEN else x
        for a, x in values.items()
    }
    assert_same(MEASURES[name].function(**dirty), MEASURES[name].function(**values))


@pytest.mark.parametrize("name", [name for name in PER_EXAMPLE if "mask" in arguments(name) and name not in OF_RUNS])
def test_the_order_of_the_tokens_does_not_matter(name):
    values, order = inputs(name), torch.randperm(T)
    assert_same(MEASURES[name].function(**each(values, lambda x: x[:, order])), MEASURES[name].function(**values))


def test_the_order_of_the_tokens_matters_to_runs():
    """{0, 1} against {0, 1, 2} is one run in one; spread to {0, 2} against {0, 1, 2}, neither half is enough alone."""
    measure = MEASURES["iou-f1"].function
    rationales, mask = torch.tensor([[True, True, True, False]]), torch.ones(1, 4, dtype=torch.bool)
    assert measure(torch.tensor([[True, True, False, False]]), rationales, mask).item() == 1
    assert measure(torch.tensor([[True, False, True, False]]), rationales, mask).item() == 0


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_symmetric_if_and_only_if_it_declares_it(name):
    values = inputs(name)
    first, second, *rest = [*values.values(), None]
    if second is None or first.shape != second.shape or first.dtype != second.dtype or arguments(name)[1] == "mask":
        assert not MEASURES[name].symmetric  # the two are different things
        return
    ways = (first, second, *rest[:-1]), (second, first, *rest[:-1])
    value, swapped = (torch.as_tensor(MEASURES[name].function(*way), dtype=torch.float64) for way in ways)
    assert torch.allclose(swapped, value, atol=ROUNDING[torch.float32], equal_nan=True) == MEASURES[name].symmetric


@pytest.mark.parametrize("name", MEASURES)
def test_identical_inputs_score_the_neutral_value(name):
    values = inputs(name)
    first, second = [*arguments(name), ""][:2]
    if MEASURES[name].identical is None:
        # Nothing to be identical to, or a difference from what even weights, a random order or the rationales scores.
        assert second in ("mask", "label", "predicted", "norm", "gap", "floor", "") or name in (
            "default-mass/above-share",
            "first-sentence-share/above-rationale",
            "average-precision/above-random",
            "stripe-x",
        )
        return
    shared = values[second] if first in ("selected", "weights") else values[first]
    alike = {first: shared.double() if first == "weights" else shared, second: shared}
    if first in ("full", "alone"):
        alike[second] = shared.unsqueeze(1).expand(B, K, C)
    value = torch.as_tensor(MEASURES[name].function(**{**values, **alike}))
    if second in ("first", "blank"):
        value = value[shared.any(-1)]  # of no weight at all, none is in the first sentence
    numbers = value[~value.isnan()]
    assert len(numbers) > B / 2 or name in OF_A_SET
    assert_same(numbers, torch.full_like(numbers, MEASURES[name].identical))


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_a_measure_agrees_with_a_slow_one(name):
    values = inputs(name)
    mask = values.get("mask", torch.ones(B, C, dtype=torch.bool))
    shown = {a: x for a, x in values.items() if a not in ("mask", "k")}
    rows = [
        slow(name)(*(x[i][mask[i]].numpy() if a in PER_TOKEN else x[i].numpy() for a, x in shown.items()))
        for i in range(B)
    ]
    value = MEASURES[name].function(**values)
    assert_same(value, torch.tensor(rows, dtype=value.dtype))


@pytest.mark.parametrize("name", OF_A_SET)
def test_a_number_of_a_whole_set_agrees_with_a_slow_one_and_sees_no_order_and_no_padding(name):
    values = inputs(name)
    order = torch.randperm(len(next(iter(values.values()))))
    value, (low, high) = MEASURES[name].function(**values), MEASURES[name].bounds
    assert isinstance(value, float)
    assert low <= value <= high
    assert value == pytest.approx(slow(name)(*(x.numpy() for x in values.values())), abs=OPTIMUM.get(name, 1e-9))
    assert MEASURES[name].function(**each(values, lambda x: x[order])) == pytest.approx(value, abs=1e-12)
    wide = {a: pad(x, (0, 3)) if a in PER_TOKEN else x for a, x in values.items()}
    assert MEASURES[name].function(**wide) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_leaves_its_arguments_alone(name):
    values = inputs(name)
    before = each(values, Tensor.clone)
    MEASURES[name].function(**values)
    assert all(torch.equal(x, before[a]) for a, x in values.items() if isinstance(x, Tensor))


def test_every_measure_has_a_reference_a_sentence_and_a_citation():
    """Every measure has a slow reference and a plain sentence; every file of the package is in the catalog."""
    assert set(SLOW) <= set(PER_EXAMPLE)
    assert set(SLOW_SETS) == set(OF_A_SET)
    assert all(slow(name) for name in MEASURES)
    assert all(measure.sentence.endswith(".") and measure.citation for measure in MEASURES.values())
    files = {
        module.name: import_module(f"{room.__name__}.{module.name}") for module in pkgutil.iter_modules(room.__path__)
    }
    listed = [measure.function for measure in MEASURES.values()]
    unlisted = {
        f"{name}.{function}"
        for name, module in files.items()
        for function, value in vars(module).items()
        if inspect.isfunction(value) and not function.startswith("_") and value not in listed
        if value.__module__ == module.__name__ or function in getattr(module, "__all__", ())
    }
    steps = {  # of those that are listed
        "correctness_measures": "calibration_gaps set_scores",
        "faithfulness_measures": "aopc probability_drops",
        "plausibility_measures": "micro random_auprc random_average_precision random_mass random_tally rates tally",
        "label_readers": "balance_classes read_labels shape_features shown_words word_scores",
        "measure": "measures_of",
        "stability_measures": "has_weight is_even",
        "shortcut_measures": "position_leaks position_features profile label_predictable distinct_texts",
    }
    assert unlisted == {f"{file}.{step}" for file, names in steps.items() for step in names.split()}
    whole = [measure.function for name, measure in MEASURES.items() if "/" not in name]
    assert len(whole) == len(set(whole))
