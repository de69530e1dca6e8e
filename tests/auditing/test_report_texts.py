"""The explanations of a report: those of `sg.explain`, as a table, and back from a file."""

import math

import numpy as np
import pytest
import torch

import steadygaze as sg
from steadygaze.auditing import report_texts
from steadygaze.auditing.audit_report import _row
from steadygaze.properties.audit_case import Finding
from steadygaze.results.explanation import Explanations
from steadygaze.results.report import Report

TEXTS = ["a good film", "bad bad film", "nothing to say", "good , but bad"]
LABELS = [1, 0, 1, 0]


def predict(texts):
    score = np.array([text.count("good") - text.count("bad") for text in texts], float)
    positive = 1 / (1 + np.exp(-score))
    return np.stack([1 - positive, positive], -1)


@pytest.fixture
def report(fewer_protocols):
    return sg.audit(predict, TEXTS, LABELS, classes=[0, 1], explainers=["leave-one-out"])


def test_the_explanations_of_a_report_are_those_of_explain(report):
    explanations = sg.explain(predict, TEXTS, classes=[0, 1], explainer="leave-one-out")
    assert [e.text for e in report.explanations] == TEXTS
    for audited, direct, label in zip(report.explanations, explanations, LABELS, strict=True):
        assert audited.tokens == direct.tokens
        assert audited.weights == pytest.approx(direct.weights)
        assert (audited.label, audited.probabilities) == (direct.label, pytest.approx(direct.probabilities))
        assert audited.true_label == label
    assert report.explanations[0].weights[1] == pytest.approx(1 / (1 + np.exp(-1)) - 0.5)  # without "good": 0.5


def test_the_explanations_of_a_report_come_back_from_json_and_are_a_table(report, tmp_path):
    report.to_json(tmp_path / "report.json")
    restored = Report.from_json(tmp_path / "report.json").explanations
    assert restored == report.explanations
    assert isinstance(restored, Explanations)
    assert restored[0].probabilities.keys() == {0, 1}
    table = restored.to_pandas()
    assert table.text.nunique() == 4
    assert table[table.token == "good"].weight.tolist() == pytest.approx(
        [report.explanations[0].weights[1], report.explanations[3].weights[0]]
    )


def test_a_report_has_the_explanations_of_the_first_texts_and_of_wrong_predictions(report, monkeypatch):
    monkeypatch.setattr(report_texts, "EXPLAINED", 1)
    shorter = sg.audit(predict, TEXTS, [0, 0, 1, 1], classes=[0, 1], explainers=["leave-one-out"])
    assert [e.text for e in shorter.explanations] == TEXTS[:1]
    assert {error.row: error.explanation.text for error in shorter.evaluation.errors} == {
        0: TEXTS[0],
        2: TEXTS[2],
        3: TEXTS[3],
    }


def test_an_expensive_explainer_leaves_texts_without_explanation(fewer_protocols):
    audited = sg.audit(predict, TEXTS, [0, 1, 1, 1], classes=[0, 1], explainers=["lime"], sample=1)
    (explained,) = audited.explanations
    errors = {error.text: error.explanation for error in audited.evaluation.errors}
    assert errors[explained.text] == explained
    assert [text for text, explanation in errors.items() if explanation is not None] == [explained.text]


def test_the_shifts_of_a_report_are_the_largest_and_the_smallest():
    shifts = torch.tensor([float("nan"), 0.1, 0.5, 0.0, 0.3, 0.2])
    assert report_texts.extreme_rows(shifts, 2).tolist() == [2, 4, 1]
    assert report_texts.extreme_rows(shifts, 4).tolist() == [2, 4, 5, 1]
    assert report_texts.extreme_rows(torch.zeros(3), 2).tolist() == []


@pytest.mark.parametrize(
    ("values", "note"), [([1.0, 2.0, math.nan], "1 other text"), ([1.0, math.nan, math.nan], "2 other texts")]
)
def test_texts_without_a_value_are_counted_in_a_note(values, note):
    row = _row(Finding("normalized-entropy", torch.tensor(values, dtype=torch.float64), "attention"), {})
    assert row.note == f"of {3 - int(note[0])} text{'s' * (note[0] == '1')}: {note} not sampled, or without a value"


def test_the_report_of_pairs_says_that_the_second_text_is_not_rated(report, fewer_protocols):
    pairs = sg.audit(
        lambda pairs: predict([second for _, second in pairs]),
        [("a claim", text) for text in TEXTS],
        LABELS,
        classes=[0, 1],
        explainers=["leave-one-out"],
    )
    note = "words of the first text of a pair alone; the weights of the second text are not rated"
    assert any(note in str(item) for item in pairs.notes)
    assert not any(note in str(item) for item in report.notes)
