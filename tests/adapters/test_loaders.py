"""Every loader predicts and explains as a direct call does.  tests/robustness/test_matrix.py runs every call."""

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import steadygaze as sg
from adapters.folders import LABELS, TEXTS, language_model, network, tokenizer
from commands import run

LOADERS = ["folder", "pipeline", "scikit-learn", "function", "encoder-decoder", "prompt"]
NEW = ("encoder-decoder", "prompt")
"""Their expensive cases are slow; their own files have fast ones."""
PROMPT = {"prompt": "the {text} was", "label_words": {"negative": " bad", "neutral": " film", "positive": " good"}}


def pipeline_of_sklearn():
    texts = ["good good", "bad", "the film"]
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, ["positive", "negative", "neutral"])


def label_word_probabilities(net, words):
    """All label words are one token."""
    ids = [words(word, add_special_tokens=False)["input_ids"][0] for word in PROMPT["label_words"].values()]
    prompts = [words(PROMPT["prompt"].format(text=text), return_tensors="pt")["input_ids"][:, :-1] for text in TEXTS]
    with torch.no_grad():
        return np.array([net(prompt).logits[0, -1, ids].softmax(-1).numpy() for prompt in prompts])


@pytest.fixture
def adapter_of(folder):
    """Loader -> (model, classes=, probabilities of the texts by a direct call)."""

    def make(loader: str):
        from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

        if loader in ("folder", "pipeline"):
            net = AutoModelForSequenceClassification.from_pretrained(folder("bert"))
            words = AutoTokenizer.from_pretrained(folder("bert"))
            inputs = words(TEXTS, padding=True, return_tensors="pt")
            with torch.no_grad():
                expected = net(**inputs).logits.softmax(-1).numpy()
            if loader == "folder":
                return str(folder("bert")), None, expected
            return pipeline("text-classification", model=net, tokenizer=words), None, expected
        if loader in NEW:
            net, words = (network("t5") if loader == NEW[0] else language_model("llama")), tokenizer("bert")
            if loader == NEW[0]:
                inputs = words(TEXTS, padding=True, return_tensors="pt", return_token_type_ids=False)
                with torch.no_grad():
                    return (net, words), None, net(**inputs).logits.softmax(-1).numpy()
            return sg.load((net, words), **PROMPT), None, label_word_probabilities(net, words)
        fitted = pipeline_of_sklearn()
        expected = fitted.predict_proba(TEXTS)
        if loader == "scikit-learn":
            return fitted, None, expected
        return fitted.predict_proba, LABELS, expected

    return make


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("loader", LOADERS)
def test_a_loaded_model_predicts_what_a_direct_call_gives(loader, adapter_of):
    source, classes, expected = adapter_of(loader)
    model = sg.load(source, classes=classes)
    assert list(model.classes_) == LABELS
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, atol=1e-5)
    assert list(model.predict(TEXTS)) == [LABELS[best] for best in expected.argmax(1)]
    assert model.score(TEXTS, model.predict(TEXTS)) == 1.0


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("loader", LOADERS)
def test_a_loaded_model_explains(loader, adapter_of):
    source, classes, expected = adapter_of(loader)
    model = sg.load(source, classes=classes)
    explanation = model.explain(TEXTS[0], explainer="leave-one-out", target="positive")
    assert explanation.tokens == ("A", "good", ",", "unbelievable", "film", "!")
    assert explanation.probabilities["positive"] == pytest.approx(expected[0, 2], abs=1e-5)
    without = model.predict_proba(["A , unbelievable film!"])[0, 2]
    assert explanation.weights[1] == pytest.approx(expected[0, 2] - without, abs=1e-5)
    again = sg.explain(source, [TEXTS[0]], explainer="leave-one-out", target="positive", classes=classes)
    assert [item.weights for item in again] == [explanation.weights]
    logit = sg.explain(model, TEXTS[0], explainer="leave-one-out", target="positive", output="logit")
    assert logit.weights != explanation.weights


def test_a_module_that_cannot_be_imported_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run(capsys, "predict", "no_such_module:model", "a text")
    assert (ended.code, "no_such_module:model could not be imported" in ended.err) == (2, True)
    assert "run the command in the folder of the module" in " ".join(ended.err.split())


def test_python_calls_never_import_an_object_by_name():
    with pytest.raises(sg.UserError):
        sg.load("os:getcwd")
