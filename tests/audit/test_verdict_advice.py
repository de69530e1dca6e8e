"""Advice for undecided verdicts, with numbers worked by hand."""

import math
import re

import pytest

from steadygaze.audit.measures.shortcut_measures import FEWEST
from steadygaze.audit.protocols.shortcut_leakage import ONE_CLASS
from steadygaze.audit.protocols.stability import NO_SYNONYMS
from steadygaze.audit.verdict_rules import (
    FEW_TEXTS_OF_A_CLASS,
    NO_SYNONYM_TABLE,
    VERDICT_RULES,
    advise,
    advise_after_no,
    deciding_texts,
    verdicts,
)
from steadygaze.cli import COMMANDS
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.learned import METHODS
from steadygaze.report.audit_page import render
from steadygaze.report.terminal_tables import text
from steadygaze.results.report import Report
from steadygaze.results.row import Row
from steadygaze.techniques import TECHNIQUES

LIMITS = {"jensen-shannon/noise": (0.005, 0.02), "comprehensiveness/above-random": (0.05, 0.02)}
SHIFT, ERASURE = LIMITS


def row(name: str, value: float, low: float, high: float, n: int = 100) -> Row:
    return Row(name, value, n, (low, high), {"explainer": "attention"})


@pytest.mark.parametrize(
    ("name", "value", "low", "high", "expected"),
    [
        (SHIFT, 0.004, 0.003, 0.006, 400),  # 0.001 inside the threshold, the interval reaches 0.002 up
        (SHIFT, 0.030, 0.010, 0.040, 400),  # 0.010 beyond the threshold of no, 0.020 down
        (SHIFT, 0.010, 0.009, 0.011, math.inf),
        (ERASURE, 0.060, 0.030, 0.070, 900),  # higher is better: 0.01 inside, 0.03 down
        (ERASURE, 0.010, 0.005, 0.040, 900),  # 0.01 beyond the threshold of no, 0.03 up
        (ERASURE, 0.030, 0.000, 0.060, math.inf),
    ],
)
def test_the_number_of_texts_by_hand(name, value, low, high, expected):
    assert deciding_texts(row(name, value, low, high), *LIMITS[name]) == pytest.approx(expected)


def test_the_advice_names_texts_and_options():
    good, bad = row(SHIFT, 0.004, 0.003, 0.006), row(SHIFT, 0.030, 0.010, 0.040)
    between = row(ERASURE, 0.030, 0.000, 0.060)
    assert advise([good], LIMITS, 100) == "Audit about 400 texts instead of 100 (--limit 400)."
    assert advise([good], LIMITS, 500) == "Audit about 400 texts instead of 100 (--sample 400)."
    assert advise([good], LIMITS, 150) == "Audit about 400 texts instead of 100 (--limit 400 --sample 400)."
    assert advise([good], LIMITS, 100, 200) == (
        "Audit about 400 texts instead of 100 (the data have 200: label more texts, or hold out more with "
        "train --test-share)."
    )
    assert advise([between, bad], LIMITS, 100).startswith("Audit about 400 texts"), "a no needs only one measure"
    unlikely = advise([good, between], LIMITS, 100)
    assert "more texts are unlikely to decide it" in unlikely.lower()
    assert "0.05 and 0.02" in unlikely
    assert unlikely.endswith(", 0.030.")
    assert advise([row(SHIFT, 0.004, 0.003, 0.006, 7)], LIMITS, 7) == ("Audit more texts: a verdict needs at least 8.")
    assert advise([], LIMITS, 100) == ""


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        (NO_SYNONYMS, "Build a synonym table with steadygaze synonyms build wordnet"),
        (ONE_CLASS, f"Audit more texts, with at least {FEWEST} of each predicted class."),
    ],
)
def test_the_reasons_of_the_protocols_have_an_advice(reason, advice):
    assert advise([], LIMITS, 100, missing=f"not applicable, because {reason}").startswith(advice)
    assert any(reason.startswith(key) for key in (NO_SYNONYM_TABLE, FEW_TEXTS_OF_A_CLASS))


def test_a_missing_synonym_table_is_the_advice_on_page_and_terminal():
    missing = Row(
        "jensen-shannon/1-synonym", math.nan, 0, None, {}, "not applicable, because there is no synonym table"
    )
    rows = [row(SHIFT, 0.001, 0.0, 0.002), missing]
    stability = verdicts(rows, "attention")[0]
    assert stability.answer == "undecided"
    assert stability.advice.startswith("Build a synonym table with steadygaze synonyms build wordnet")
    report = Report("Explanation audit", tuple(rows), (stability,))
    assert f"Advice: b{stability.advice[1:]}" in text(report)
    assert "<strong>Advice:</strong> Build a synonym table" in render(report)
    assert Report.from_dict(report.to_dict()).verdicts[0].advice == stability.advice


def test_a_yes_has_no_advice_and_a_no_has_one_with_a_command():
    synonym = row("jensen-shannon/1-synonym", 0.001, 0.0, 0.002)
    good, bad = (verdicts([row(SHIFT, value, value, value), synonym], "attention")[0] for value in (0.001, 0.030))
    assert (good.answer, good.advice) == ("yes", "")
    assert bad.answer == "no"
    assert bad.advice.startswith(
        "Train a classifier with stable attention: steadygaze train DATA --technique consensus"
    )


NO = [
    pytest.param(name, explainer, id=f"{name} of {explainer}")
    for name in {name: None for rule in VERDICT_RULES for name in rule.thresholds}
    for explainer in ("attention", "rationale", "integrated-gradients", "l2x")
]


@pytest.mark.parametrize(("name", "explainer"), NO)
def test_every_no_has_one_line_of_advice_with_a_command_of_this_program(name, explainer):
    sentence = advise_after_no(name, explainer)
    assert "\n" not in sentence
    _, command, option = re.fullmatch(
        r"(.*): steadygaze (\S+) .*--(?:explainer|technique) ([a-z0-9-]+).*\.", sentence
    ).groups()
    assert command in COMMANDS
    assert option in (*EXPLAINERS, *TECHNIQUES, *METHODS)
    assert option != explainer or command == "fit-explainer"
