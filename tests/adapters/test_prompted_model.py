"""Prompted language models: probabilities of label words after a prompt."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters.folders import TEXTS, language_model, network, tokenizer
from commands import run
from contract.tiny import littered, widened
from steadygaze.adapters.prompt import parse_label_words, read_prompt
from steadygaze.adapters.prompt_tokenizer import PromptTokenizer
from steadygaze.adapters.prompted_model import _continuations
from steadygaze.core.errors import UserError
from steadygaze.data.batches import collate
from steadygaze.models.inference import inference

TEMPLATE = "Review: {text}\nIt was"
WORDS = {"positive": " good", "negative": " bad", "mixed": " gut"}
KIND = pytest.mark.parametrize("kind", ["gpt2", "llama"])


def loaded(kind, template=TEMPLATE, words=WORDS, **changes):
    return sg.load((language_model(kind, **changes), tokenizer(kind)), prompt=template, label_words=words)


def direct(kind, text, template=TEMPLATE, words=WORDS):
    """By the library alone: one call per label word."""
    net, pieces = language_model(kind), tokenizer(kind)
    before = [2] if kind == "llama" else []  # [CLS], without [SEP]
    prompt = pieces(template.format(text=text), add_special_tokens=False)["input_ids"]
    scores = []
    for word in words.values():
        ids = pieces(word, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = net(torch.tensor([[*before, *prompt, *ids]])).logits[0].log_softmax(-1)
        steps = range(len(logits) - len(ids) - 1, len(logits) - 1)
        scores.append(sum(logits[step, token] for step, token in zip(steps, ids, strict=True)))
    return torch.stack(scores).softmax(-1).tolist()


@pytest.mark.sweep(keep=1)
@KIND
def test_probabilities_are_those_of_a_direct_call(kind):
    words = WORDS if kind == "gpt2" else {"positive": " good film", "negative": " bad", "mixed": " good cast"}
    model = loaded(kind, words=words)
    assert list(model.classes_) == ["positive", "negative", "mixed"]
    expected = [direct(kind, text, words=words) for text in TEXTS]
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, rtol=0, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.01


def test_labels_share_forward_passes():
    assert _continuations([[5], [6]]) == {(): [0, 1]}
    assert _continuations([[5], [7, 8], [9, 1]]) == {(7,): [0, 1], (9,): [2]}


def test_only_the_words_of_the_text_are_explained():
    model = loaded("gpt2")
    explanation = model.explain("good film", explainer="leave-one-out", target="positive")
    assert explanation.tokens == ("good", "film")
    assert explanation.spans == ((0, 4), (5, 9))
    full, without = direct("gpt2", "good film")[0], direct("gpt2", "film")[0]
    removed = model.explain("good film", explainer="leave-one-out", target="positive").weights[1]
    assert removed == pytest.approx(full - direct("gpt2", "good")[0], abs=1e-5)
    assert explanation.weights[0] != pytest.approx(full - without, abs=1e-5)  # a space remains
    assert len(model.explain("good film", explainer="integrated-gradients", settings={"steps": 4}).weights) == 2
    assert sum(model.explain("good film", explainer="attention").weights) == pytest.approx(1)


@pytest.mark.sweep(keep=1)
@KIND
def test_neither_padding_nor_the_batch_changes_anything(kind):
    model = loaded(kind)
    batch = collate(model.data(model.tokens.place(TEXTS), None), np.arange(len(TEXTS)))
    with inference(model.model):
        output = model.model(batch)
        for other in (widened(batch, 3), littered(batch)):
            again = model.model(other)
            torch.testing.assert_close(again.logits, output.logits, rtol=0, atol=2e-5)
            torch.testing.assert_close(again.weights[:, : batch.ids.shape[1]], output.weights, rtol=0, atol=1e-5)


def test_weights_are_the_attention_of_the_last_token_of_the_prompt():
    model, net = loaded("llama", words={"a": " good", "b": " bad"}), language_model("llama")
    net.set_attn_implementation("eager")
    ids = [2, *tokenizer("llama")("review: good film\nit was", add_special_tokens=False)["input_ids"]]
    with torch.no_grad():
        attention = net(torch.tensor([ids]), output_attentions=True).attentions[-1][0].mean(0)[-1]
    words = attention[3:5]  # [CLS] review : good film it was
    assert model.explain("good film", explainer="attention").weights == pytest.approx(
        (words / words.sum()).tolist(), abs=1e-5
    )


def test_truncation_cuts_the_text_and_never_the_prompt():
    pieces = tokenizer("llama").backend_tokenizer
    prompt = read_prompt("the {text} was", {"a": " good film", "b": " bad"}).rendered(None)
    tokens = PromptTokenizer(pieces, prompt, [" good film", " bad"], token_limit=8, pad_id=0)
    placed = tokens.place(["good good good good good good", "bad"])
    rows = np.split(placed.ragged.ids, placed.ragged.starts[1:-1])
    assert [pieces.id_to_token(i) for i in rows[0]] == ["[CLS]", "the", *["good"] * 4, "was"]  # one for the label word
    assert [pieces.id_to_token(i) for i in rows[1]] == ["[CLS]", "the", "bad", "was"]
    assert placed.ragged.cut.tolist() == [True, False]
    assert placed.ragged.words.tolist() == [False, False, *[True] * 4, False, False, False, True, False]
    assert placed.spans[0][1] == (5, 9)
    assert tokens.max_length == 4


def test_special_tokens_of_the_template_are_special_and_those_of_a_text_are_not():
    pieces = tokenizer("llama").backend_tokenizer
    prompt = read_prompt("the[SEP]a {text} was[SEP]", {"a": " good", "b": " bad"}).rendered(None)
    tokens = PromptTokenizer(pieces, prompt, [" good", " bad"], token_limit=20, pad_id=0)
    placed = tokens.place(["film [SEP]"])
    names = [pieces.id_to_token(i) for i in placed.ragged.ids]
    assert names[:5] == ["[CLS]", "the", "[SEP]", "a", "film"]
    assert names[-2:] == ["was", "[SEP]"]
    assert names.count("[SEP]") == 2


@pytest.mark.parametrize(
    ("template", "words", "sentence"),
    [
        ("Review:", WORDS, "with {text} once"),
        ("{text} {text}", WORDS, "with {text} once"),
        (TEMPLATE, None, "a prompt needs label words"),
        (None, WORDS, "label words need a prompt"),
        (TEMPLATE, {"positive": " good"}, "two or more classes"),
        (TEMPLATE, {"positive": " good", "negative": ""}, "not empty"),
        (TEMPLATE, {"positive": " good", "negative": " good"}, "the same tokens"),
        ("{text} It was go", {"positive": "od", "negative": "bad"}, "is not a separate token after the prompt"),
        ("{text}" + "long " * 60, WORDS, "the prompt is too long"),
    ],
)
def test_a_prompt_that_cannot_work_is_refused(template, words, sentence):
    with pytest.raises(UserError, match=sentence):
        loaded("gpt2", template, words)


def test_classifiers_take_no_prompt_and_language_models_need_one():
    with pytest.raises(UserError, match="a BertForSequenceClassification is not a causal language model"):
        sg.load((network("bert"), tokenizer("bert")), prompt=TEMPLATE, label_words=WORDS)
    with pytest.raises(UserError, match=r"a GPT2LMHeadModel is not a classifier: .* prompt= and label_words="):
        sg.load((language_model("gpt2"), tokenizer("gpt2")))
    with pytest.raises(UserError, match="a prompt is for a causal language model"):
        sg.load(len, prompt=TEMPLATE, label_words=WORDS)


def test_a_label_word_of_the_command_line_has_a_label():
    with pytest.raises(UserError, match="must be LABEL=WORD"):
        parse_label_words(["positive"])


def saved(folder):
    """Save a model and data; return the options of the prompt."""
    language_model("gpt2").save_pretrained(folder)
    tokenizer("gpt2").save_pretrained(folder)
    Path("data.csv").write_text("text,label\n" + "".join(f'"{text}",positive\n' for text in TEXTS))
    words = [part for label, word in WORDS.items() for part in ("--label-word", f"{label}={word}")]
    return ["--prompt", TEMPLATE, *words]


@pytest.mark.slow
def test_the_bundle_of_a_prompted_model_can_be_verified(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    options = saved("lm")
    audit = run(capsys, "audit", "lm", "--data", "data.csv", *options, "--bundle", "bundle", "--json")
    assert audit.code == 0, audit.err
    assert json.loads(Path("bundle/manifest.json").read_text())["settings"]["prompt"] == TEMPLATE
    assert run(capsys, "audit", "--verify", "bundle").code == 0
