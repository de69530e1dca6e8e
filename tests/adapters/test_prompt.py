"""Prompts with instructions, examples and chat templates; segments as units; calibration."""

import re

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters.folders import TEXTS, language_model, tokenizer
from commands import run
from steadygaze.adapters.prompt import read_prompt
from steadygaze.adapters.prompt_tokenizer import PromptTokenizer, SegmentTokenizer
from steadygaze.core.errors import UserError

WORDS = {"yes": " good", "no": " bad film", "mixed": " bad cast"}
PROMPT = {"prompt": "film {text} was", "label_words": WORDS}
FEW = {"instruction": "the cast", "examples": [("good good", "yes"), ("bad", "no")]}
CHAT = (
    "{% for message in messages %}[CLS]{{ message['role'] }} {{ message['content'] | trim }}[SEP]{% endfor %}"
    "{% if add_generation_prompt %}[CLS]the{% endif %}"
)


def chat_tokenizer():
    words = tokenizer("llama")
    words.chat_template = CHAT
    return words


def scores(prompt_ids, words):
    """By the library alone: the log-probabilities of the tokens of each label word."""
    net = language_model("llama")
    result = []
    for word in words:
        ids = tokenizer("llama")(word, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = net(torch.tensor([[*prompt_ids, *ids]])).logits[0].log_softmax(-1)
        steps = range(len(logits) - len(ids) - 1, len(logits) - 1)
        result.append(sum(logits[step, token] for step, token in zip(steps, ids, strict=True)))
    return torch.stack(result).double()


def plain_ids(prompt):
    return [2, *tokenizer("llama")(prompt, add_special_tokens=False)["input_ids"]]  # [CLS] first


def test_instruction_and_examples_precede_the_text():
    model = sg.load((language_model("llama"), tokenizer("llama")), **PROMPT, **FEW)
    written = "the cast\n\nfilm good good was good\n\nfilm bad was bad film\n\nfilm {} was"
    assert model.facts["prompt"] == written.format("{text}")
    expected = [scores(plain_ids(written.format(text)), WORDS.values()).softmax(-1).tolist() for text in TEXTS]
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, atol=1e-5)


def test_a_chat_template_writes_the_prompt():
    words = chat_tokenizer()
    model = sg.load((language_model("llama", max_position_embeddings=99), words), **PROMPT, **FEW, chat=True)
    for text in TEXTS[:2]:
        messages = [
            {"role": "system", "content": "the cast"},
            {"role": "user", "content": "film good good was"},
            {"role": "assistant", "content": "good"},
            {"role": "user", "content": "film bad was"},
            {"role": "assistant", "content": "bad film"},
            {"role": "user", "content": f"film {text} was"},
        ]
        ids = words.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        expected = scores(ids, WORDS.values()).softmax(-1).tolist()
        np.testing.assert_allclose(model.predict_proba([text]), [expected], atol=1e-5)
    assert "[CLS]user film {text} was[SEP][CLS]the" in model.facts["prompt"]


@pytest.mark.parametrize("place", ["chat_template.jinja", "tokenizer_config.json"])
def test_the_chat_template_of_a_folder_is_that_of_its_tokenizer(place, tmp_path):
    words = chat_tokenizer()
    language_model("llama").save_pretrained(tmp_path)
    words.save_pretrained(tmp_path, save_jinja_files=place == "chat_template.jinja")
    assert (tmp_path / "chat_template.jinja").exists() == (place == "chat_template.jinja")
    live = sg.load((language_model("llama"), words), **PROMPT, chat=True)
    read = sg.load(tmp_path, **PROMPT, chat=True, device="cpu")
    np.testing.assert_allclose(read.predict_proba(TEXTS), live.predict_proba(TEXTS), atol=1e-6)
    assert read.facts["prompt"] == live.facts["prompt"]


def test_a_chat_template_has_no_access_to_python(tmp_path):
    words = chat_tokenizer()
    words.chat_template = "{{ messages.__class__.__mro__[1].__subclasses__() }}{{ messages[0]['content'] }}"
    with pytest.raises(UserError, match="the tokenizer's chat template cannot write these messages"):
        sg.load((language_model("llama"), words), **PROMPT, chat=True)


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (None, "the tokenizer has no chat template: leave out chat=True"),
        ("no text", "writes the text 0 times"),
        ("{{ messages[-1]['content'] | upper }}", "writes the text 0 times"),
        ("{{ raise_exception('no system role') }}", "cannot write these messages.*no system role"),
    ],
)
def test_a_chat_template_that_cannot_work_is_refused(template, sentence):
    words = chat_tokenizer()
    words.chat_template = template
    with pytest.raises(UserError, match=sentence):
        sg.load((language_model("llama"), words), **PROMPT, chat=True)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"examples": [("good", "perhaps")]}, "label of an example"),
        ({"examples": ["good"]}, r"an example must be a pair \(text, label\)"),
        ({"instruction": "see {text}"}, "instruction must be a string without {text}"),
        ({"prompt": None, "label_words": None, "chat": True}, "need prompt= and label_words="),
    ],
)
def test_parts_of_a_prompt_are_checked(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        sg.load((language_model("llama"), tokenizer("llama")), **PROMPT | changes)


def test_a_calibrated_model_subtracts_the_scores_of_an_empty_text():
    model = sg.load((language_model("llama"), tokenizer("llama")), **PROMPT, calibrate=True)
    empty = scores(plain_ids("film  was"), WORDS.values())
    expected = [(scores(plain_ids(f"film {text} was"), WORDS.values()) - empty).softmax(-1).tolist() for text in TEXTS]
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(model.model.logits(batch_of(model, [""])).detach(), 0, atol=1e-5)
    plain = sg.load((language_model("llama"), tokenizer("llama")), **PROMPT)
    assert np.abs(plain.predict_proba(TEXTS) - expected).max() > 0.01
    assert plain.fingerprint != model.fingerprint


def batch_of(model, texts):
    from steadygaze.data.batches import collate

    return collate(model.data(model.tokens.place(texts), None), np.arange(len(texts)))


def test_one_pass_reads_the_prompt_and_further_passes_only_the_label_words(monkeypatch):
    model = sg.load((language_model("llama"), tokenizer("llama")), **PROMPT, **FEW)
    assert model.model.shares_prompt
    shapes, original = [], model.model.network.forward

    def forward(**inputs):
        shapes.append(inputs["inputs_embeds"].shape[1])
        return original(**inputs)

    expected = model.predict_proba(TEXTS[:1])
    monkeypatch.setattr(model.model.network, "forward", forward)
    model.predict_proba(TEXTS[:1])
    prompt, *rest = shapes
    assert (prompt > 20, rest) == (True, [1])  # " bad film" and " bad cast" share the token of " bad"
    shapes.clear()
    monkeypatch.setattr(model.model, "shares_prompt", False)
    np.testing.assert_allclose(model.predict_proba(TEXTS[:1]), expected, atol=1e-5)
    assert shapes == [prompt + 1]


def test_the_segments_of_a_prompt_are_units():
    model = sg.load((language_model("llama"), tokenizer("llama")), **PROMPT, **FEW)
    explanation = model.explain("good film", explainer="leave-one-out", granularity="segment", target="yes")
    parts = ("the cast", "film good good was good", "film bad was bad film", "film", "good film", "was")
    assert explanation.tokens == parts
    assert explanation.text == "\n\n".join([*parts[:3], "film good film was"])
    assert explanation.granularity == "segment"
    whole = plain_ids(explanation.text)
    full = scores(whole, WORDS.values()).softmax(-1)[0]
    for number, (start, end) in enumerate(explanation.spans):
        rest = plain_ids(explanation.text[:start] + explanation.text[end:])
        expected = full - scores(rest, WORDS.values()).softmax(-1)[0]
        assert explanation.weights[number] == pytest.approx(expected.item(), abs=1e-5)
    gradients = model.explain("good film", granularity="segment", settings={"steps": 4})
    assert len(gradients.weights) == 6
    assert all(gradients.weights)


def test_the_segments_of_a_chat_include_the_turns_between_the_parts_of_an_example():
    prompt = read_prompt(PROMPT["prompt"], WORDS, **FEW, chat=True)
    words = chat_tokenizer()
    rendered = prompt.rendered(lambda messages: words.apply_chat_template(messages, tokenize=False))
    texts = ["good film", ""]
    assert [rendered.fill(text)[start:end] for text in texts for start, end in rendered.segments(text)] == [
        *("the cast", "film good good was[SEP][CLS]assistant good", "film bad was[SEP][CLS]assistant bad film"),
        *("film", "good film", "was"),
        *("the cast", "film good good was[SEP][CLS]assistant good", "film bad was[SEP][CLS]assistant bad film"),
        *("film", "was"),
    ]


def test_a_token_belongs_to_the_segment_of_its_characters_and_truncation_cuts_the_text():
    pieces = tokenizer("llama").backend_tokenizer
    prompt = read_prompt("film {text} was", WORDS, **FEW).rendered(None)
    words = PromptTokenizer(pieces, prompt, list(WORDS.values()), token_limit=19, pad_id=0)
    placed = SegmentTokenizer(words).place([prompt.fill("unbelievable good good good")])
    assert placed.groups[0] == [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 4, 4, 4, 5]
    assert placed.ragged.cut.tolist() == [True]
    assert placed.ragged.words.tolist() == [False, *[True] * 17]


def test_segments_are_for_prompts():
    with pytest.raises(UserError, match="is for the prompt of a language model, and a function has none"):
        sg.load(lambda texts: [[0.5, 0.5]] * len(texts), classes=["a", "b"]).explain("a b", granularity="segment")


@pytest.mark.slow
def test_the_parts_of_a_prompt_are_options_of_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    language_model("llama", max_position_embeddings=99).save_pretrained("lm")
    chat_tokenizer().save_pretrained("lm")
    options = ["--prompt", PROMPT["prompt"], "--instruction", "the cast", "--chat", "--calibrate", "--dtype", "bf16"]
    options += [part for label, word in WORDS.items() for part in ("--label-word", f"{label}={word}")]
    options += ["--example", "yes=good good", "--example", "no=bad"]
    ended = run(capsys, "explain", "lm", "good film", *options, "--granularity", "segment", "--json")
    assert ended.code == 0, ended.err
    model = sg.load("lm", **PROMPT, **FEW, chat=True, calibrate=True, dtype="bf16")
    assert model.explain("good film", granularity="segment").tokens[0] == "the cast"
    assert '"the cast"' in ended.out


def test_votes_are_the_shares_of_labels_among_sampled_answers():
    """A direct call of `generate` with the same random numbers; the answers begin with any word."""
    from steadygaze.adapters.sampled_model import MORE_TOKENS, _seed

    words = {"yes": " good", "no": " bad"}
    net = language_model("llama", max_position_embeddings=99)
    model = sg.load((net, tokenizer("llama")), prompt="film {text} was", label_words=words, votes=40)
    probabilities = model.predict_proba(TEXTS)
    for text, expected in zip(TEXTS[:2], probabilities, strict=False):
        ids = torch.tensor([plain_ids(f"film {text} was")])
        torch.manual_seed(_seed(text, 0))
        options = {"do_sample": True, "top_k": 0, "max_new_tokens": MORE_TOKENS + 1, "num_return_sequences": 40}
        answers = net.generate(ids, attention_mask=torch.ones_like(ids), pad_token_id=0, eos_token_id=3, **options)
        written = [tokenizer("llama").decode(row, skip_special_tokens=True) for row in answers[:, ids.shape[1] :]]
        first = [named[1] for answer in written if (named := re.match(r"\W*(good|bad)\b", answer))]
        counts = np.array([first.count(word.strip()) for word in words.values()])
        share = counts / counts.sum() if counts.sum() else np.full(2, 0.5)
        np.testing.assert_allclose(expected, share)
    assert np.ptp(probabilities, axis=0).max() > 0
    np.testing.assert_array_equal(model.predict_proba(TEXTS[::-1])[::-1], probabilities)  # in any order
    assert "40 votes: a share of 50 % has the 95 % interval 0.35 to 0.65" in model.facts["answers"]
    assert len(model.explain("good film", explainer="leave-one-out").weights) == 2
    with pytest.raises(UserError, match="leave out one"):
        sg.load((net, tokenizer("llama")), prompt="film {text} was", label_words=words, votes=4, calibrate=True)
