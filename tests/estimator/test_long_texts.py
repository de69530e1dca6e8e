"""The settings window and stride: whole texts on a transformer, saved and loaded, and what is refused."""

import numpy as np
import pytest

import steadygaze as sg
from estimator.tiny import LABELS, PAIRS, TEXTS, tiny, transformer_folder
from steadygaze.core.errors import UserError

LONG = "good film and bad film " * 40
SETTINGS = {"window": 16, "stride": 12}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return f"transformer:{transformer_folder(tmp_path_factory.mktemp('bert'))}"


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


def test_explainers_and_the_audit_read_whole_texts(fitted):
    for explainer in ("gradient", "leave-one-out"):
        assert len(fitted.explain(LONG, explainer=explainer).weights) == len(LONG.split())
    report = sg.audit(fitted, [LONG, *TEXTS[:3]], [LABELS[0], *LABELS[:3]])
    assert report.facts["truncated texts"] == "0 of 4"


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
