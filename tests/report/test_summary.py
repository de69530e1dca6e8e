"""Date, gate, accuracy and coverage come first on the page; a failed gate is on the card too."""

from datetime import date

from report.audited import full_report
from report.browser import Outline, plain_text
from steadygaze.results.model_card import add_audit_to_card
from steadygaze.results.policy import as_policy
from steadygaze.results.report import Report

POLICY = as_policy(["accuracy>=0.99", "jensen-shannon/noise<=0.9"])
READ = {"truncated texts": "12 of 400", "unknown tokens": "3.1 % of 9,000"}


def made() -> Report:
    report = full_report(date="2026-11-16T10:12:23Z")
    return full_report(date=report.date, facts={**report.facts, **READ}).with_gate(POLICY)


def test_the_page_begins_with_date_gate_policy_accuracy_and_coverage() -> None:
    html = made().to_html()
    head = plain_text(html).partition("Verdicts")[0]
    for words in (
        "2026-11-16 10:12:23 UTC",
        "failed: 1 of 2 requirements not met",
        "accuracy>=0.99; jensen-shannon/noise<=0.9",
        "0.913 (0.885 to 0.941)",
        "12 of 400",
        "3.1 % of 9,000",
        "The gate failed.",
        "at least 0.99 was required",
    ):
        assert words in head, words
    assert Outline(html).open == []


def test_a_gate_that_is_passed_is_shown_as_passed() -> None:
    page = plain_text(full_report().with_gate(as_policy(["accuracy>=0.5"])).to_html())
    assert "passed: 1 requirement met" in page
    assert "The gate failed" not in page


def test_without_a_policy_no_gate_is_shown() -> None:
    assert "Gate" not in plain_text(full_report().to_html()).partition("Verdicts")[0]


def test_the_card_names_the_failed_requirements() -> None:
    card = add_audit_to_card("", made(), date(2026, 11, 16))
    assert "**Gate failed: 1 of 2 requirements not met** (`accuracy>=0.99`, `jensen-shannon/noise<=0.9`)." in card
    assert "\n- accuracy is 0.913; at least 0.99 was required." in card
    assert "Gate" not in add_audit_to_card("", full_report(), date(2026, 11, 16))


def test_date_and_gate_survive_a_file(tmp_path) -> None:
    made().to_json(tmp_path / "report.json")
    assert Report.from_json(tmp_path / "report.json") == made()


def test_one_requirement_that_fails_for_several_rows_counts_once() -> None:
    twice = full_report()
    rows = tuple(row for row in twice.rows if row.measure == "accuracy") * 2
    gate = full_report(rows=rows).with_gate(as_policy(["accuracy>=0.99"])).gate
    assert gate is not None
    assert (gate.unmet, len(gate.failures)) == (1, 2)
