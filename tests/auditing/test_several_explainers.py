"""An audit of several explainers: each has verdicts, one is recommended, and requirements rate the first."""

import pytest

import steadygaze as sg
from estimator.tiny import TEXTS as TINY
from steadygaze.auditing.audit import AuditInterrupted
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.explainers.random import Random
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import RANDOM
from steadygaze.results.note import text_note
from steadygaze.results.policy import Policy, VerdictRequirement
from steadygaze.results.recommendation import recommend
from steadygaze.results.report import Report
from steadygaze.results.row import Row, Verdict

RATED = [item for item in PROPERTIES.values() if item.rule is not None]
TEXTS = [f"{where} {text}" for where in ("here", "there", "everywhere") for text in TINY]
"""As many as a yes needs."""
DECIDING = {name for item in RATED for name in item.rule.thresholds}


class Backwards(LeaveOneOut):
    """The words that matter least have the largest weights."""

    def explain(self, model, batch, target=None, embedded=None):
        saliency = super().explain(model, batch, target, embedded)
        weights = (saliency.weights.amax(-1, keepdim=True) - saliency.weights).masked_fill(~batch.mask, 0.0)
        return type(saliency)(weights, saliency.logits)


def predict(texts: list[str]) -> list[list[float]]:
    """One word decides."""
    return [[0.05, 0.95] if "good" in text else [0.9, 0.1] for text in texts]


def audit(*explainers, **options) -> Report:
    return sg.audit(predict, TEXTS, classes=["neg", "pos"], explainers=explainers, **options)


@pytest.fixture(scope="module")
def report() -> Report:
    return audit(Backwards(), "random", "leave-one-out")


def test_the_honest_explainer_of_a_black_box_is_recommended_and_the_dishonest_one_never(report: Report) -> None:
    answers = {name: {item.key: item.answer for item in items} for name, items in report.verdicts_by.items()}
    assert answers["Backwards"]["faithfulness"] == "no"
    assert answers["leave-one-out"]["faithfulness"] == "yes"
    assert report.recommendation is not None
    assert (report.recommendation.explainer, report.recommendation.choice) == ("leave-one-out", "only-acceptable")
    assert report.recommendation_text.startswith("Use leave-one-out: for all other explainers the answer is “no” for")
    page = report.to_html()
    assert report.recommendation_text in page
    assert "<summary>The verdicts of leave-one-out</summary>" in page
    assert Report.from_dict(report.to_dict()) == report


def test_the_stability_of_a_dishonest_explainer_means_nothing() -> None:
    result = audit(Backwards(), "leave-one-out", synonyms={"fine": ["nice"], "dull": ["boring"]})
    answers = {name: {item.key: item.answer for item in items} for name, items in result.verdicts_by.items()}
    assert answers["Backwards"]["faithfulness"] == "no"
    assert answers["Backwards"]["stability"] == "not meaningful"
    assert answers["leave-one-out"]["stability"] in ("yes", "undecided", "no")
    assert [of["seed-consistency"] for of in answers.values()] == ["not measured"] * 2
    assert "not meaningful" not in (of["shortcut-leakage"] for of in answers.values())
    policy = Policy(verdicts=(VerdictRequirement("stability", ("yes", "undecided")),))
    assert [failure.required for failure in result.failing(policy)] == ["Stability under rewording"]


def test_every_audited_explainer_but_the_baseline_has_verdicts_about_its_own_numbers(report: Report) -> None:
    assert list(report.verdicts_by) == ["Backwards", "leave-one-out"]
    assert report.verdicts_by["Backwards"] == report.verdicts
    explainer_of: dict[str, object] = {row.signature: row.settings.get("explainer") for row in report.rows}
    for name, verdicts in report.verdicts_by.items():
        assert [item.key for item in verdicts] == [item.name for item in RATED]
        assert {explainer_of[signature] for item in verdicts for signature in item.rows} == {name}
    shared = [row for row in report.rows if row.measure in DECIDING and "explainer" not in row.settings]
    assert [row.measure for row in shared if row.n] == [], "a number that decides is about one explainer"


def test_the_verdicts_do_not_depend_on_the_other_explainers(report: Report) -> None:
    alone = audit("leave-one-out")
    assert (alone.other_verdicts, alone.recommendation) == ({}, None)
    together = report.other_verdicts["leave-one-out"]
    assert [(item.answer, item.reasons, item.rows) for item in alone.verdicts] == [
        (item.answer, item.reasons, item.rows) for item in together
    ]


def test_a_required_verdict_is_that_of_the_first_explainer(report: Report) -> None:
    policy = Policy(verdicts=(VerdictRequirement("faithfulness", ("yes",)),))
    assert [failure.required for failure in report.failing(policy)] == ["Faithfulness"]
    assert audit("leave-one-out", Backwards()).failing(policy) == []


def test_the_baseline_has_verdicts_only_if_it_is_the_first_and_is_never_a_candidate() -> None:
    first = audit(Random(), "leave-one-out", sample=2)
    assert list(first.verdicts_by) == [RANDOM, "leave-one-out"]
    assert first.recommendation is None
    assert audit("leave-one-out", RANDOM, sample=2).other_verdicts == {}


def test_no_advice_names_an_explainer_that_was_audited(report: Report) -> None:
    commands = [advice.command for verdict in report.verdicts for advice in verdict.advice if advice.command]
    assert commands
    assert not [words for words in commands if "leave-one-out" in words]


def test_an_explainer_that_the_model_does_not_support_has_no_verdicts() -> None:
    partial = audit("attention", "leave-one-out", sample=2)
    assert (list(partial.verdicts_by), partial.recommendation) == (["leave-one-out"], None)


def test_an_interrupted_audit_recommends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("steadygaze.auditing.audit._run", interrupted)
    with pytest.raises(AuditInterrupted) as caught:
        audit("lime", "leave-one-out")
    unfinished = caught.value.findings.report()
    assert (unfinished.other_verdicts, unfinished.recommendation) == ({}, None)


def test_a_property_of_a_user_counts_in_the_recommendation() -> None:
    def verdicts(answer: str) -> tuple[Verdict, ...]:
        return (Verdict("Mine", answer, (text_note("it is"),), key="mine"),)  # type: ignore[arg-type]

    result = recommend({"a": verdicts("no"), "b": verdicts("yes")})
    assert result is not None
    assert (result.explainer, result.decisive) == ("b", ("mine",))
    rows = (Row("accuracy", 0.5, 9),)
    text = Report("t", rows, verdicts("no"), facts={"explanation": "a"}, recommendation=result).recommendation_text
    assert text.startswith(
        "Use b: 0 of its answers (without robustness) are “no”; a, the next best explainer, has 1 (mine)."
    )
