"""Agreement with exact Shapley values: hand-worked numbers, another algorithm, and what it does not depend on."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, strategies

from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.maths.distributions import ordered_differences
from steadygaze.explainers.kernel_shap import KernelShap
from steadygaze.properties.measures.faithfulness_measures import relative_score
from steadygaze.properties.protocols.shapley_agreement import NAME, shapley_agreement
from steadygaze.results.audit_config import ProbeConfig, Runtime
from steadygaze.results.note import NoteCode
from studies.oracles.explainers import explainers
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world

SAME_ORDER = ("exact", "exact × 1000", "exact + 5", "exact, cubed")
NAMES = (*SAME_ORDER, "exact, reversed", "constant", "dense", "one random word")
SHORT = Shape(4, 9, density=0.4)


def findings(model: str = "negation", names=NAMES, shape: Shape = SHORT, batch_size: int = 256, **config):
    here, known = world("short", 5, 60, shape), explainers()
    chosen = {name: known[name] if name in known else KernelShap() for name in names}
    runtime = Runtime(batch_size=batch_size)
    case = prepare(adapter(here, model), here.examples, chosen, ProbeConfig(**config), runtime=runtime).case
    return {finding.explainer: finding for finding in shapley_agreement(case)}


def value(finding) -> float:
    there = finding.values.isfinite()
    return relative_score(finding.values[there], finding.floor[there], finding.best[there])


@pytest.fixture(scope="module")
def known():
    return findings()


def test_differences_worked_by_hand():
    """Shapley values 3, 1, 0: pairs differ by 2, 3 and 1.  Weights 1, 2, 0 have the first pair in the wrong order."""
    weights, values = torch.tensor([[1.0, 2.0, 0.0, 9.0]]), torch.tensor([[3.0, 1.0, 0.0, 9.0]])
    own, most = ordered_differences(weights, values, torch.tensor([[True, True, True, False]]))
    assert own.item() == pytest.approx((-2 + 3 + 1) / 3)
    assert most.item() == pytest.approx((2 + 3 + 1) / 3)


@given(strategies.integers(0, 999))
def test_the_mean_over_all_orders_is_zero(seed):
    values = torch.randn(1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    orders = torch.tensor([[a, b, c, d] for a in range(4) for b in range(4) for c in range(4) for d in range(4)])
    orders = orders[[len(set(order)) == 4 for order in orders.tolist()]].double()
    own, _ = ordered_differences(orders, values.expand(len(orders), -1), torch.ones(len(orders), 4, dtype=torch.bool))
    assert own.sum().item() == pytest.approx(0, abs=1e-12)


def test_exact_values_agree_and_random_or_constant_weights_do_not(known):
    for name in SAME_ORDER:
        assert value(known[name]) == pytest.approx(1)
    assert value(known["exact, reversed"]) == pytest.approx(-1)
    assert value(known["constant"]) == 0
    assert abs(value(known["dense"])) < 0.3
    assert abs(value(known["one random word"])) < 0.3


def test_values_are_those_of_kernel_shap_where_it_is_exact():
    assert value(findings(names=("kernel-shap",))["kernel-shap"]) == pytest.approx(1)


def test_texts_that_are_not_short_have_no_value(known):
    here = world("short", 5, 60, SHORT)
    words = torch.tensor([len(example.text.split()) for example in here.examples])
    assert torch.equal(known["exact"].values.isfinite(), words <= 6)
    longer = findings(names=("exact",), thorough=True)["exact"]
    assert torch.equal(longer.values.isfinite(), words <= 9)


def test_batches_and_the_order_of_texts_change_nothing(known):
    for name, finding in findings(batch_size=7).items():
        assert torch.allclose(finding.values, known[name].values, equal_nan=True)


def test_long_texts_are_a_reason_that_it_is_missing():
    (finding,) = findings(names=("exact",), shape=Shape(20, 30)).values()
    assert finding.absent.code == NoteCode.NO_SHORT_TEXTS


def test_a_constant_model_has_no_agreement():
    """Nothing matters: all Shapley values are almost equal."""
    finding = findings("constant", names=("exact",))["exact"]
    assert finding.best[finding.best.isfinite()].mean() < 1e-3


def test_an_audit_of_one_explainer_is_that_of_all(known):
    alone = findings(names=("dense",))["dense"]
    assert replace(alone, notes=()) == replace(known["dense"], notes=())
    assert alone.measure == NAME
