"""Multi-label and regression models: predicted, explained, evaluated and audited per output."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import steadygaze as sg
from adapters.folders import LABELS, TEXTS, network, tokenizer
from commands import run
from steadygaze.core.errors import UserError

MANY = [f"{text} {word}" for text in TEXTS for word in ("film good", "cast bad", "the film")]


def transformer(**changes):
    return network("bert", **changes), tokenizer("bert")


def multi_label():
    return sg.load(transformer(problem_type="multi_label_classification"))


def one_number():
    net, words = transformer(num_labels=1)
    return sg.load((net, words)), net, words


def stars(texts):
    """Two for "good", one for "film", minus three for "bad"."""
    return [2.0 * text.count("good") + text.count("film") - 3 * text.count("bad") for text in texts]


def direct(net, words, text):
    with torch.no_grad():
        return net(**words(text, return_tensors="pt")).logits[0]


def test_a_multi_label_model_predicts_sigmoids_and_booleans():
    model = multi_label()
    net, words = transformer()
    expected = np.array([direct(net, words, text).sigmoid().numpy() for text in TEXTS])
    assert model.outputs == tuple(LABELS)
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, atol=1e-5)
    assert model.predict(TEXTS).tolist() == (expected >= 0.5).tolist()
    assert model.kind == "a Hugging Face multi-label classifier (bert)"
    assert model.score(TEXTS, expected >= 0.5) == 1.0
    sets = [{name for name, has in zip(LABELS, row, strict=True) if has} for row in expected >= 0.5]
    assert model.score(TEXTS, [*sets[:4], {"negative", "neutral", "positive"} - sets[4]]) == 0.8


def test_an_output_of_a_multi_label_model_is_explained():
    model, (net, words) = multi_label(), transformer()
    explanation = model.explain(TEXTS[0], explainer="leave-one-out", target="neutral")
    full, without = (direct(net, words, text)[1] for text in (TEXTS[0], "A , unbelievable film!"))
    assert explanation.weights[1] == pytest.approx(float(full.sigmoid() - without.sigmoid()), abs=1e-5)
    logit = model.explain(TEXTS[0], explainer="leave-one-out", target="neutral", output="logit")
    assert logit.weights[1] == pytest.approx(float(full - without), abs=1e-4)
    assert explanation.target == "neutral"
    assert explanation.probabilities["neutral"] == pytest.approx(float(full.sigmoid()), abs=1e-5)
    assert set(explanation.probabilities) == {"neutral", "not neutral"}
    by_default = model.explain(TEXTS[0], target="neutral")
    assert (by_default.explainer, by_default.target) == ("integrated-gradients", "neutral")
    attention = model.explain(TEXTS[0], "attention", target="neutral")  # attention has no class
    assert sum(attention.weights) == pytest.approx(1)


def test_a_regression_model_predicts_and_explains_its_value():
    model, net, words = one_number()
    expected = [float(direct(net, words, text)[0]) for text in TEXTS]
    assert model.outputs == ("value",)
    np.testing.assert_allclose(model.predict(TEXTS), expected, atol=1e-5)
    explanation = model.explain(TEXTS[0], explainer="leave-one-out")
    without = float(direct(net, words, "A , unbelievable film!")[0])
    assert explanation.weights[1] == pytest.approx(expected[0] - without, abs=1e-4)
    assert (explanation.label, explanation.probabilities) == ("value", {})
    assert explanation.value == pytest.approx(expected[0], abs=1e-5)
    assert f"→ value {expected[0]:.4g}" in str(explanation)
    integrated = model.explain(TEXTS[0], explainer="integrated-gradients")
    assert any(integrated.weights)
    with pytest.raises(UserError, match="a regression model without probabilities"):
        model.predict_proba(TEXTS)
    assert model.score(TEXTS, expected) == pytest.approx(1)


def test_a_function_that_returns_numbers_is_a_regression_model():
    model = sg.load(stars)
    assert (model.task, model.kind) == ("regression", "a black box (regression)")
    assert model.predict(["a good film", "bad"]).tolist() == [3.0, -3.0]
    explanation = model.explain("a good film not bad", explainer="leave-one-out")
    assert dict(zip(explanation.tokens, explanation.weights, strict=True)) == pytest.approx(
        {"a": 0, "good": 2, "film": 1, "not": 0, "bad": -3}
    )
    table = model.explain(["good", "bad film"], explainer="leave-one-out").to_pandas()
    assert table.weight.tolist() == pytest.approx([2, -3, 1])
    shapley = model.explain("good bad", explainer="kernel-shap").weights
    assert shapley == pytest.approx((2, -3), abs=1e-6)


def test_numbers_of_a_black_box_keep_double_precision():
    """Single precision has no 16,777,217 and ends at 3.4e38."""
    model = sg.load(lambda texts: [16777216.0 + len(text.split()) for text in texts])
    assert model.predict(["a", "a b"]).tolist() == [16777217.0, 16777218.0]
    assert model.explain("a b c", explainer="leave-one-out").weights == (1.0, 1.0, 1.0)
    assert model.explain("a").value == 16777217.0
    assert sg.evaluate(model, ["a", "a b"], [16777217.0, 16777218.0])["mean-absolute-error"] == 0.0
    assert sg.load(lambda texts: [2e39] * len(texts)).predict(["a"]).tolist() == [2e39]


def test_a_function_without_names_that_returns_rows_still_needs_classes():
    with pytest.raises(UserError, match="has no classes_"):
        sg.load(lambda texts: [[0.5, 0.5]] * len(texts))
    with pytest.raises(UserError, match="expected finite numbers"):
        sg.load(lambda texts: [math.inf] * len(texts)).predict(["a"])


def test_scikit_learn_regressors_and_multi_label_classifiers_are_known():
    pipeline = make_pipeline(CountVectorizer(), LinearRegression()).fit(MANY, stars(MANY))
    np.testing.assert_allclose(sg.load(pipeline).predict(TEXTS), pipeline.predict(TEXTS), atol=1e-5)
    has = np.array([["good" in text, "bad" in text] for text in MANY], int)
    several = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression())).fit(MANY, has)
    model = sg.load(several, classes=["good", "bad"])
    np.testing.assert_allclose(model.predict_proba(TEXTS), several.predict_proba(TEXTS), atol=1e-6)
    assert model.score(MANY, has) == 1.0


def test_evaluation_of_a_regression_model_by_hand():
    evaluation = sg.evaluate(stars, ["good", "good film", "bad"], [1, 3, -1])  # predicted: 2, 3, -3
    assert evaluation["mean-absolute-error"] == pytest.approx(1)  # (1 + 0 + 2) / 3
    assert evaluation["r2"] == pytest.approx(1 - 5 / 8)
    assert evaluation["correlation"] == pytest.approx(np.corrcoef([2, 3, -3], [1, 3, -1])[0, 1])
    assert "mean-absolute-error" in str(evaluation)
    assert json.loads(evaluation.to_json())["per_class"] == []
    assert json.loads(evaluation.to_json())["reliability"] == []  # a number has no confidence
    table = evaluation.to_pandas()
    assert table.measure.tolist() == ["mean-absolute-error", "r2", "correlation"]
    assert table.value.tolist() == [row.value for row in evaluation]
    assert (table.low[0], table.high[0]) == evaluation.rows[0].interval
    assert table.n.tolist() == [3, 3, 3]


def test_intervals_of_regression_scores_by_enumeration():
    """Each of 24 resamples with different values has more than 2.5 % of the mass: the ends are the extremes."""
    true, value = np.array([1.0, 3.0, -1.0]), np.array([2.0, 3.0, -3.0])
    evaluation = sg.evaluate(stars, ["good", "good film", "bad"], true)
    draws = [list(draw) for draw in itertools.product(range(3), repeat=3) if len(set(draw)) > 1]
    r2 = [r2_score(true[draw], value[draw]) for draw in draws]
    correlations = [np.corrcoef(true[draw], value[draw])[0, 1] for draw in draws]
    assert evaluation.rows[1].interval == pytest.approx((min(r2), max(r2)))
    assert evaluation.rows[2].interval == pytest.approx((min(correlations), max(correlations)))


def test_equal_labels_have_neither_r2_nor_correlation():
    """The standard deviation of three times 0.1 is not 0 in floating point."""
    evaluation = sg.evaluate(stars, ["good", "good film", "bad"], [0.1, 0.1, 0.1])
    assert [row.measure for row in evaluation] == ["mean-absolute-error"]


@pytest.mark.slow
def test_an_output_of_a_multi_label_model_is_evaluated_and_audited():
    model = multi_label()
    labels = model.predict(MANY)
    assert sg.evaluate(model, MANY, labels, target="neutral")["accuracy"] == 1.0
    evaluation = sg.evaluate(model, MANY, labels[:, 1], target="neutral")
    assert evaluation["accuracy"] == 1.0
    assert all(item.low >= 0.5 and item.accuracy == 1.0 for item in evaluation.reliability)  # neutral, or not
    report = sg.audit(model, MANY, labels[:, 1], target="neutral", explainers=["leave-one-out"])
    assert report.find("accuracy").value == 1.0
    assert report.facts["output"] == "neutral"


def test_a_regression_model_is_audited_above_and_below_its_median():
    values = stars(MANY)
    report = sg.audit(stars, MANY, values, explainers=["leave-one-out"])
    assert report.find("accuracy").value == 1.0
    assert float(report.facts["threshold"]) == np.median(values)
    assert float(report.facts["scale"]) == pytest.approx(np.std(values), rel=1e-5)
    other = sg.audit(stars, MANY, values, threshold=100, explainers=["leave-one-out"])
    assert float(other.facts["threshold"]) == 100


class Words:
    """A multi-label model: one label for each word, at 0.9 or 0.1; "even" is at 0.5 for every label."""

    multilabel_ = True

    def __init__(self, *words, classes=None):
        self.words, self.classes_ = words, np.arange(len(words)) if classes is None else classes

    def predict_proba(self, texts):
        has = np.array([[word in text for word in self.words] for text in texts])
        even = np.array([["even" in text] for text in texts])
        return np.where(even, 0.5, np.where(has, 0.9, 0.1))


WORDS = ["good", "bad", "good bad"]
WORDS_MODEL = Words("good", "bad", classes=["good", "bad"])


def test_integers_in_a_set_are_names_of_labels():
    """Two of three texts are right: "bad" does not have the label 0."""
    model = sg.load(Words("good", "bad"))
    for labels in ([{0}, {0}, {0, 1}], [[1, 0], [1, 0], [1, 1]], np.array([[1, 0], [1, 0], [1, 1]])):
        assert sg.evaluate(model, WORDS, labels, target=0)["accuracy"] == pytest.approx(2 / 3)
        assert model.score(WORDS, labels) == pytest.approx(2 / 3)
    outputs = [sg.evaluate(model, WORDS, [1, 1, 1], target=k).rows[0].settings["output"] for k in (0, 1)]
    assert outputs == ["0", "1"]
    three = sg.load(Words("good", "bad", "rude"))
    assert sg.evaluate(three, WORDS, [{0}, {1}, {0, 1}], target=2)["accuracy"] == 1.0
    assert sg.evaluate(three, WORDS, [{0}, frozenset(), {2}], target=2)["accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([{"good"}, {"Bad"}, set()], r"labels\[1\] has the label 'Bad', which is not an output of .*good, bad"),
        ([["good"], ["dull"], []], r"labels\[1\] has the label 'dull'"),
        ([[1, 0], [1, 0, 1], [0, 0]], r"labels\[1\] has 3 values, but the model has 2 outputs"),
        ([[1], [0], [0]], r"labels\[0\] has 1 value, but the model has 2 outputs"),
        ([[1, 0], [1, 2], [0, 0]], r"labels\[1\] is \[1, 2\]; a row of labels has only 0 and 1"),
        ([[1, 0], [1, 0]], "3 texts and 2 labels"),
    ],
)
def test_labels_that_do_not_fit_the_outputs_are_named(labels, sentence):
    model = sg.load(WORDS_MODEL)
    with pytest.raises(UserError, match=sentence):
        sg.evaluate(model, WORDS, labels, target="good")
    with pytest.raises(UserError, match=sentence):
        model.score(WORDS, labels)


def test_columns_of_a_data_frame_are_matched_by_name():
    pandas = pytest.importorskip("pandas")
    model = sg.load(WORDS_MODEL)
    frame = pandas.DataFrame({"bad": [0, 1, 1], "good": [1, 0, 1]})
    assert model.score(WORDS, frame) == sg.evaluate(model, WORDS, frame, target="good")["accuracy"] == 1.0
    assert model.score(WORDS, pandas.DataFrame(frame[["good", "bad"]].to_numpy())) == 1.0
    assert sg.evaluate(model, WORDS, frame[["good"]], target="good")["accuracy"] == 1.0
    with pytest.raises(UserError, match="the labels have the columns bad, kind; the model has the outputs good, bad"):
        model.score(WORDS, frame.rename(columns={"good": "kind"}))


def test_a_probability_of_one_half_is_not_a_label_anywhere():
    model = sg.load(WORDS_MODEL)
    assert model.predict(["even"]).tolist() == [[False, False]]
    assert model.score(["even"], [[0, 0]]) == 1.0
    assert sg.evaluate(model, ["even"], [[0, 0]], target="good")["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: multi_label().explain(TEXTS[0]), "the outputs negative, neutral, positive: choose one with target="),
        (lambda: multi_label().explain(TEXTS[0], target="toxic"), "'toxic' is not one of them"),
        (lambda: sg.audit(multi_label(), TEXTS), r"choose one with target='negative' \(--target negative\)"),
        (lambda: sg.fit_explainer(multi_label(), MANY * 2), r"pass one, as in model\.for_output\('negative'\)"),
        (lambda: sg.word_weights(multi_label(), MANY), r"choose one with target='negative' \(--target negative\)"),
        (lambda: sg.audit(multi_label(), TEXTS, target="neutral", threshold=1), "threshold= is for regression"),
        (lambda: sg.audit(stars, MANY, threshold="abc"), "threshold must be a finite number"),
        (lambda: sg.audit(stars, MANY, threshold=math.nan), "threshold must be a finite number"),
        (lambda: sg.explain(stars, "good", device="gpu"), "unknown device 'gpu'"),
        (lambda: sg.audit(transformer(), TEXTS, target="neutral"), "target= and threshold= are for multi-label and"),
        (lambda: sg.evaluate(stars, ["a", "b"], [1, "many"]), r"labels\[1\] is 'many'; a regression model needs"),
    ],
)
def test_errors_name_the_outputs_and_the_fix(call, sentence):
    with pytest.raises(UserError, match=sentence):
        call()


def save_models_and_data():
    net, words = transformer(problem_type="multi_label_classification")
    net.save_pretrained("several")
    words.save_pretrained("several")
    Path("stars_module.py").write_text(
        "def stars(texts):\n    return [2.0 * t.count('good') - t.count('bad') for t in texts]\n"
    )
    rows = "".join(
        f'"{text}",{2.0 * text.count("good") - text.count("bad") + 0.5},{i % 2}\n' for i, text in enumerate(MANY)
    )
    Path("data.csv").write_text("text,stars,neutral\n" + rows)


@pytest.mark.slow
def test_commands_take_an_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_models_and_data()
    record = json.loads(run(capsys, "predict", "several", TEXTS[0], "--json").out)
    assert record["labels"] == [name for name, value in record["probabilities"].items() if value >= 0.5]
    assert json.loads(run(capsys, "predict", "stars_module:stars", "good", "--json").out)["values"] == {"value": 2.0}
    assert run(capsys, "predict", "stars_module:stars", "good").out == "value\t2\tgood\n"
    explanation = json.loads(run(capsys, "explain", "stars_module:stars", "good bad", "--json").out)
    assert (explanation["value"], explanation["weights"]) == (1.0, [2.0, -1.0])
    assert run(capsys, "explain", "several", TEXTS[0], "--target", "neutral", "--json").code == 0
    labeled = ["explain", "several", "--file", "data.csv", "--label", "neutral", "--target", "neutral", "--json"]
    wrong = [json.loads(line) for line in run(capsys, *labeled).out.splitlines()]
    assert {record["true_label"] for record in wrong} == {"neutral", "not neutral"}
    numbers = run(capsys, "explain", "stars_module:stars", "--file", "data.csv", "--label", "neutral")
    assert (numbers.code, "use evaluate" in numbers.err) == (2, True)
    refused = run(capsys, "explain", "several", TEXTS[0])
    assert (refused.code, "--target negative" in refused.err) == (2, True)
    scores = json.loads(
        run(capsys, "evaluate", "stars_module:stars", "--data", "data.csv", "--label", "stars", "--json").out
    )
    assert {row["measure"]: row["value"] for row in scores["rows"]}["mean-absolute-error"] == pytest.approx(0.5)


def test_commands_read_lists_of_labels_and_weigh_the_words_of_an_output(tmp_path, monkeypatch, capsys):
    """Of three texts, "bad" is labeled good: accuracy 2/3."""
    monkeypatch.chdir(tmp_path)
    labels = [["good"], ["good"], ["good", "bad"]]
    rows = [
        {"text": text, "label": label, "none": [], "row": [0, 1]} for text, label in zip(WORDS, labels, strict=True)
    ]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 2))
    model = ["adapters.test_single_output:WORDS_MODEL", "--data", "data.jsonl"]

    def accuracy(*options):
        ended = run(capsys, "evaluate", *model, "--json", *options)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)["rows"][0]["value"]

    assert accuracy("--target", "good") == pytest.approx(2 / 3)
    assert accuracy("--target", "good", "--label", "none") == pytest.approx(1 / 3)
    assert accuracy("--target", "bad", "--label", "row") == pytest.approx(2 / 3)
    weights = json.loads(run(capsys, "word-weights", *model, "--target", "bad", "--json").out)
    assert weights["texts"] == {"bad": 6}
    assert weights["weights"][0] == {**weights["weights"][0], "word": "bad", "label": "bad", "share": 1.0}
    refused = run(capsys, "word-weights", *model)
    assert (refused.code, "--target good" in refused.err) == (2, True)


@pytest.mark.slow
def test_the_command_audits_an_output(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_models_and_data()
    audit = ["--data", "data.csv", "--explainer", "leave-one-out", "--json"]
    several = run(capsys, "audit", "several", *audit, "--label", "neutral", "--target", "neutral")
    assert several.code == 0, several.err
    value = run(capsys, "audit", "stars_module:stars", *audit, "--label", "stars", "--threshold", "0.2")
    assert value.code == 0, value.err
    assert json.loads(value.out)["facts"]["threshold"] == "0.2"
