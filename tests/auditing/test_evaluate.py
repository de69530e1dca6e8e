"""sg.evaluate and `steadygaze evaluate`."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

import steadygaze as sg
from commands import run
from steadygaze.core.errors import UserError
from steadygaze.properties import PROPERTIES
from steadygaze.results.evaluation import reliability
from steadygaze.results.intervals import wilson_interval
from steadygaze.results.report import Report

CLASSES = ["bad", "good", "mixed"]
TEXTS = ["a good film", "a bad film", "good and bad", "nothing", "bad bad", "good good", "bad film"]
LABELS = ["good", "bad", "mixed", "mixed", "bad", "bad", "good"]


def predict(texts):
    """By the share of good and bad words; without both, the class mixed has half."""
    good, bad = (np.array([text.split().count(word) for text in texts], float) for word in ("good", "bad"))
    scores = np.stack([bad, good, np.full(len(texts), 0.5)], 1) + 0.1
    return scores / scores.sum(1, keepdims=True)


@pytest.fixture
def evaluation():
    return sg.evaluate(predict, TEXTS, LABELS, classes=CLASSES)


def test_scores_are_those_of_scikit_learn(evaluation):
    predicted = [CLASSES[i] for i in predict(TEXTS).argmax(1)]
    assert evaluation["accuracy"] == pytest.approx(accuracy_score(LABELS, predicted))
    assert evaluation["macro-f1"] == pytest.approx(f1_score(LABELS, predicted, average="macro"))
    assert np.array_equal(evaluation.confusion, confusion_matrix(LABELS, predicted, labels=CLASSES))
    expected = precision_recall_fscore_support(LABELS, predicted, labels=CLASSES)
    per_class = [(item.precision, item.recall, item.f1, item.n) for item in evaluation.per_class]
    np.testing.assert_allclose(np.array(per_class).T, expected)


def test_rows_have_intervals_and_signatures(evaluation):
    rows = {row.measure: row for row in evaluation}
    assert set(rows) == {measure.name for measure in PROPERTIES["correctness"].measures}
    low, high = rows["accuracy"].interval
    assert low < rows["accuracy"].value < high
    assert all(row.signature and row.n == len(TEXTS) for row in evaluation)


def test_errors_are_listed_with_the_most_confident_first(evaluation):
    assert [error.text for error in evaluation.errors] == ["good good", "bad film", "good and bad"]
    assert [error.row for error in evaluation.errors] == [5, 6, 2]
    probabilities = [error.probability for error in evaluation.errors]
    assert probabilities == sorted(probabilities, reverse=True)
    assert probabilities[0] == pytest.approx(2.1 / 2.8)


def test_a_class_without_texts_and_predictions_has_no_scores():
    result = sg.evaluate(predict, ["a good film", "good good"], ["good", "good"], classes=CLASSES).per_class
    assert math.isnan(result[0].recall)
    assert math.isnan(result[0].f1)
    assert (result[1].f1, result[1].n) == (1.0, 2)


def test_the_command_counts_all_wrong_predictions(capsys, tmp_path, monkeypatch):
    """The evaluation lists 100 of 150 wrong predictions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("text,label\n" + "a good film,bad\n" * 150 + "bad,bad\n")
    options = ["auditing.test_evaluate:predict", "--classes", ",".join(CLASSES), "--data", "data.csv"]
    assert (
        "150 wrong predictions; --out PATH and --json list the 100 most confident"
        in run(capsys, "evaluate", *options).err
    )
    wrong = sg.evaluate(predict, ["good"] * 6, ["bad"] * 6, classes=CLASSES)
    assert (wrong.wrong, len(wrong.errors)) == (6, 6)


def test_tables(evaluation, tmp_path):
    assert list(evaluation.to_pandas().columns) == ["label", "precision", "recall", "f1", "n"]
    values = json.loads(evaluation.to_json(tmp_path / "evaluation.json"))
    assert json.loads((tmp_path / "evaluation.json").read_text()) == values
    assert values["confusion"] == [list(line) for line in evaluation.confusion]
    assert "label \\ predicted" in str(evaluation)
    assert "<pre>" in evaluation._repr_html_()


def test_the_reliability_diagram_by_hand():
    """Confidences 0.55 and 0.6 lie in (0.5, 0.6]: mean 0.575, one of two right.  0.7 lies in (0.6, 0.7], 1 in the last.

    Wilson's interval of 1 of 2 with z = 1.959964: center 0.5, half width z √(1/8 + z²/16) / (1 + z²/2) = 0.405469.
    """
    confidence = np.array([0.55, 0.6, 0.7, 1.0, 0.95])
    bins = reliability(confidence, np.array([True, False, True, True, True]))
    assert [(item.low, item.high, item.n, item.accuracy) for item in bins] == [
        (0.5, 0.6, 2, 0.5),
        (0.6, 0.7, 1, 1.0),
        (0.9, 1.0, 2, 1.0),
    ]
    assert [item.confidence for item in bins] == pytest.approx([0.575, 0.7, 0.975], abs=1e-15)
    assert bins[0].interval == pytest.approx((0.5 - 0.405469, 0.5 + 0.405469), abs=1e-6)
    assert bins[1].interval == wilson_interval(1, 1)


def test_a_probability_of_0_or_1_or_of_an_edge_belongs_to_one_bin():
    edges = np.arange(11) / 10
    bins = reliability(edges, np.ones(11, bool))
    assert [item.n for item in bins] == [2, *[1] * 9]  # 0 and 0.1 are in the first
    assert (bins[-1].low, bins[-1].high, bins[-1].confidence) == (0.9, 1.0, 1.0)
    assert reliability(np.array([np.nextafter(0.9, 1)]), np.ones(1, bool))[0].low == 0.9


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30).flatmap(
        lambda pairs: st.tuples(st.just(pairs), st.permutations(pairs))
    )
)
def test_the_reliability_diagram_does_not_depend_on_the_order_of_the_texts(orders):
    first, second = (reliability(*map(np.array, zip(*pairs, strict=True))) for pairs in orders)
    assert first == second
    assert sum(item.n for item in first) == len(orders[0])


def test_the_bins_are_in_the_evaluation_and_its_tables(evaluation, capsys, tmp_path, monkeypatch):
    probs = predict(TEXTS)
    correct = [CLASSES[i] == label for i, label in zip(probs.argmax(1), LABELS, strict=True)]
    expected = reliability(probs.max(1), np.array(correct))
    assert [item.n for item in evaluation.reliability] == [item.n for item in expected] == [1, 3, 3]
    assert [item.accuracy for item in evaluation.reliability] == [item.accuracy for item in expected]
    saved = evaluation.to_dict()["reliability"]
    assert saved[0]["interval"] == list(evaluation.reliability[0].interval)
    frame = evaluation.to_pandas("reliability")
    assert list(frame.columns) == ["low", "high", "n", "confidence", "accuracy", "accuracy_low", "accuracy_high"]
    assert frame["n"].sum() == len(TEXTS)
    with pytest.raises(UserError, match="unknown table 'reliabilty': did you mean 'reliability'"):
        evaluation.to_pandas("reliabilty")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("text,label\na good film,good\nbad,good\n")
    command = ["evaluate", "auditing.test_evaluate:predict", "--classes", ",".join(CLASSES), "--data", "data.csv"]
    assert "mean confidence" in run(capsys, *command, "--verbose").out
    assert "mean confidence" not in run(capsys, *command).out


def test_an_unknown_measure_is_refused(evaluation):
    names = ", ".join(sorted(measure.name for measure in PROPERTIES["correctness"].measures))
    with pytest.raises(sg.UserError, match=rf"unknown measure 'f1'.*Known: {names}"):
        evaluation["f1"]


def test_a_label_per_text_is_needed():
    with pytest.raises(sg.UserError, match="3 texts and 2 labels"):
        sg.evaluate(predict, TEXTS[:3], LABELS[:2], classes=CLASSES)


def test_the_command_prints_and_writes(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{text},{label}" for text, label in zip(TEXTS, LABELS, strict=True)]
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(lines))
    (tmp_path / "unlabeled.csv").write_text("text\n" + "\n".join(TEXTS))
    model = ["auditing.test_evaluate:predict", "--classes", ",".join(CLASSES)]
    ended = run(capsys, "evaluate", *model, "--data", "data.csv", "--out", "evaluation.json")
    assert ended.code == 0, ended.err
    assert "macro-f1" in ended.out
    assert "wrong: good 75.0 %, label bad: good good" in ended.err
    again = run(capsys, "evaluate", *model, "--data", "data.csv", "--out", "evaluation.json")
    assert again.code == 0, again.err
    taken = run(capsys, "evaluate", *model, "--data", "data.csv", "--out", "unlabeled.csv")
    assert (taken.code, "--replace" in taken.err) == (2, True)
    assert run(capsys, "evaluate", *model, "--data", "data.csv", "--out", "unlabeled.csv", "--replace").code == 0
    (tmp_path / "unlabeled.csv").write_text("text\n" + "\n".join(TEXTS))
    printed = json.loads(run(capsys, "evaluate", *model, "--data", "data.csv", "--json").out)
    assert printed == json.loads((tmp_path / "evaluation.json").read_text())
    refused = run(capsys, "evaluate", *model, "--data", "unlabeled.csv")
    assert (refused.code, "--label" in refused.err) == (2, True)


def test_a_report_is_a_table():
    report = sg.audit(predict, TEXTS, LABELS, classes=CLASSES, explainers=["leave-one-out"])
    table = report.to_pandas()
    assert len(table) == len(report.rows)
    accuracy = table[table.measure == "accuracy"].iloc[0]
    assert accuracy.value == report.find("accuracy").value
    assert (accuracy.low, accuracy.high) == report.find("accuracy").interval


@pytest.fixture
def report(fewer_protocols):
    return sg.audit(predict, TEXTS, LABELS, classes=CLASSES, rationales=[None] * 5 + [[(0, 4)], None])


def test_an_audit_has_the_evaluation_with_the_explanations_of_wrong_predictions(report, evaluation):
    assert report.evaluation.confusion == evaluation.confusion
    assert report.evaluation["accuracy"] == report.find("accuracy").value == evaluation["accuracy"]
    errors = report.evaluation.errors
    assert [error.row for error in errors] == [5, 6, 2]
    for error in errors:
        assert (error.explanation.text, error.explanation.label) == (error.text, error.predicted)
        assert error.explanation.true_label == error.label
        assert error.explanation.is_wrong
    assert errors[0].explanation.rationales == ((0, 4),)


def test_the_page_of_an_audit_shows_the_predictions(report):
    section = report.to_html().split('<h2 id="predictions">')[1].split("</section>")[0]
    assert "Confusion matrix" in section
    assert '<th scope="row">bad</th><td><strong>2</strong></td><td>1</td><td>0</td>' in section
    assert section.count("✗ wrong: the label is") == 3
    assert re.findall(r"</span> (\w+)</h3>", section) == ["good", "bad", "bad"]  # the predicted classes
    assert "human rationale" in section
    assert 'id="predictions"' not in sg.audit(predict, TEXTS, classes=CLASSES).to_html()


def test_a_report_with_an_evaluation_comes_back_from_json(report, tmp_path):
    path = tmp_path / "report.json"
    report.to_json(path)
    restored = Report.from_json(path)
    assert restored.evaluation == report.evaluation
    assert restored.to_html() == report.to_html()
    broken = json.loads(path.read_text())
    broken["evaluation"]["per_class"][0]["recall"] = 0.9
    with pytest.raises(UserError, match=r"evaluation.per_class.0.recall is not as steadygaze writes it"):
        Report.from_dict(broken)


def test_texts_may_be_a_generator(evaluation):
    assert sg.evaluate(predict, (text for text in TEXTS), LABELS, classes=CLASSES).rows == evaluation.rows
    lengths = sg.load(lambda texts: [float(len(text)) for text in texts])
    values = [float(len(text)) for text in TEXTS]
    assert sg.evaluate(lengths, (text for text in TEXTS), values)["r2"] == 1.0
    assert [item.value for item in lengths.explain(text for text in TEXTS)] == values
    assert sg.audit(lengths, (text for text in TEXTS), values).find("accuracy").value == 1.0


def test_a_signature_identifies_model_data_output_and_seed(evaluation):
    """Equal calls have equal signatures; every change of the model, the texts or the seed changes them."""

    def signature(model=predict, texts=TEXTS, labels=LABELS, classes=CLASSES, **options):
        return sg.evaluate(model, texts, labels, classes=classes, **options).rows[0].signature

    why_pairs, about = [(text, "why") for text in TEXTS], [(text, "who") for text in TEXTS]

    def first(pairs):
        return predict([text for text, _ in pairs])

    signatures = [
        signature(),
        signature(lambda texts: predict(texts)[:, ::-1]),
        signature(seed=1),
        signature(labels=["good"] * 7),
        signature(first, why_pairs),
        signature(first, about),
    ]
    assert signature() == signatures[0] == evaluation.rows[0].signature
    assert len(set(signatures)) == len(signatures)
    data = sg.audit(predict, TEXTS, LABELS, classes=CLASSES).find("accuracy").settings["data"]
    assert data == evaluation.rows[0].settings["data"]


def test_class_names_in_brackets_are_printed():
    """Rich would read [bad] as markup and drop it, and fail at [/b]."""
    names = ["[bad]", "[/b]", "[good]"]
    evaluation = sg.evaluate(predict, TEXTS, ["[/b]"] * 7, classes=names)
    assert all(str(evaluation).count(name) == 3 for name in names)
    assert "[bad]" in evaluation._repr_html_()
    assert "[/b]" in str(sg.word_weights(predict, TEXTS * 3, classes=names))
