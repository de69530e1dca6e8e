"""Scores of explainers that delete words, by measures that delete words, carry a typed caveat."""

import json
from pathlib import Path

import pytest

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted
from steadygaze.properties.measures import faithfulness_measures
from steadygaze.properties.measures.measure import measures_of
from steadygaze.report.sentences import CAVEATS
from steadygaze.results.report import Report
from steadygaze.results.row import Row

ERASURE = "erasure-judged-by-erasure"
DELETES = {*measures_of("erasure", faithfulness_measures.MEASURES), "shapley-agreement"}


@pytest.fixture(scope="module")
def report() -> Report:
    return sg.audit(fitted(), TEXTS, LABELS, explainers=["leave-one-out", "attention"])


def test_every_score_that_deletes_words_has_the_caveat_for_an_explainer_that_deletes_words(report: Report) -> None:
    for row in report.rows:
        deletes = row.key.measure in DELETES and row.key.probe != "relative-filled"
        favored = deletes and row.settings.get("explainer") == "leave-one-out" and row.n > 0
        assert (row.caveat == ERASURE) == favored, row.signature
    assert any(row.caveat for row in report.rows)


def test_the_verdict_that_rests_on_such_rows_has_the_caveat_and_prints_it(report: Report) -> None:
    assert {verdict.key: verdict.caveats for verdict in report.verdicts if verdict.caveats} == {
        "faithfulness": (ERASURE,)
    }
    (verdict,) = (verdict for verdict in report.verdicts if verdict.caveats)
    assert CAVEATS[ERASURE] in verdict.reason
    assert CAVEATS[ERASURE] in report.to_html()


def test_a_verdict_about_attention_has_no_caveat() -> None:
    plain = sg.audit(fitted(), TEXTS, LABELS, explainers=["attention"])
    assert not any(verdict.caveats for verdict in plain.verdicts)
    assert CAVEATS[ERASURE] not in plain.to_html()


def test_the_caveat_survives_the_file_of_a_report(report: Report, tmp_path: Path) -> None:
    report.to_json(tmp_path / "report.json")
    again = Report.from_json(tmp_path / "report.json")
    assert again.rows == report.rows
    assert again.verdicts == report.verdicts


def test_an_unknown_caveat_is_refused(report: Report) -> None:
    row = next(row for row in report.rows if row.caveat)
    assert Row.from_dict(json.loads(json.dumps(row.to_dict()))) == row
    with pytest.raises(sg.UserError, match="unknown caveat 'none'"):
        Row.from_dict({**row.to_dict(), "caveat": "none"})
