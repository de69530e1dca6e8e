"""Relative scores of explainers of known truth, and what they do not depend on."""

from dataclasses import dataclass
from itertools import permutations

import pytest
import torch

from steadygaze.auditing.prepare_case import prepare
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.properties.measures.faithfulness_measures import RELATIVE_ROWS, relative_score
from steadygaze.properties.protocols.relative_erasure import REMOVED, relative_erasure
from steadygaze.results.audit_config import ProbeConfig, Runtime
from studies.oracles.explainers import explainers
from studies.oracles.models import adapter
from studies.oracles.worlds import Shape, world

NAMES = ("exact", "exact × 1000", "exact − 1", "dense", "exact, reversed", "exact for half, else one word")


def scores(
    model: str = "linear", texts: int = 60, shape: Shape | None = None, batch_size: int = 256, names=NAMES, **config
):
    here, known = world("short", 5, texts, shape), explainers()
    chosen = {name: known[name] for name in names}
    case = prepare(
        adapter(here, model), here.examples, chosen, ProbeConfig(**config), runtime=Runtime(batch_size=batch_size)
    ).case
    return {(finding.explainer, finding.measure): finding for finding in relative_erasure(case)}


def value(finding) -> float:
    there = finding.values.isfinite()
    return relative_score(finding.values[there], finding.floor[there], finding.best[there])


@pytest.fixture(scope="module")
def findings():
    return scores()


@pytest.mark.parametrize("row", RELATIVE_ROWS)
def test_exact_weights_score_near_one_and_random_weights_near_zero(row, findings):
    assert value(findings["exact", row]) > 0.9
    assert abs(value(findings["dense", row])) < 0.3
    assert value(findings["exact, reversed", row]) < 0
    assert 0.2 < value(findings["exact for half, else one word", row]) < 0.75


@pytest.mark.parametrize("row", RELATIVE_ROWS)
def test_scale_and_constants_change_nothing(row, findings):
    for name in ("exact × 1000", "exact − 1"):
        assert torch.allclose(findings[name, row].values, findings["exact", row].values)


def test_an_explainer_that_is_right_on_some_of_the_long_texts_scores_their_share():
    names = "exact", "exact for half, else random"
    findings = scores("linear, weak", 30, Shape(100, 120, density=1.0), names=names)
    for row in RELATIVE_ROWS:
        exact, half = (findings[name, row] for name in names)
        right = (exact.values - half.values).abs() < 1e-9
        reach = exact.values - exact.floor
        share = float(reach[right].sum() / reach.sum())
        assert value(exact) > 0.95
        assert value(half) == pytest.approx(share, abs=0.05)


def test_removal_of_exact_weights_of_a_linear_model_is_the_best_there_is(findings):
    assert value(findings["exact", "comprehensiveness/relative"]) == pytest.approx(1, abs=1e-9)


def test_scores_do_not_depend_on_the_batch(findings):
    for key, finding in scores(batch_size=7).items():
        for part in ("values", "floor", "best"):
            assert torch.allclose(getattr(finding, part), getattr(findings[key], part), equal_nan=True)


def test_ends_do_not_depend_on_the_other_explainers(findings):
    alone = scores(names=("dense",))["dense", RELATIVE_ROWS[0]]
    assert torch.equal(alone.floor, findings["dense", RELATIVE_ROWS[0]].floor)
    assert torch.equal(alone.best, findings["dense", RELATIVE_ROWS[0]].best)


def test_a_thorough_audit_knows_better_orders_of_longer_texts():
    shape, names = Shape(10, 16, density=0.4), ("exact",)
    usual, thorough = (scores("parity", 15, shape, names=names, thorough=thorough) for thorough in (False, True))
    gains = {row: thorough["exact", row].best - usual["exact", row].best for row in RELATIVE_ROWS}
    assert all((gain >= -1e-12).all() for gain in gains.values())
    assert {row for row, gain in gains.items() if gain.sum() > 0.01} == {*REMOVED}


def test_one_text_has_no_words_of_other_texts():
    findings = scores(texts=1, names=("exact",))
    for row in RELATIVE_ROWS:
        key = (None if row.endswith("filled") else "exact", row)
        assert (findings[key].absent is not None) == row.endswith("filled")


def test_the_score_is_the_ratio_of_sums():
    own, floor, best = torch.tensor([[0.5, 0.2], [0.1, 0.1], [0.9, 0.2]], dtype=torch.float64)
    assert relative_score(own, floor, best) == pytest.approx((0.4 + 0.1) / (0.8 + 0.1))


@pytest.mark.parametrize("row", REMOVED)
def test_short_texts_have_the_mean_and_the_best_of_all_orders(row):
    """Every order of the words as an explainer of its own: none is better, and shuffled weights are their mean."""
    here = world("short", 6, 8, Shape(4, 5, density=0.4, negated=0.0))
    orders = {str(order): Order(order) for order in permutations(range(5))}
    case = prepare(adapter(here, "gated"), here.examples, orders, ProbeConfig()).case
    found = [finding for finding in relative_erasure(case) if finding.measure == row]
    values = torch.stack([finding.values for finding in found])
    assert len(found) == 120
    for finding in found:
        assert finding.exact == len(case)
        assert torch.allclose(finding.best, values.amax(0))
        assert torch.allclose(finding.floor, values.mean(0))


@dataclass
class Order(Explainer):
    """The same order of places for every text."""

    places: tuple[int, ...]

    def explain(self, model, batch, target=None, embedded=None):
        place = (batch.mask.cumsum(-1) - 1).clamp_min(0)
        weights = torch.tensor(self.places, dtype=torch.float64)[place]
        return Saliency(weights.masked_fill(~batch.mask, 0.0), model.logits(batch))
