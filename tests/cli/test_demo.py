"""The demonstration: what it prints about its models follows from their audits, and its policy accepts a yes only."""

import re
from types import SimpleNamespace

from steadygaze.cli import demo
from steadygaze.properties import PROPERTIES
from steadygaze.results.row import Row


def test_the_model_is_stable_under_what_the_thresholds_of_the_verdict_accept() -> None:
    """Yes from 0.7 up and no up to 0.65, by the interval; shifts have no thresholds and are not mentioned."""
    rows = [
        Row("weight-correlation/reworded", 0.8, 100, (0.71, 0.9)),
        Row("weight-correlation/fgm-label", 0.3, 100, (0.2, 0.4)),
        Row("weight-correlation/pgd-attention", 0.69, 100, (0.6, 0.75)),
        Row("jensen-shannon/3-synonyms", 0.02, 100, (0.01, 0.04)),
    ]
    report = SimpleNamespace(find={row.measure: row for row in rows}.get)
    summary = demo.stability_summary("model", report)  # type: ignore[arg-type]
    parts = re.fullmatch("Attention of model is stable under (.*); not stable under (.*); undecided: (.*)[.]", summary)
    assert parts is not None, summary
    assert [re.findall(r"[01]\.\d+", part) for part in parts.groups()] == [["0.800"], ["0.300"], ["0.690"]]
    assert "FGM" in parts[2]
    assert "PGD" in parts[3]


def test_the_summary_names_every_deciding_score_of_stability_and_robustness() -> None:
    rules = [PROPERTIES[name].rule for name in ("stability", "robustness")]
    assert set(demo.PERTURBATIONS) == {name for rule in rules if rule for name in rule.thresholds if "/" in name}


def test_the_policy_accepts_no_undecided_verdict() -> None:
    assert [requirement.answers for requirement in demo.POLICY.verdicts] == [("yes",)] * 3
