"""The audit audited: models built to be faithful pass, models built not to be are caught, by what should catch them.

The thresholds are those of the properties; nothing here may be tuned to these models.
"""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from properties.oracles import oracle_adapter, world
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.prepare_case import AuditRequest
from steadygaze.properties import PROPERTIES
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.report import Report

STABILITY_TITLE, FAITHFULNESS_TITLE = "Stability", "Faithfulness"
POSITION, PLAUSIBILITY_TITLE = "No shortcut leakage", "Plausibility"
SEEDS, RIGHT = 20, 19
EXPECTED = {  # model -> the expected answers
    "honest": {STABILITY_TITLE: "yes", FAITHFULNESS_TITLE: "yes", POSITION: "yes", PLAUSIBILITY_TITLE: "yes"},
    "strict": {STABILITY_TITLE: "yes", FAITHFULNESS_TITLE: "yes", POSITION: "yes", PLAUSIBILITY_TITLE: "yes"},
    "aside": {FAITHFULNESS_TITLE: "no"},
    "even": {STABILITY_TITLE: "no", FAITHFULNESS_TITLE: "no", POSITION: "no"},
    "first": {STABILITY_TITLE: "no", FAITHFULNESS_TITLE: "no", POSITION: "no"},
    "coded": {POSITION: "no", FAITHFULNESS_TITLE: "no"},
}


GUILTY = {  # model -> the number that must be a failure
    "aside": "comprehensiveness/relative",
    "even": "collapsed",
    "first": "collapsed",
    "coded": "position-leak/shuffled",
}


FAST = {"honest", "coded"}
"""The other models are slow tests."""


def fast_and_slow(names: Iterable[str]) -> list[Any]:
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names]


@cache
def report(name: str, seed: int) -> Report:
    here = world(seed)
    config = ProbeConfig(sample=30, seed=seed)
    return run_audit(
        AuditRequest(oracle_adapter(name, here, seed), here.examples, config, synonyms=here.synonyms)
    ).report()


def answers(name: str, seed: int) -> dict[str, str]:
    results = {verdict.title: verdict.answer for verdict in report(name, seed).verdicts}
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


def test_the_page_of_results_has_the_counts_of_the_records():
    root = Path(__file__).parents[2]
    lines = (root / "studies" / "records" / "audit_oracles.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    right = [EXPECTED[record["model"]].items() <= record["verdicts"].items() for record in records]
    page = (root / "docs" / "results" / "audit-tests.md").read_text(encoding="utf-8")
    assert f"{sum(right)} of {len(records)} models" in page
    assert page.count(f"{SEEDS} of {SEEDS}") == len(EXPECTED) == len(records) / SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_the_expected_verdicts_hold_for_19_of_20_seeds(name):
    right = sum(answers(name, seed) == EXPECTED[name] for seed in range(SEEDS))
    assert right >= RIGHT
