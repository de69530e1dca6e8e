"""Weights of words over a corpus."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import steadygaze as sg
from commands import run
from steadygaze.results import word_weights
from steadygaze.results.explanation import Explanation
from steadygaze.results.word_weights import WordWeight, WordWeights, word_weights_of

TEXTS = ["a good film", "a dull film", "good good cast", "Good and dull", "the cast", "a film"] * 3
CLASSES = ["bad", "good"]


def predict(texts):
    """The logit of "good" is 2 (goods − dulls) + ½."""
    logit = np.array([2 * (text.lower().count("good") - text.count("dull")) + 0.5 for text in texts])
    return np.stack([1 / (1 + np.exp(logit)), 1 / (1 + np.exp(-logit))], 1)


def explanation(text, weights, label="good"):
    tokens = text.split()
    spans = []
    for token in tokens:
        start = text.index(token, spans[-1][1] if spans else 0)
        spans.append((start, start + len(token)))
    return Explanation(text, tuple(tokens), tuple(spans), tuple(weights), label, {"bad": 0.2, "good": 0.8})


def test_shares_worked_by_hand():
    """Of class good: |weights| are 3 + 1 in the first text and 4 + 2 in the second: 10; "good" has 3 + 4, "dull" −2."""
    items = [
        explanation("good film", [3.0, 1.0]),
        explanation("Good good dull", [1.0, 3.0, -2.0]),
        explanation("dull", [5.0], label="bad"),
    ]
    result = word_weights_of({"lime": items}, "model", min_texts=1)
    good = {weight.word: weight for weight in result if weight.label == "good"}
    assert {word: weight.share for word, weight in good.items()} == pytest.approx(
        {"good": 0.7, "dull": -0.2, "film": 0.1}
    )
    assert (good["good"].mean, good["good"].n, good["dull"].mean) == (3.5, 2, -2.0)
    assert [weight.word for weight in result.top("good")] == ["good", "dull", "film"]
    assert [weight.share for weight in result.top("bad")] == [1.0]
    assert result.texts == {"bad": 1, "good": 2}


def test_the_interval_is_that_of_resampled_texts():
    """Two texts: a resample has share 3/4 (both the first), 7/10 (each once) or 4/6 (both the second)."""
    items = [explanation("good film", [3.0, 1.0]), explanation("good dull", [4.0, -2.0])]
    weight = word_weights_of({"lime": items}, "model", min_texts=1).top("good")[0]
    assert (weight.low, weight.high) == pytest.approx((4 / 6, 3 / 4))


def test_the_words_of_both_texts_of_a_pair_count():
    """|weights| are 3 + 1 in the first text and 4 in the second: 8."""
    item = explanation("good film", [3.0, 1.0])
    second = {"question_tokens": ("Dull",), "question_spans": ((0, 4),), "question_weights": (-4.0,)}
    result = word_weights_of({"lime": [replace(item, question="Dull", **second)]}, "model", min_texts=1)
    assert {weight.word: weight.share for weight in result} == {"good": 3 / 8, "film": 1 / 8, "dull": -1 / 2}
    assert result.remarks == ()
    one = word_weights_of({"attention": [replace(item, question="Dull")]}, "model", min_texts=1)
    for text in (str(one), one.body()):
        assert text.count("attention: only the words of the first text of each pair have weights.") == 1


def test_weights_below_the_floor_are_named():
    items = [replace(explanation("good film", [0.001, 0.002]), unit="probability")] * 3
    result = word_weights_of({"leave-one-out": items}, "model")
    for text in (str(result), result.body()):
        assert text.count("leave-one-out, good: no word matters much in 3 texts.") == 1
    strong = replace(items[0], weights=(0.4, 0.002))
    assert word_weights_of({"leave-one-out": [*items, strong]}, "model").remarks == ()


def test_rare_words_are_left_out():
    items = [explanation("good film", [3.0, 1.0]), explanation("good dull", [4.0, -2.0])]
    assert [weight.word for weight in word_weights_of({"lime": items}, "model", min_texts=2)] == ["good"]


def test_function_words_and_punctuation_are_left_out_unless_requested():
    """Of 9, "the", "of" and "." have 1 + 1 + 2; "not" and "too" carry meaning."""
    items = [explanation("The plot of it is not too good .", [1, 0.5, 1, 0, 0, 2.5, 1, 1, -2])]
    result = word_weights_of({"lime": items}, "model", min_texts=1)
    assert [weight.word for weight in result.top("good")] == ["not", "good", "too", "plot"]
    assert result.left_out == {"lime": pytest.approx(4 / 9)}
    assert "left out: function words and punctuation, 44 % of the weight of lime" in result.note
    assert result.note in result.to_html()
    everything = word_weights_of({"lime": items}, "model", min_texts=1, function_words=True)
    assert [weight.word for weight in everything.top("good")][:2] == ["not", "."]
    assert everything.left_out == {}
    shares = {weight.word: weight.share for weight in everything}
    assert all(weight.share == shares[weight.word] for weight in result), "a share of all weight, in both"


def test_contractions_of_function_words_are_left_out_and_negations_stay():
    """Tokenizers split them off: it 's, they ’ll, is n't."""
    items = [explanation("it 's they ’ll I'm is n't don't film", [1] * 9)]
    result = word_weights_of({"lime": items}, "model", min_texts=1)
    assert {weight.word for weight in result} == {"n't", "don't", "film"}


def test_the_command_and_the_call_list_function_words_if_asked(capsys, tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(f"{text},good" for text in TEXTS))
    monkeypatch.chdir(tmp_path)
    model = ["results.test_word_weights:predict", "--classes", "bad,good"]
    words = ("word-weights", *model, "--data", "data.csv", "--min-texts", "1", "--json")
    few, all_words = (json.loads(run(capsys, *words, *more).out) for more in ((), ("--function-words",)))
    assert few["left_out"] == {"leave-one-out": 0.0}
    assert all_words["left_out"] == {}
    called = sg.word_weights(sg.load(predict, classes=CLASSES), TEXTS, min_texts=1, function_words=True)
    assert called.left_out == {}


def test_words_in_few_texts_are_marked():
    """film is in 20 texts, good in 19."""
    items = [explanation("good film", [3.0, 1.0])] * 19 + [explanation("film", [1.0])]
    weights = word_weights_of({"lime": items}, "model")
    assert {weight.word: weight.mark for weight in weights} == {"good": "*", "film": ""}
    for text in (str(weights), weights.body()):
        assert text.count("%]*") + text.count("%*</td>") == 1
        assert "* in fewer than 20 texts: the interval is too narrow" in text
    assert "narrow" not in str(word_weights_of({"lime": items}, "model", min_texts=20))


def test_intervals_of_frequent_words_cover_about_nine_in_ten():
    """The simulation of the docstring, with 20 expected texts."""
    random, covered = np.random.default_rng(0), []
    for seed in range(5):
        matrix = np.zeros((200, 200))
        for row in matrix:
            row[random.choice(200, 20, replace=False)] = random.dirichlet(np.full(20, 0.5))
        low, high = word_weights._interval(matrix, matrix.sum(1), seed)
        covered += ((low <= 1 / 200) & (high >= 1 / 200)).tolist()
    assert np.mean(covered) == pytest.approx(0.9, abs=0.03)


def test_several_explainers_of_any_model_side_by_side(tmp_path):
    result = sg.word_weights(predict, TEXTS, explainers=["leave-one-out", "kernel-shap"], classes=CLASSES)
    assert result.explainers == ["leave-one-out", "kernel-shap"]
    for name in result.explainers:
        assert result.top("good", name)[0].word == "good"
        assert result.top("bad", name)[0].word == "dull"
    weight = result.top("good")[0]
    assert weight.low <= weight.share <= weight.high
    assert set(result.to_pandas()["explainer"]) == set(result.explainers)
    assert json.loads(result.to_json(tmp_path / "weights.json"))["texts"] == {"bad": 3, "good": 15}
    assert "good" in result.to_html(tmp_path / "weights.html")
    assert "leave-one-out" in str(result)
    assert "<table" in result._repr_html_()


def test_the_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(f"{text},good" for text in TEXTS))
    model = ["results.test_word_weights:predict", "--classes", "bad,good"]
    options = ["--data", "data.csv", "--explainer", "leave-one-out", "--explainer", "lime"]
    ended = run(capsys, "word-weights", *model, *options, "--html", "page.html")
    assert ended.code == 0, ended.err
    assert (tmp_path / "page.html").exists()
    assert "dull" in ended.out
    printed = json.loads(run(capsys, "word-weights", *model, *options, "--json").out)
    assert {weight["explainer"] for weight in printed["weights"]} == {"leave-one-out", "lime"}
    ended = run(capsys, "word-weights", *model, *options, "--attention", "rollout")
    assert "attention='rollout' aggregates the heads and layers of a Hugging Face model" in ended.err


def test_a_terminal_shows_all_requested_words():
    words = [f"word{i}" for i in range(15)]
    items = [explanation(" ".join(words), range(15, 0, -1))]
    weights = word_weights_of({"lime": items}, "model", words=15, min_texts=1)
    assert [word for word in words if f"{word} " not in str(weights)] == []
    assert len(weights.top("good")) == 10


def test_words_keep_their_letters():
    """`casefold` would show "strasse"."""
    items = [explanation("Straße straße", [1.0, 2.0])]
    weights = word_weights_of({"lime": items}, "model", min_texts=1)
    assert [weight.word for weight in weights] == ["straße"]
    assert "(1 text)" in str(weights)
    assert "(1 text)" in weights.body()


def test_an_unknown_class_or_explainer_is_refused():
    weights = word_weights_of({"lime": [explanation("good", [1.0])]}, "model", min_texts=1)
    with pytest.raises(sg.UserError, match=r"unknown class 'god': did you mean 'good'\?"):
        weights.top("god")
    with pytest.raises(sg.UserError, match=r"unknown explainer 'shap'.*Known: lime"):
        weights.top("good", "shap")


def test_an_explainer_is_needed():
    with pytest.raises(sg.UserError, match="explainers is empty"):
        sg.word_weights(predict, TEXTS, explainers=[], classes=CLASSES)


def test_a_negative_seed_is_refused():
    with pytest.raises(sg.UserError, match="seed must be a whole number from 0 up"):
        sg.word_weights(predict, TEXTS, classes=CLASSES, seed=-1)


def test_weights_of_a_regression_model_are_those_of_its_output():
    """Each "good" adds 2 to the value, each "dull" subtracts 1."""

    def value(texts):
        return [2.0 * text.lower().count("good") - text.count("dull") for text in texts]

    weights = sg.word_weights(value, TEXTS)
    assert dict(weights.texts) == {"value": len(TEXTS)}
    assert {weight.word: weight.mean for weight in weights.top("value")[:2]} == pytest.approx(
        {"good": 8 / 3, "dull": -1}
    )
    assert "dull" in str(weights)


@pytest.mark.parametrize("explainers", [["lime", "lime"], [None, "leave-one-out"]])
def test_explainers_of_the_same_name_are_refused(explainers):
    with pytest.raises(sg.UserError, match="have the same name; pass them in separate calls"):
        sg.word_weights(predict, TEXTS, explainers, classes=CLASSES)


@pytest.mark.slow
def test_memory_of_the_intervals_does_not_grow_with_the_texts():
    """2,000 resamples of 20,000 texts at once are 160 MB; a chunk is 16 MB in a few copies."""
    items = [explanation("good film", [3.0, 1.0]), explanation("good dull", [4.0, -2.0])] * 10_000
    tracemalloc.start()
    weight = word_weights_of({"lime": items}, "model").top("good")[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6
    deviation = 1.96 * np.sqrt(np.mean([(3 - 0.7 * 4) ** 2, (4 - 0.7 * 6) ** 2]) / len(items)) / 5  # of a ratio
    assert (weight.low, weight.high) == pytest.approx((0.7 - deviation, 0.7 + deviation), abs=deviation / 5)


@pytest.mark.parametrize(("word", "shown"), [("-", "“-” 4.3 %"), ("well-made", "well-made 4.3 %")])
def test_a_word_of_punctuation_is_quoted(word, shown):
    weight = WordWeight(word, "good", "lime", 0.043, 0.01, 0.07, 0.1, 30)
    assert str(WordWeights("m", (weight,), {"good": 30})).count(shown) == 1
