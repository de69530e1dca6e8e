"""The default explainer: signed and for both texts of a pair, except for the attention that a TextClassifier trains."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadygaze as sg
from adapters.folders import QUESTIONS, TEXTS
from commands import run
from estimator.tiny import TEXTS as TRAINED
from estimator.tiny import fitted, fitted_pair

PAIR = (TEXTS[2], QUESTIONS[0])
DEFAULT = {"steps": 20, "output": "logit"}


@pytest.mark.parametrize("item", [TEXTS[2], PAIR], ids=["single", "pair"])
def test_a_hugging_face_encoder_is_explained_by_signed_weights_of_all_words(
    item: Any, folder: Callable[[str], Path]
) -> None:
    explanation = sg.load(folder("bert")).explain(item)
    assert explanation.explainer == "integrated-gradients"
    assert min(explanation.weights) < 0 < max(explanation.weights)
    if item is PAIR:
        assert explanation.question_weights is not None
        assert any(explanation.question_weights)


@pytest.mark.slow
def test_the_default_of_an_encoder_sums_to_the_change_of_the_logit(folder: Callable[[str], Path]) -> None:
    """Completeness, within the error of 20 steps, as for the same settings by name."""
    model = sg.load(folder("bert"))
    by_default = model.explain(TEXTS[:3])
    named = model.explain(TEXTS[:3], "integrated-gradients", settings=DEFAULT)
    exact = model.explain(TEXTS[:3], "integrated-gradients", output="logit", settings={"steps": 500})
    for one, same, reference in zip(by_default, named, exact, strict=True):
        assert one.weights == same.weights
        np.testing.assert_allclose(one.weights, reference.weights, atol=0.05)
    probability = model.explain(TEXTS[0], output="probability")
    wanted = model.explain(TEXTS[0], "integrated-gradients", settings={**DEFAULT, "output": "probability"})
    assert probability.weights == wanted.weights != by_default[0].weights


def test_a_function_is_explained_by_leaving_words_out_of_both_texts() -> None:
    def agree(pairs: list[tuple[str, str]]) -> list[list[float]]:
        return [[0.9, 0.1] if "good" in text and "good" in question else [0.3, 0.7] for text, question in pairs]

    explanation = sg.explain(agree, ("a good film", "is it good"), classes=["yes", "no"])
    assert explanation.explainer == "leave-one-out"
    assert explanation.weights == pytest.approx((0, 0.6, 0))
    assert explanation.question_weights == pytest.approx((0, 0, 0.6))


def test_a_classifier_of_single_texts_shows_the_attention_that_it_trains() -> None:
    assert fitted().explain(TRAINED[0]).explainer == "attention"
    assert sg.explain(fitted(), TRAINED[0]).explainer == "attention"


def test_a_classifier_of_pairs_is_explained_in_both_texts() -> None:
    """Attention covers only the text."""
    for explanation in (fitted_pair().explain(PAIR), sg.explain(fitted_pair(), PAIR)):
        assert explanation.explainer == "leave-one-out"
        assert explanation.question_weights is not None


@pytest.mark.slow
def test_audit_word_weights_and_commands_use_the_same_default(
    folder: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder("bert")
    labels = list(sg.load(path).predict(TEXTS))
    report = sg.audit(path, TEXTS, labels)
    rated = {row.settings.get("explainer") for row in report.rows}
    assert "integrated-gradients" in rated
    assert "attention" not in rated
    shown = sg.load(path).explain(TEXTS)
    audited = [e for e in report.explanations if e.explainer == "integrated-gradients"]
    assert [e.weights for e in audited] == [pytest.approx(e.weights, abs=1e-5) for e in shown]
    assert set(sg.word_weights(path, TEXTS, min_texts=1).to_pandas()["explainer"]) == {"integrated-gradients"}
    printed = run(capsys, "explain", path, TEXTS[0], "--json").out
    assert json.loads(printed)["weights"] == pytest.approx(list(shown[0].weights), abs=1e-6)
