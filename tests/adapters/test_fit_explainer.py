"""sg.fit_explainer: whatever the black box is, a selector learns which words it goes by."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import steadygaze as sg
from adapters.folders import save
from estimator import tiny
from opinions import BAD, CLASSES, GOOD, QUICK, lexicon, texts
from steadygaze.adapters.fit_explainer import fit_explainer, load_explainer
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.core.errors import HealthWarning, UserError
from steadygaze.estimator.explain_texts import ResolvedRequest, explain_texts
from steadygaze.results.health import ProblemKind

pytestmark = pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")


def share_of_found_words(fitted: TextExplainer) -> float:
    """How often the one word that matters is selected."""
    explained = fitted.explain(texts(60, seed=9))
    assert isinstance(explained, list)
    picked = [
        {token for token, weight in zip(explanation.tokens, explanation.weights, strict=True) if weight}
        for explanation in explained
    ]
    return float(np.mean([bool(words & {*GOOD, *BAD}) for words in picked]))


@pytest.fixture(scope="module")
def fitted() -> TextExplainer:
    return fit_explainer(lexicon, texts(), "l2x", k=2, classes=CLASSES, settings=QUICK)


@pytest.mark.slow
def test_the_words_that_matter_are_selected(fitted: TextExplainer) -> None:
    assert share_of_found_words(fitted) > 0.9


def test_exactly_k_words_have_a_weight(fitted: TextExplainer) -> None:
    explained = fitted.explain(texts(20, seed=3))
    assert isinstance(explained, list)
    assert {sum(weight > 0 for weight in explanation.weights) for explanation in explained} == {2}


def test_a_text_alone_gives_one_explanation_and_the_black_box_its_label(fitted: TextExplainer) -> None:
    explanation = fitted.explain("word1 superb word2 word3")
    assert not isinstance(explanation, list)
    assert (explanation.label, explanation.explainer, explanation.selected) == ("yes", "l2x", True)


def test_how_well_it_does_is_measured_on_texts_it_was_not_fitted_to(fitted: TextExplainer) -> None:
    rows = {row.measure: row for row in fitted.rows}
    assert set(rows) == {
        "post-hoc-accuracy",
        "post-hoc-accuracy/unselected",
        "fidelity",
        "probe-loss",
        "independent-reader-accuracy",
        "independent-reader-accuracy/by-class",
        "independent-reader-accuracy/random-words",
        "independent-reader-accuracy/no-words",
        "leakage-gap",
        "leakage-gap/black-box",
        "arbitrary-selection",
        "arbitrary-selection/by-class",
    }
    assert rows["post-hoc-accuracy"].n == 24
    assert rows["independent-reader-accuracy"].value > 0.9 > rows["independent-reader-accuracy/random-words"].value
    each = [row for row in fitted.rows if row.measure == "independent-reader-accuracy/by-class"]
    assert [row.settings["class"] for row in each] == [str(label) for label in CLASSES]
    assert sum(row.n for row in each) == 24
    assert rows["post-hoc-accuracy"].value > 0.9 > 0.7 > rows["post-hoc-accuracy/unselected"].value


@pytest.mark.parametrize("explainer", ["vibi", pytest.param("ail", marks=pytest.mark.slow)])
def test_every_method_can_be_fitted(explainer: str) -> None:
    quick = {**QUICK, "optimizer": "adam", "epochs": 6, "weight_averaging": 0.0}
    assert share_of_found_words(fit_explainer(lexicon, texts(), explainer, k=2, classes=CLASSES, settings=quick)) > 0.8


@pytest.mark.slow
def test_cxplain_can_be_fitted() -> None:
    quick = {"epochs": 10, "hidden": 16, "dimension": 12, "batch_size": 16, "learning_rate": 5e-3, "members": 2}
    fitted = fit_explainer(lexicon, texts(), "cxplain", k=2, classes=CLASSES, settings=quick)
    assert share_of_found_words(fitted) > 0.9
    assert {row.measure for row in fitted.rows} == {"post-hoc-accuracy", "post-hoc-accuracy/unselected"}
    explanation = fitted.explain("word1 superb word2 word3")
    assert not isinstance(explanation, list)
    assert explanation.bounds is not None
    shown = [i for i, weight in enumerate(explanation.weights) if weight]
    assert (len(shown), explanation.selected) == (2, True)
    everything = replace(
        fitted, learned=replace(fitted.learned, config=replace(fitted.learned.config, top_words="all"))
    )
    assert not everything.explain("word1 superb word2 word3").selected
    batch = texts(60, seed=9)
    assert everything.measure(batch) == fitted.measure(batch), "what is shown is not what is measured"
    assert everything.measure(batch)[1].value < 0.9
    assert all(explanation.bounds[i][0] <= explanation.weights[i] <= explanation.bounds[i][1] for i in shown)
    assert explanation.bounds[1][0] > max(
        high for i, (_, high) in enumerate(explanation.bounds) if i != 1
    )  # they agree on superb


def test_a_text_classifier_is_a_black_box() -> None:
    fitted = fit_explainer(tiny.fitted(), tiny.TEXTS, k=2, settings={**QUICK, "epochs": 2})
    explained = fitted.explain(tiny.TEXTS)
    assert [explanation.label for explanation in explained] == tiny.fitted().predict(tiny.TEXTS).tolist()
    assert {sum(weight > 0 for weight in explanation.weights) for explanation in explained} == {2}


FEW_WORDS = ["film", "cast", "good", "bad", "the", "was", "not", "unbelievable", "a"]


def pieced(many: int = 40) -> list[str]:
    random = np.random.default_rng(1)
    return [" ".join(["unbelievable", *random.choice(FEW_WORDS, size=5)]) for _ in range(many)]


@pytest.mark.slow
@pytest.mark.parametrize("explainer", [pytest.param("l2x", marks=pytest.mark.slow), "cxplain"])
def test_of_a_hugging_face_model_whole_words_are_selected(explainer: str, tmp_path: Path) -> None:
    """ "unbelievable" is three pieces: k counts words, and the pieces of a selected word are selected together."""
    with pytest.warns(UserWarning, match="the same label"):  # it has learned nothing
        fitted = fit_explainer(
            save("bert", tmp_path / "bert"), pieced(), explainer, k=5, settings={**QUICK, "epochs": 1}
        )
    adapter, way = fitted.black_box, fitted.explainer
    arguments = adapter.model, adapter.tokens, adapter.classes, pieced(), None
    words = explain_texts(*arguments, ResolvedRequest(way, explainer))
    pieces = explain_texts(*arguments, ResolvedRequest(way, explainer, granularity="piece"))
    assert {sum(weight > 0 for weight in explanation.weights) for explanation in words} == {5}
    assert any(explanation.weights[0] > 0 for explanation in words)
    assert (
        max(sum(explanation.weights) for explanation in words) <= 1 + 1e-9
    )  # shares: a word has its own once, whatever its pieces
    for word, piece in zip(words, pieces, strict=True):
        assert len(piece) == len(word) + 2 * word.tokens.count("unbelievable")
        for (start, end), weight in zip(word.spans, word.weights, strict=True):
            own = [w for (a, b), w in zip(piece.spans, piece.weights, strict=True) if start <= a and b <= end]
            assert own == pytest.approx([weight / len(own)] * len(own))


def test_words_are_counted_and_not_their_pieces(tmp_path: Path) -> None:
    """Six words each, which are eight tokens or more and two ends."""
    with pytest.raises(UserError, match="no text has more than k = 6 words"):
        fit_explainer(save("bert", tmp_path / "bert"), pieced(), k=6)


def queried_pairs(pairs: list[tuple[str, str]]) -> Any:
    """Yes if the text has the word of the question."""
    yes = np.array([question.split()[-1] in text.split() for text, question in pairs], float) * 0.9 + 0.05
    return np.stack([1 - yes, yes], 1)


@pytest.mark.slow
def test_pairs_are_explained_and_the_folder_knows_that_they_were_pairs(tmp_path: Path) -> None:
    pairs = [(text, f"is it {word}") for text in texts(40) for word in ("superb", text.split()[0])]
    quick = {**QUICK, "epochs": 1}
    fitted = fit_explainer(queried_pairs, pairs, k=2, classes=CLASSES, settings=quick)
    explanation = fitted.explain(("word1 superb word3", "is it superb"))
    assert not isinstance(explanation, list)
    assert (explanation.label, explanation.question) == ("yes", "is it superb")
    fitted.save(tmp_path / "l2x")
    again = load_explainer(tmp_path / "l2x", queried_pairs, classes=CLASSES)
    assert again.explain(pairs[:5]) == fitted.explain(pairs[:5])
    assert again.black_box.pair
    with pytest.raises(
        UserError, match=r"reads pairs .*: pass a question with each text.* --text premise --text hypothesis"
    ):
        again.explain(["word1 superb word3"])


def test_a_fitted_explainer_can_be_audited(fitted: TextExplainer) -> None:
    batch = texts(30, seed=5)
    labels = [CLASSES[i] for i in lexicon(batch).argmax(1)]
    report = sg.audit(fitted.black_box, batch, labels, explainers=[fitted.explainer, "leave-one-out"])
    names = {row.settings.get("explainer") for row in report.rows}
    assert {"l2x", "leave-one-out"} <= names
    assert report.find("accuracy").value == 1.0


def test_what_is_warned_of_is_known_to_who_reads_the_folder(tmp_path: Path, fitted: TextExplainer) -> None:
    assert fitted.warnings == []
    rows = tuple(replace(row, value=0.3, interval=None) if "gap" in row.measure else row for row in fitted.rows)
    replace(fitted, rows=rows).save(tmp_path / "l2x")
    with pytest.warns(UserWarning, match="Label leakage") as caught:
        (message,) = load_explainer(tmp_path / "l2x", lexicon, classes=CLASSES).warnings
    assert "30 % more often than an independent reader" in message
    assert (str(caught[0].message), caught[0].filename) == (message, __file__)


def test_the_epoch_that_was_kept_is_known_of_every_stage() -> None:
    """Of the last the first that guessed best; of those before it the last, on which the next one builds."""
    quick = {**QUICK, "epochs": 3, "pretraining_epochs": 2}
    fitted = fit_explainer(lexicon, texts(60), k=2, mitigation="random-pretraining", classes=CLASSES, settings=quick)
    before, last = fitted.learned.history[:2], fitted.learned.history[2:]
    assert [record.get("kept", False) for record in before] == [False, True]
    scores = [record["fidelity"] for record in last]
    assert [i for i, record in enumerate(last) if "kept" in record] == [scores.index(max(scores))]


@pytest.mark.slow
def test_a_black_box_with_a_constant_prediction_is_a_warning(tmp_path: Path) -> None:
    """All its numbers are perfect."""
    with pytest.warns(
        HealthWarning, match="fitted to a black box that predicts the same label for all texts: any selection scores"
    ):
        fitted = fit_explainer(
            lambda inputs: [[0.9, 0.1]] * len(inputs), texts(60), k=2, classes=CLASSES, settings=QUICK
        )
    fitted.save(tmp_path / "l2x")
    with pytest.warns(UserWarning, match="the same label"):
        again = load_explainer(tmp_path / "l2x", lambda inputs: [[0.9, 0.1]] * len(inputs), classes=CLASSES)
    assert again.warnings == []
    assert [problem.kind for problem in again.health] == [ProblemKind.ONE_LABEL]
    assert again.explain(texts(1))[0].health == again.health
    report = sg.audit(again.black_box, texts(4), explainers=[again], sample=1)
    assert ProblemKind.ONE_LABEL in [problem.kind for problem in report.health]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_explainer() -> None:
    explainer, same = (
        fit_explainer(lexicon, texts(60), k=2, classes=CLASSES, settings={**QUICK, "epochs": 1}) for _ in "ab"
    )
    assert explainer.explain(texts(5, seed=8)) == same.explain(texts(5, seed=8))


def half_way(arguments: int) -> Callable[[list[str]], Any]:
    """Fails after a number of queries."""
    calls = iter(range(arguments))

    def predict(value: list[str]) -> Any:
        if next(calls, None) is None:
            raise ConnectionError("the service went away")
        return lexicon(value)

    return predict


def test_answers_of_a_black_box_before_it_failed_are_cached(tmp_path: Path) -> None:
    batch = texts(600)
    with pytest.raises(UserError, match=r"the service went away.*cached in"):
        fit_explainer(half_way(2), batch, k=2, classes=CLASSES, settings=QUICK, keep=tmp_path / "kept")
    assert list((tmp_path / "kept").rglob("*.npy"))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"explainer": "l3x"}, "unknown explainer 'l3x'"),
        ({"k": 0}, "setting 'k'"),
        ({"k": 50}, "no text has more than k = 50 words"),
        ({"mitigation": "random-query"}, "random-query needs a selector that is conditioned on the prediction"),
        ({"explainer": "ail", "mitigation": "mask-neutral"}, "ail does not support mitigation"),
        ({"explainer": "cxplain", "conditioned": True}, "cxplain does not select units in training"),
        ({"settings": {"hiden": 3}}, "did you mean 'hidden'"),
        ({"inputs": texts(5)}, "at least 20"),
        ({"inputs": texts(1), "validation": texts(40)}, "found 1 texts; an explainer needs at least 20"),
        ({"explainer": ["no", "yes"] * 20}, r"explainer must be a name, l2x, .*found \['no'.*No labels are needed"),
        ({"seed": -1}, "seed must be a whole number from 0 to 4,294,967,295, found -1"),
        ({"seed": "a"}, "seed must be a whole number"),
        ({"seed": None}, "seed must be a whole number"),
        ({"settings": "epochs=1"}, "settings must be a mapping of names to values, found 'epochs=1'"),
        ({"validation": (texts(5), [0] * 5)}, r"validation must be texts, or pairs .*, like the inputs, without"),
        ({"validation": (texts(5), ["no"] * 5)}, "validation must be texts.*without labels"),
        (
            {"settings": {"pretraining_epochs": 3}},
            "'pretraining_epochs' is for random-pretraining and random-query; it has no effect for",
        ),
        (
            {"settings": {"clip": 3}, "mitigation": "random-pretraining"},
            "'clip' is for mask-neutral; it has no effect for random-pre",
        ),
        ({"settings": {"labels": "true"}, "explainer": "cxplain"}, "unknown setting 'labels'"),
        ({"black_box": lambda inputs: lexicon(inputs) * np.nan}, "finite"),
    ],
)
def test_bad_input_gets_a_sentence(arguments: dict[str, Any], why: str) -> None:
    usual = {"black_box": lexicon, "inputs": texts(40), "classes": CLASSES, "k": 2}
    with pytest.raises(UserError, match=why):
        fit_explainer(**{**usual, **arguments})
