"""The demonstration: what it prints about its models follows from their audits, and its policy accepts a yes only."""

from types import SimpleNamespace

from steadygaze.cli import demo
from steadygaze.results.row import Row


def test_the_model_is_stable_under_what_the_thresholds_of_the_verdict_accept() -> None:
    """Three synonyms: yes up to 0.05 and no from 0.10; FGM and PGD: 0.02 and 0.10; the interval decides."""
    rows = [
        Row("jensen-shannon/3-synonyms", 0.02, 100, (0.01, 0.04)),
        Row("jensen-shannon/fgm-label", 0.3, 100, (0.2, 0.4)),
        Row("jensen-shannon/pgd-attention", 0.09, 100, (0.07, 0.12)),
    ]
    report = SimpleNamespace(find={row.measure: row for row in rows}.get)
    assert demo.stability_summary("model", report) == (  # type: ignore[arg-type]
        "Attention of model is stable under three synonyms (0.020); not stable under one gradient step (FGM) (0.300); "
        "undecided: the worst small change (PGD) (0.090)."
    )


def test_the_policy_accepts_no_undecided_verdict() -> None:
    assert [requirement.answers for requirement in demo.POLICY.verdicts] == [("yes",)] * 3
