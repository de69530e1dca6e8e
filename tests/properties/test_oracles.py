"""The audit audited: models built to be faithful pass, models built not to be are caught, by what should catch them.

The thresholds are those of the properties; nothing here may be tuned to these models.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from properties.oracles import oracle_adapter, world
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.properties import PROPERTIES
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.report import Report

YES = dict.fromkeys(("stability", "faithfulness", "shortcut-leakage", "plausibility"), "yes")
UNFAITHFUL = {"faithfulness": "no", "stability": "not meaningful", "plausibility": "not meaningful"}
EXPECTED = {  # model -> the expected answers
    "honest": YES,
    "strict": YES,
    "aside": UNFAITHFUL,
    "even": {**UNFAITHFUL, "shortcut-leakage": "no"},
    "first": {**UNFAITHFUL, "shortcut-leakage": "no"},
    "coded": {**UNFAITHFUL, "shortcut-leakage": "no"},
}


SEEDS = 3
GUILTY = {  # model -> the number that must be a failure
    "aside": "comprehensiveness/relative",
    "even": "collapsed",
    "first": "collapsed",
    "coded": "position-leak/unaccounted",
}


FAST = {"honest", "coded"}
"""The other models are slow tests."""


def fast_and_slow(names: Iterable[str]) -> list[Any]:
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]


@cache
def report(name: str, seed: int) -> Report:
    here = world(seed)
    config = ProbeConfig(sample=100, seed=seed)
    return run_audit(
        AuditRequest(oracle_adapter(name, here, seed), here.examples, config, synonyms=here.synonyms)
    ).report()


def answers(name: str, seed: int) -> dict[str, str]:
    results = {verdict.key: verdict.answer for verdict in report(name, seed).verdicts}
    return {question: results[question] for question in EXPECTED[name]}


@pytest.mark.parametrize("name", fast_and_slow(EXPECTED))
def test_models_with_known_properties_get_the_expected_verdicts(name):
    assert answers(name, 0) == EXPECTED[name]


@pytest.mark.parametrize("name", fast_and_slow(GUILTY))
def test_the_measure_made_for_a_flaw_fails_its_thresholds(name):
    row = report(name, 0).find(GUILTY[name])
    bounds = [
        item.rule.thresholds[row.measure]
        for item in PROPERTIES.values()
        if item.rule and row.measure in item.rule.thresholds
    ]
    assert bounds
    assert all(bound.decide(row) == "no" for bound in bounds)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_the_expected_verdicts_hold_for_other_seeds(name):
    assert [answers(name, seed) for seed in range(1, SEEDS)] == [EXPECTED[name]] * (SEEDS - 1)
