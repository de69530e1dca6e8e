"""The settings window and stride: whole texts on a transformer, saved and loaded, and what is refused."""

import warnings

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters import folders
from estimator.tiny import LABELS, PAIRS, TEXTS, tiny
from steadygaze.core.errors import UserError
from steadygaze.data.batches import Data, collate
from steadygaze.explainers import EXPLAINERS
from steadygaze.models.inference import inference

LONG = "good film and bad film " * 40
SETTINGS = {"window": 16, "stride": 12}


@pytest.fixture(scope="module")
def fitted(encoder):
    return tiny(encoder, settings=SETTINGS).fit([*TEXTS, LONG], [*LABELS, LABELS[0]])


def test_every_word_of_a_long_text_has_a_weight(fitted):
    explanation = fitted.explain(LONG)
    assert explanation.read_to is None
    assert len(explanation.weights) == len(LONG.split())
    assert min(explanation.weights) > 0
    assert sum(explanation.weights) == pytest.approx(1)


def test_a_saved_model_reads_the_same_windows(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = sg.load(tmp_path / "model")
    texts = [LONG, TEXTS[0]]
    assert np.array_equal(loaded.predict_proba(texts), fitted.predict_proba(texts))
    assert loaded.get_params()["window"] == 16
    assert np.abs(fitted.predict_proba([LONG]) - fitted.predict_proba([LONG[:60]])).max() > 0


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("explainer", [name for name in EXPLAINERS if name != "rationale"])
def test_every_explainer_weighs_words_of_every_window(fitted, explainer):
    settings = {"samples": 220} if explainer in ("lime", "kernel-shap") else None
    explanation = sg.explain(fitted, LONG, explainer=explainer, settings=settings)
    assert explanation.read_to is None
    assert len(explanation.weights) == len(LONG.split())
    for part in np.array_split(np.array(explanation.weights), 17):  # there are at least 17 windows
        assert np.any(part != 0)


def test_rationales_are_selected_from_whole_texts(encoder):
    settings = {**SETTINGS, "granularity": "token", "share": 0.5}
    clf = tiny(encoder, technique="a2r", settings=settings).fit([*TEXTS, LONG], [*LABELS, LABELS[0]])
    explanation = clf.explain(LONG)
    assert explanation.read_to is None
    assert len(explanation.weights) == len(LONG.split())


@pytest.mark.slow
def test_an_audit_reads_whole_texts(fitted):
    report = sg.audit(fitted, [LONG, *TEXTS[:3]], [LABELS[0], *LABELS[:3]])
    assert report.facts["truncated texts"] == "0 of 4"


def test_a_certificate_is_about_the_weights_of_all_words(fitted):
    model, tokenizer = fitted.stored_.model, fitted.stored_.tokenizer
    batch = collate(Data(tokenizer.encode([LONG])), np.array([0]))
    with inference(model):
        output = model(batch)
        margin = model.reach(output.encoded)[0, batch.mask[0]].double() @ torch.tensor([-1.0, 1.0]).double()  # (T,)
    expected = (output.logits[0, 1] - output.logits[0, 0]).abs() / margin.abs().sum()  # the dual norm of l-infinity
    assert len(margin) >= len(LONG.split()) > SETTINGS["window"]
    with warnings.catch_warnings(action="ignore"):  # the model has learned nothing
        certificate = sg.certify(fitted, [LONG], radius=0.01)[0]
    assert certificate.radius == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.slow
def test_training_learns_from_the_end_of_long_texts(encoder):
    """The only word that depends on the label is the 41st; a model of the first 20 tokens predicts one label."""
    texts = ["a cast ending a cast " * 8 + ("good" if i % 2 else "bad") + " a" * (i % 5) for i in range(40)]
    labels = ["pos" if i % 2 else "neg" for i in range(40)]
    settings = {"learning_rate": 0.03, "window": 16}
    clf = tiny(encoder, settings=settings, epochs=10, batch_size=4).fit(texts, labels)
    assert clf.score(texts, labels) > 0.8


def test_a_long_text_of_a_foreign_model_is_counted_with_the_fix(tmp_path):
    model = sg.load(folders.save("bert", tmp_path / "bert"))
    with pytest.warns(
        UserWarning, match=r"1 of 2 texts were truncated.*train a TextClassifier with the setting window"
    ):
        model.predict([LONG, TEXTS[0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stride": 4}, "stride is 4, but there is no window"),
        ({"window": 8, "stride": 9}, "stride is 9: it must be at most window, 8"),
        ({"window": 10**6}, "window is 1000000; the network reads at most"),
    ],
)
def test_windows_that_do_not_fit_are_refused(encoder, settings, message):
    with pytest.raises(UserError, match=message):
        tiny(encoder, settings=settings).fit(TEXTS, LABELS)


def test_windows_are_for_single_texts_on_transformers(encoder):
    with pytest.raises(UserError, match="bilstm reads whole texts with a larger max_length"):
        tiny("bilstm", settings={"window": 8}).fit(TEXTS, LABELS)
    with pytest.raises(UserError, match="window is for single texts"):
        tiny(encoder, settings=SETTINGS).fit(PAIRS, LABELS)


def test_a_loaded_model_and_evaluate_warn_once_about_truncated_texts(tmp_path):
    with pytest.warns(UserWarning, match="truncated at 3 tokens"):
        clf = tiny(max_length=3).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    model, texts = sg.load(tmp_path / "model"), [TEXTS[0], LONG]
    for call in (model.predict, model.explain, lambda texts: sg.evaluate(model, texts, LABELS[:2])):
        with pytest.warns(UserWarning, match=r"2 of 2 texts were truncated at 3 tokens.*larger max_length") as caught:
            call(texts)
        assert len(caught) == 1
