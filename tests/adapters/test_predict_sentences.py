"""Predictions from single sentences: which give the label of their text, and which change it."""

import json
import re
from typing import Any

import numpy as np
import pytest

import steadygaze as sg
from commands import run
from steadygaze.core.errors import CoverageWarning, UserError
from steadygaze.data.batches import collate
from steadygaze.models.inference import inference

CLASSES = ["bad", "good"]
TEXTS = ["We came. It was dirty. We left.", "It was clean. We stayed.", "Dr. Bell came."]


def strict(texts: list[str]) -> np.ndarray:
    """Good is the default class: anything that is not dirty."""
    return np.array([[0.9, 0.1] if "dirty" in text else [0.2, 0.8] for text in texts])


@pytest.fixture(scope="module")
def rationalizer() -> Any:
    draw = np.random.default_rng(0)
    texts = [f"{'It was dirty.' if bad else 'It was clean.'} We came." for bad in draw.integers(2, size=60)]
    texts = [text if draw.random() < 0.5 else f"We left. {text}" for text in texts]
    labels = ["bad" if "dirty" in text else "good" for text in texts]
    return sg.TextClassifier("average", "rnp", epochs=1, seed=0, settings={"dimension": 8}, device="cpu").fit(
        texts, labels
    )


def test_a_default_class_is_seen_in_the_sentences_that_give_it() -> None:
    bad, good = sg.predict_sentences(strict, TEXTS, classes=CLASSES)
    assert (bad.label, bad.texts, bad.sentences, bad.same, bad.every_sentence) == ("bad", 1, 3, 1, 0)
    assert (good.label, good.texts, good.sentences, good.same, good.every_sentence) == ("good", 2, 3, 3, 1)
    assert good.several == 1, "a text of one sentence has no other selection"
    assert good.finding.endswith("any selection gives it in 1 of 1 text of two or more sentences.")
    (one,) = sg.predict_sentences(strict, TEXTS[2:], classes=CLASSES)
    assert one.finding == "good: 1 of 1 sentences alone give this label; no text has two or more sentences."


def test_a_counter_sentence_is_counted_with_the_texts_that_it_changes() -> None:
    bad, good = sg.predict_sentences(strict, TEXTS, classes=CLASSES)
    assert [(item.sentence, item.label, item.flips, item.n) for item in good.counter_sentences] == [
        ("It was dirty.", "bad", 2, 2)
    ]
    assert [item.flips for item in bad.counter_sentences] == [0, 0, 0], "no sentence removes the dirt"


def test_a_counter_sentence_in_upper_and_lower_case_is_listed_once() -> None:
    texts = ["It was dirty. It was Dirty. It was fine.", "It was fine. It was fine too."]
    results = sg.predict_sentences(lambda texts: strict([text.lower() for text in texts]), texts, classes=CLASSES)
    listed = [item.sentence.lower() for part in results for item in part.counter_sentences]
    assert listed
    assert len(listed) == len({*listed})


def test_questions_and_given_sentences_are_used() -> None:
    def asked(pairs: list[tuple[str, str]]) -> np.ndarray:
        return np.array([[0.9, 0.1] if text.startswith(question) else [0.2, 0.8] for text, question in pairs])

    result = sg.predict_sentences(asked, [("We left. She came.", "She")], classes=CLASSES)
    assert [(item.sentence, item.label) for item in result.sentences] == [("We left.", "good"), ("She came.", "bad")]


def test_a_rationalizer_reads_each_sentence_at_its_place(rationalizer: Any) -> None:
    """The selected sentence gives the prediction of the text, and every other one that of its forced selection."""
    texts = ["We left. It was dirty. We came.", "It was clean."]
    result = sg.predict_sentences(rationalizer, texts)
    probabilities = rationalizer.predict_proba(texts)
    selected = [item for item in result.sentences if item.selected]
    assert [item.row for item in selected] == [0, 1]
    assert [item.probability for item in selected] == pytest.approx(probabilities.max(-1).tolist(), rel=1e-5)
    assert [item.sentence for item in result.sentences] == ["We left.", "It was dirty.", "We came.", "It was clean."]
    saved = rationalizer.stored_
    batch = collate(saved.data(texts, None), np.array([0]))
    with inference(saved.model):
        forced = saved.model.read(batch, saved.model.sentences(batch) == 1).softmax(-1).max()
    assert result.sentences[1].probability == pytest.approx(float(forced), rel=1e-5)


def test_a_regression_model_has_no_labels_of_sentences() -> None:
    with pytest.raises(UserError, match="predict_sentences needs a classifier"):
        sg.predict_sentences(lambda texts: [1.0 for _ in texts], TEXTS)


def test_the_command_prints_what_python_returns(rationalizer: Any, capsys: Any, tmp_path: Any) -> None:
    rationalizer.save(tmp_path / "model")
    command = ["explain", tmp_path / "model", *TEXTS, "--each-sentence", "--device", "cpu"]
    ended = run(capsys, *command, "--json")
    assert ended.code == 0, ended.err
    assert (
        json.loads(ended.out)["classes"]
        == sg.predict_sentences(sg.load(tmp_path / "model"), TEXTS).to_dict()["classes"]
    )
    assert "sentences alone give this label" in run(capsys, *command).out
    for option, value in (("--html", tmp_path / "page.html"), ("--explainer", "lime"), ("--target", "bad")):
        refused = run(capsys, *command, option, value)
        assert (refused.code, (tmp_path / "page.html").exists()) == (2, False)
        assert f"leave out {option}" in refused.err


@pytest.mark.parametrize("empty", ["", "  ", None])
def test_an_empty_text_has_no_sentences_and_a_warning_names_it(empty: str | None) -> None:
    with pytest.warns(CoverageWarning, match=re.escape("no prediction for 1 empty text: texts[1]")):
        found = sg.predict_sentences(strict, [TEXTS[0], empty, TEXTS[1]], classes=CLASSES)
    expected = sg.predict_sentences(strict, TEXTS[:2], classes=CLASSES)
    assert found.classes == expected.classes
    assert [(item.row, item.sentence) for item in found.sentences] == [
        (2 * item.row, item.sentence) for item in expected.sentences
    ]
    with pytest.warns(CoverageWarning, match="no prediction for 2 empty texts"):
        assert sg.predict_sentences(strict, [empty, ""], classes=CLASSES).sentences == ()
