"""Every loader with every function and command: predict, explain, evaluate, audit, fit_explainer, certify."""

import json
import sys
from pathlib import Path

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
SOME_SLOW = [pytest.param(loader, marks=[pytest.mark.slow] if loader in NEW else []) for loader in LOADERS]
ON_THE_COMMAND_LINE = [SOME_SLOW[0], *SOME_SLOW[2:]]
PROMPT = {"prompt": "the {text} was", "label_words": {"negative": " bad", "neutral": " film", "positive": " good"}}
MANY = [
    f"{text} {word}"
    for text in TEXTS
    for word in ("film good", "cast bad", "good film", "bad cast", "the film", "was good")
]

CODE = """
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

texts = ["good good", "bad", "the film"]
pipeline = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, ["positive", "negative", "neutral"])

def predict(texts):
    return pipeline.predict_proba(texts)
"""


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


@pytest.mark.parametrize("loader", LOADERS)
def test_a_loaded_model_predicts_what_a_direct_call_gives(loader, adapter_of):
    source, classes, expected = adapter_of(loader)
    model = sg.load(source, classes=classes)
    assert list(model.classes_) == LABELS
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, atol=1e-5)
    assert list(model.predict(TEXTS)) == [LABELS[best] for best in expected.argmax(1)]
    assert model.score(TEXTS, model.predict(TEXTS)) == 1.0


@pytest.mark.sweep(keep=3)
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
    by_default = sg.explain(model, TEXTS[0])
    assert by_default.explainer == ("leave-one-out" if loader in LOADERS[2:4] else "integrated-gradients")
    if loader not in LOADERS[2:4]:
        settings = {"steps": 20, "output": "logit"}
        named = sg.explain(model, TEXTS[0], explainer="integrated-gradients", settings=settings)
        assert named.weights == by_default.weights


@pytest.mark.slow
@pytest.mark.sweep(keep=2)
@pytest.mark.filterwarnings("ignore::steadygaze.core.errors.LeakageWarning")
@pytest.mark.parametrize("loader", SOME_SLOW)
def test_a_loaded_model_is_audited_and_gets_a_fitted_explainer(loader, adapter_of, short_probe_training):
    source, classes, _ = adapter_of(loader)
    model = sg.load(source, classes=classes)
    labels = [LABELS[best] for best in model.predict_proba(MANY).argmax(1)]
    report = sg.audit(model, MANY, labels, explainers=["leave-one-out"])
    assert report.find("accuracy").value == 1.0
    fitted = sg.fit_explainer(model, MANY, explainer="l2x", k=2, settings={"epochs": 1})
    assert len([weight for weight in fitted.explain(TEXTS[0]).weights if weight]) == 2


@pytest.mark.parametrize("loader", LOADERS)
def test_certify_refuses_models_without_our_attention(loader, adapter_of):
    source, classes, _ = adapter_of(loader)
    with pytest.raises(sg.UserError, match="certif"):
        sg.certify(sg.load(source, classes=classes), TEXTS, radius=0.01)


@pytest.fixture
def named(loader, folder, tmp_path, monkeypatch):
    """The model as an argument of a command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("our_models.py").write_text(CODE)
    monkeypatch.delitem(sys.modules, "our_models", raising=False)
    if loader in NEW:
        (network("t5") if loader == NEW[0] else language_model("llama")).save_pretrained("saved")
        tokenizer("t5").save_pretrained("saved")
    options = [part for label, word in PROMPT["label_words"].items() for part in ("--label-word", f"{label}={word}")]
    names = {
        "folder": [folder("bert")],
        "scikit-learn": ["our_models:pipeline"],
        "encoder-decoder": ["saved"],
        "prompt": ["saved", "--prompt", PROMPT["prompt"], *options],
    }
    return names.get(loader, ["our_models:predict", "--classes", "negative,neutral,positive"])


@pytest.mark.slow
@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("loader", ON_THE_COMMAND_LINE)
def test_commands_take_every_model(loader, named, capsys, short_probe_training):
    lines = run(capsys, "predict", *named, TEXTS[0], "--json")
    record = json.loads(lines.out)
    assert lines.code == 0
    assert sum(record["probabilities"].values()) == pytest.approx(1)
    lines = run(capsys, "explain", *named, TEXTS[0], "--explainer", "leave-one-out", "--output", "logit", "--json")
    assert lines.code == 0
    assert json.loads(lines.out)["probabilities"] == pytest.approx(record["probabilities"])
    Path("data.csv").write_text("text,label\n" + "".join(f'"{text}",{LABELS[i % 3]}\n' for i, text in enumerate(MANY)))
    audit = run(capsys, "audit", *named, "--data", "data.csv", "--explainer", "leave-one-out", "--html", "page.html")
    assert audit.code == 0, audit.err
    assert Path("page.html").exists()
    options = ["--data", "data.csv", "--k", "2", "--set", "epochs=1", "--out", "l2x"]
    fit = run(capsys, "fit-explainer", *named, *options)
    assert fit.code == 0, fit.err
    assert run(capsys, "explain", *named, TEXTS[0], "--explainer", "l2x", "--json").code == 0
    certify = run(capsys, "certify", named[0], "--data", "data.csv", "--radius", "0.01")
    assert certify.code == 2


def test_a_module_that_cannot_be_imported_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = run(capsys, "predict", "no_such_module:model", "a text")
    assert (ended.code, "no_such_module:model could not be imported" in ended.err) == (2, True)
    assert "run the command in the folder of the module" in " ".join(ended.err.split())


def test_python_calls_never_import_an_object_by_name():
    with pytest.raises(sg.UserError):
        sg.load("os:getcwd")
