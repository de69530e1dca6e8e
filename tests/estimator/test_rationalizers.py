"""Rationalizers as a user has them: trained, used, saved and loaded as any classifier."""

import json
import re
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import commands
import steadygaze
from estimator.tiny import NOUNS, PAIRS, SMALL, tiny
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpus import Corpus
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.rationalizer import Rationalizer

ASIDE = ("it rained .", "we had bread !", "my cat slept ?")
GOOD = [f"{ASIDE[i % 3]} the {s} was good and fine . {ASIDE[(i + 1) % 3]}" for i, s in enumerate(NOUNS)]
BAD = [f"{ASIDE[i % 3]} a bad dull {s} i thought . {ASIDE[(i + 1) % 3]}" for i, s in enumerate(NOUNS)]
TEXTS, LABELS = [*GOOD, *BAD], ["pos"] * 12 + ["neg"] * 12
SETTINGS = {
    "a2r": ("a2r", {}),
    "rnp": ("rnp", {"skewed": 1}),
    "rnp tokens": ("rnp", {"granularity": "token", "share": 0.3}),
    "a2r attention": ("a2r", {"granularity": "token", "variant": "released", "spans": 2}),
    "fresh": ("fresh", {"share": 0.3, "spans": 2}),
    "fresh gradient": ("fresh", {"granularity": "sentence", "saliency": "gradient"}),
    "shared encoder": ("rnp", {"estimator": "gumbel", "shared_encoder": True}),
}


@cache
def fitted(order: str) -> TextClassifier:
    technique, settings = SETTINGS[order]
    return tiny("bigru", technique=technique, settings={**SMALL, **settings}).fit(TEXTS, LABELS)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("order", SETTINGS)
def test_a_saved_model_predicts_the_same_after_loading(order, tmp_path):
    clf = fitted(order)
    clf.save(tmp_path / "model")
    back = steadygaze.load(tmp_path / "model", device="cpu")
    assert isinstance(back.stored_.model, Rationalizer)
    assert back.stored_.model.selection_config == clf.stored_.model.selection_config
    assert back.settings == clf.settings, "and nothing that training filled in"
    assert np.array_equal(back.predict_proba(TEXTS), clf.predict_proba(TEXTS))
    assert back.explain(TEXTS) == clf.explain(TEXTS)
    ended = [
        token for token, ends in zip(back.stored_.tokenizer.vocabulary, back.stored_.model.ends, strict=True) if ends
    ]
    assert sorted(ended) == ["!", ".", "?"]


def test_it_shows_one_sentence_and_all_of_it():
    for text in TEXTS:
        shown = fitted("a2r").explain(text)
        chosen = [token for token, weight in zip(shown.tokens, shown.weights, strict=True) if weight > 0]
        assert " ".join(chosen) in [f"{part.strip()} {end}" for part, end in sentences(text)]
        assert sum(shown.weights) == pytest.approx(1)


def sentences(text: str) -> list[tuple[str, str]]:
    words = text.replace("!", "! |").replace(".", ". |").replace("?", "? |").split("|")
    return [(part.strip()[:-1], part.strip()[-1]) for part in words if part.strip()]


def test_tokens_are_as_many_as_the_share_allows():
    for shown in fitted("rnp tokens").explain(TEXTS):
        assert sum(weight > 0 for weight in shown.weights) == int(0.3 * len(shown.weights))


def test_of_a_text_longer_than_the_limit_what_is_read_is_selected_from(tmp_path):
    clf = tiny("bigru", technique="a2r", max_length=6)
    with pytest.warns(UserWarning, match="truncated at 6 tokens"):
        clf.fit(TEXTS, LABELS)
    with pytest.warns(UserWarning, match="1 of 1 texts were truncated at 6 tokens"):
        shown = clf.explain("one sentence that goes on and on and has no end at all")
    assert shown.read_to == len("one sentence that goes on and")
    assert all(weight > 0 for weight in shown.weights), "what is read of it is one sentence"


def test_pairs_are_refused_in_a_sentence():
    with pytest.raises(UserError, match="a2r selects from single texts: it cannot be trained on pairs"):
        tiny("bigru", technique="a2r").fit(PAIRS, LABELS)


def test_nothing_is_certified_of_weights_that_no_decoder_was_given():
    with pytest.raises(UserError, match="certify needs attention weights"):
        steadygaze.certify(fitted("a2r"), TEXTS)


def test_a_transformer_selects_too(encoder, tmp_path):
    clf = tiny(encoder, technique="rnp", settings={"granularity": "token"}).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    back = steadygaze.load(tmp_path / "model", device="cpu")
    assert np.array_equal(back.predict_proba(TEXTS), clf.predict_proba(TEXTS))


def test_the_command_line_trains_predicts_and_explains(capsys, tmp_path: Path):
    run, file = partial(commands.run, capsys), tmp_path / "films.csv"
    rows = zip(TEXTS, LABELS, strict=True)
    file.write_text("text,label\n" + "".join(f'"{text}",{label}\n' for text, label in rows), encoding="utf-8")
    quick = ["--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--set", "granularity=token"]
    ended = run("train", file, "--out", tmp_path / "model", "--encoder", "bigru", "--technique", "a2r", *quick)
    assert ended.code == 0, ended.err
    assert run("predict", tmp_path / "model", TEXTS[0]).code == 0
    assert run("explain", tmp_path / "model", TEXTS[0]).code == 0


def spoken_corpus(folder: Path) -> Corpus:
    """Transcripts without punctuation, with their sentences as strings; a splitter finds one sentence in each."""
    rows = []
    for text, label in zip(TEXTS, LABELS, strict=True):
        parts = [part.strip() for part in re.split(r"[.!?]", text) if part.strip()]
        rows.append(json.dumps({"text": " ".join(parts), "label": label, "parts": parts}))
    (folder / "spoken.jsonl").write_text("\n".join(rows))
    return steadygaze.load_corpus(folder / "spoken.jsonl", sentences="parts")


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("technique", "settings"), [("a2r", {}), ("rnp", {"skewed": 1}), ("fresh", {"granularity": "sentence"})]
)
def test_given_sentences_are_the_units_of_training_and_explanation(technique, settings, tmp_path):
    """Without them, training is refused, and the explanation of a text alone is the whole text."""
    examples = spoken_corpus(tmp_path).training
    clf = tiny(technique=technique, settings={**SMALL, **settings})
    with pytest.raises(UserError, match=r"no token of the vocabulary ends a sentence.*--sentences COLUMN"):
        clf.fit([example.text for example in examples], LABELS)
    clf.fit(examples, LABELS).save(tmp_path / "model")
    for model in (clf, steadygaze.load(tmp_path / "model", device="cpu")):
        shown, alone = model.explain(examples[0]), model.explain(examples[0].text)
        (start, end, _), sentences = shown.rationale[0], examples[0].sentences
        assert (shown.sentences, alone.sentences) == (3, 1)
        assert (start, end) in sentences
        assert alone.rationale[0][:2] == (0, len(examples[0].text))
        probabilities = model.predict_proba(examples)
        assert probabilities[0].tolist() == pytest.approx(list(shown.probabilities.values()))
        assert not np.allclose(probabilities, model.predict_proba([example.text for example in examples]))


def test_given_sentences_replace_those_of_the_splitter(tmp_path):
    """The same texts, with sentences that the splitter does not find: other weights, and another fingerprint."""
    examples = [Example(text, sentences=((0, len(text) // 2), (len(text) // 2, len(text)))) for text in TEXTS]
    with_sentences, split = (tiny(technique="a2r").fit(X, LABELS) for X in (examples, TEXTS))
    assert with_sentences.stored_.description.corpus != split.stored_.description.corpus
    assert with_sentences.history_ != split.history_
    assert with_sentences.explain(examples[0]).sentences == 2
    vanilla = [tiny().fit(X, LABELS).stored_.description.corpus for X in (examples, TEXTS)]
    assert vanilla[0] == vanilla[1], "other techniques do not read sentences"


def test_commands_read_the_column_of_sentences(tmp_path, capsys, monkeypatch):
    spoken_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = ["--technique", "a2r", "--encoder", "average", "--set", "hidden=4", "--set", "dimension=6"]
    option = ["--sentences", "parts"]
    trained = commands.run(capsys, "train", "spoken.jsonl", *option, *settings, "--epochs", "1", "--out", "model")
    assert trained.code == 0, trained.err
    assert "--sentences parts" in trained.err
    shown = commands.run(capsys, "explain", "model", "--file", "spoken.jsonl", *option, "--json")
    assert [json.loads(line)["sentences"] for line in shown.out.splitlines()] == [3] * len(TEXTS)
    predicted = commands.run(capsys, "predict", "model", "--file", "spoken.jsonl", *option, "--json")
    lines = [json.loads(line) for line in predicted.out.splitlines()]
    clf, examples = steadygaze.load("model", device="cpu"), steadygaze.load_corpus("spoken.jsonl", sentences="parts")
    probabilities = clf.predict_proba(examples.training)
    assert [list(line["probabilities"].values()) for line in lines] == [pytest.approx(row) for row in probabilities]
    assert lines[0]["text"] == examples.training[0].text
    table = commands.run(capsys, "predict", "model", "--file", "spoken.jsonl", *option, "--out", "predicted.jsonl")
    assert table.code == 0, table.err
    assert "predicted_label" in (tmp_path / "predicted.jsonl").read_text()
    evaluated = commands.run(capsys, "evaluate", "model", "--data", "spoken.jsonl", *option, "--json")
    accuracy = (clf.classes_[probabilities.argmax(-1)] == LABELS).mean()
    assert json.loads(evaluated.out)["rows"][0]["value"] == pytest.approx(accuracy)
    assert "give --file FILE" in commands.refused(capsys, "explain", "model", "a text", *option)
    fit = ["fit-explainer", "model", "--data", "spoken.jsonl", "--out", "l2x"]
    assert "fit-explainer does not take --sentences" in commands.refused(capsys, *fit, *option)
    message = "--sentences names a column of the data: give --data DATA"
    assert message in commands.refused(capsys, "serve", "model", *option)


@pytest.mark.slow
def test_an_audit_reads_given_sentences(tmp_path):
    examples = spoken_corpus(tmp_path).training
    clf = tiny(technique="a2r").fit(examples, LABELS)
    for texts, expected in ((examples, 3), ([example.text for example in examples], 1)):
        report = steadygaze.audit(clf, texts, LABELS, sample=4)
        assert {explanation.sentences for explanation in report.explanations} == {expected}


def test_the_server_reads_the_given_sentences_of_texts_of_its_data(tmp_path):
    """`serve` offers texts with their sentences; a text that is typed is split by rules."""
    pytest.importorskip("fastapi")
    from steadygaze.adapters.as_adapter import as_adapter
    from steadygaze.cli.command_options import Common
    from steadygaze.cli.serve_command import check_data, load_data
    from steadygaze.serve.api import Models
    from steadygaze.serve.served_models import ServedModel

    examples = spoken_corpus(tmp_path).training
    clf = tiny(technique="a2r").fit(examples, LABELS)
    model = ServedModel("spoken", as_adapter(clf), {})
    columns = {"text": ("text",), "label": None, "rationales": None, "sentences": "parts"}
    check_data(str(tmp_path / "spoken.jsonl"), columns)
    data = load_data(str(tmp_path / "spoken.jsonl"), columns, None, [model], Common())
    models, texts = Models([model], data), [examples[0].text, "the film was good"]
    shown = models._work(("explain", "spoken", ExplainRequest()), texts)
    assert [explanation.sentences for explanation in shown] == [3, 1]
    predicted = models._work(("predict", "spoken"), texts[:1])
    assert list(predicted[0].values()) == pytest.approx(clf.predict_proba(examples[:1])[0].tolist())
    with pytest.raises(UserError, match="missing"):
        check_data(str(tmp_path / "spoken.jsonl"), {**columns, "sentences": "missing"})


def test_other_sentences_of_a_file_are_other_data(tmp_path):
    """Finished models and cells of a study are then trained again."""
    first = spoken_corpus(tmp_path)
    plain = steadygaze.load_corpus(tmp_path / "spoken.jsonl")
    assert first.fingerprint != plain.fingerprint
    assert [example.text for example in first.training] == [example.text for example in plain.training]
