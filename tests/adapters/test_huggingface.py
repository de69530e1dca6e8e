"""Classifiers of the transformers library predict the same here as there: alone or padded, single or in pairs."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from adapters.folders import KINDS, LABELS, QUESTIONS, TEXTS, network, tokenizer
from contract.probing import state
from contract.tiny import littered, widened
from steadygaze.adapters import transformer_network as networks
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import is_comparable
from steadygaze.auditing.prepare_case import prepare
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Example
from steadygaze.data.batches import collate
from steadygaze.explainers.attention import Attention
from steadygaze.models.inference import with_gradients
from steadygaze.perturbations.word_removal import remove_words
from steadygaze.properties.probes import text_perturbations
from steadygaze.properties.probes.text_perturbations import observe
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.properties.protocols.stability import _probe_findings
from steadygaze.results.audit_config import ProbeConfig

CLOSE = {"rtol": 0, "atol": 1e-5}  # single precision, eager attention against the library's fused one
KIND = pytest.mark.parametrize("kind", KINDS)
examined = cache(lambda folder, attention="last": as_adapter(folder, device="cpu", attention=attention))
PAIR = pytest.mark.parametrize("pair", [False, True])


def batch_of(adapter, pair=False, rows=None):
    """The texts as one batch, and the adapter set to read it."""
    adapter = adapter.for_pairs(pair)
    data = adapter.data(adapter.tokens.place(TEXTS), QUESTIONS if pair else None)
    return adapter, collate(data, np.arange(len(TEXTS)) if rows is None else np.asarray(rows))


def passes(adapter, monkeypatch):
    """Texts and tokens of each later forward pass of the network."""
    shapes, original = [], adapter.model.network.forward

    def forward(**inputs):
        shapes.append(tuple(inputs["inputs_embeds"].shape[:2]))
        return original(**inputs)

    monkeypatch.setattr(adapter.model.network, "forward", forward)
    return shapes


def theirs(folder, pair):
    """Token ids and probabilities by the library's own tokenizer and model, one text at a time."""
    words = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    expected_rows = [
        words(text, question, return_tensors="pt") if pair else words(text, return_tensors="pt")
        for text, question in zip(TEXTS, QUESTIONS, strict=True)
    ]
    with torch.no_grad():
        probs = torch.cat([model(**row).logits.double().softmax(-1) for row in expected_rows])
    return [row["input_ids"][0].tolist() for row in expected_rows], probs


@pytest.mark.sweep(keep=2)
@KIND
@PAIR
def test_ids_and_probabilities_are_the_librarys_own(kind, pair, folder):
    """The batch is padded, each text of theirs is not."""
    adapter, batch = batch_of(examined(folder(kind)), pair)
    ids, probs = theirs(folder(kind), pair)
    for row, expected in enumerate(ids):
        result = batch.ids[row][batch.present[row]].tolist()
        result += batch.question_ids[row][batch.question_present[row]].tolist() if pair else []
        assert result == expected
    torch.testing.assert_close(observe(adapter.model, batch).probs, probs, **CLOSE)


@pytest.mark.sweep(keep=1)
@KIND
def test_a_pipeline_of_the_library_gives_the_same_probabilities_in_the_same_order_of_classes(kind, folder):
    words, model = AutoTokenizer.from_pretrained(folder(kind)), network(kind)
    pipe = pipeline("text-classification", model=model, tokenizer=words, top_k=None, device="cpu")
    adapter, batch = batch_of(as_adapter(pipe))
    scores = [{score["label"]: score["score"] for score in text} for text in pipe(TEXTS)]
    expected = torch.tensor([[text[name] for name in adapter.classes] for text in scores], dtype=torch.float64)
    assert adapter.classes == LABELS
    torch.testing.assert_close(observe(adapter.model, batch).probs, expected, **CLOSE)


@pytest.mark.sweep(keep=2)
@KIND
@PAIR
@pytest.mark.parametrize("attention", ["last", "rollout"])
def test_neither_padding_nor_its_content_nor_the_batch_changes_anything(kind, pair, attention, folder):
    adapter, batch = batch_of(examined(folder(kind), attention), pair)
    seen, length = observe(adapter.model, batch), batch.ids.shape[1]
    for other in (widened(batch, 3), littered(batch), littered(widened(batch, 1))):
        again = observe(adapter.model, other)
        torch.testing.assert_close(again.probs, seen.probs, **CLOSE)
        torch.testing.assert_close(again.weights[:, :length], seen.weights, **CLOSE)
        assert not again.weights[:, length:].any()
    for row in range(len(TEXTS)):
        alone = observe(adapter.model, batch_of(adapter, pair, [row])[1])
        torch.testing.assert_close(alone.probs, seen.probs[row : row + 1], **CLOSE)
        size = alone.weights.shape[1]
        torch.testing.assert_close(alone.weights, seen.weights[row : row + 1, :size], **CLOSE)
    order = [3, 0, 4, 1, 2]
    torch.testing.assert_close(
        observe(adapter.model, batch_of(adapter, pair, order)[1]).probs, seen.probs[order], **CLOSE
    )


@pytest.mark.sweep(keep=2)
@KIND
def test_weights_are_those_of_the_tokens_the_classifier_reads(kind, folder):
    """By hand, from the library's own attention: [CLS] of most, the last token of GPT-2, all of a mean."""
    adapter, batch = batch_of(examined(folder(kind)))
    model = AutoModelForSequenceClassification.from_pretrained(folder(kind), attn_implementation="eager").eval()
    seen = observe(adapter.model, batch)
    for row in range(len(TEXTS)):
        real = batch.present[row]
        with torch.no_grad():
            attention = model(input_ids=batch.ids[row : row + 1, real], output_attentions=True).attentions[-1]
        heads = attention[0].double().mean(0).numpy()  # (T,T)
        read = {"gpt2": heads[-1], "modernbert": heads.mean(0)}.get(kind, heads[0])
        words = read * batch.mask[row, real].numpy()
        torch.testing.assert_close(seen.weights[row, real], torch.from_numpy(words / words.sum()), **CLOSE)


@KIND
@PAIR
def test_gradients_flow_through_weights_and_logits_and_only_from_real_tokens(kind, pair, folder):
    adapter, batch = batch_of(examined(folder(kind)), pair)
    with with_gradients(adapter.model):
        vectors = adapter.model.embed(batch).detach().requires_grad_()
        output = adapter.model(batch, vectors)
        tokens = torch.arange(batch.ids.shape[1]).sin()
        (by_weights,) = torch.autograd.grad((output.weights * tokens).sum(), vectors, retain_graph=True)
        (by_logits,) = torch.autograd.grad(output.logits[:, 0].sum(), vectors)
    for slope in (by_weights, by_logits):
        assert slope.isfinite().all()
        assert not slope[~batch.present].any()
        assert slope[batch.mask].any(-1).float().mean() > 0.9  # nearly every word has an effect


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"modernbert"}))  # whose softmax is always in singles
def test_gradients_agree_with_finite_differences(kind):
    """In doubles, against finite differences."""
    adapter, batch = batch_of(as_adapter((network(kind).double(), tokenizer(kind))), rows=[1, 3])
    vectors = adapter.model.embed(batch).detach().requires_grad_()

    def outputs_of(inputs):
        return adapter.model(batch, inputs).weights, adapter.model(batch, inputs).logits

    assert torch.autograd.gradcheck(outputs_of, vectors, atol=1e-4, rtol=1e-3, fast_mode=True)


@KIND
def test_the_models_own_vectors_predict_the_same_as_ids_and_others_do_not(kind, folder):
    adapter, batch = batch_of(examined(folder(kind)))
    own = adapter.model.embed(batch)
    seen, again = observe(adapter.model, batch), observe(adapter.model, batch, own)
    assert torch.equal(again.probs, seen.probs)
    assert torch.equal(again.weights, seen.weights)
    assert (observe(adapter.model, batch, own.roll(1, -1)).probs - seen.probs).abs().max() > 1e-3
    torch.testing.assert_close(own, adapter.model.vectors[batch.ids])


@KIND
def test_many_texts_are_read_in_parts_that_change_nothing(kind, folder, monkeypatch):
    adapter, batch = batch_of(examined(folder(kind)))
    whole, shapes = observe(adapter.model, batch), passes(adapter, monkeypatch)
    monkeypatch.setattr(networks, "MAX_ATTENTION_ENTRIES", 1)
    parts = observe(adapter.model, batch)
    assert len(shapes) == len(TEXTS)
    torch.testing.assert_close(parts.probs, whole.probs, **CLOSE)
    torch.testing.assert_close(parts.weights, whole.weights, **CLOSE)


@KIND
def test_a_pass_on_a_cpu_has_a_limited_number_of_tokens(kind, folder, monkeypatch):
    """Texts of similar length share a pass: long texts do not pad short ones."""
    adapter, batch = batch_of(examined(folder(kind)))
    whole, shapes = observe(adapter.model, batch), passes(adapter, monkeypatch)
    longest = int(batch.present.sum(1).max())
    monkeypatch.setattr(networks, "CPU_TOKENS", longest)
    parts = observe(adapter.model, batch)
    assert len(shapes) > 1
    assert sum(rows for rows, _ in shapes) == len(TEXTS)
    assert max(rows * width for rows, width in shapes) == longest
    torch.testing.assert_close(parts.probs, whole.probs, **CLOSE)
    torch.testing.assert_close(parts.weights, whole.weights, **CLOSE)


@pytest.mark.sweep(keep=1)
@KIND
def test_the_shortcut_leakage_of_pairs_of_several_pieces_each_is_measured(kind, folder):
    """The questions are longer and shorter than the texts, and each row has a key of its own."""
    examples = [Example(text, question=question) for text, question in zip(TEXTS, QUESTIONS, strict=True)]
    swapped = [Example(example.question, question=example.text) for example in examples]
    for rows in (examples, swapped):
        case = prepare(examined(folder(kind)), rows, {"attention": Attention()}, ProbeConfig()).case
        findings = {finding.measure: finding for finding in shortcut_leakage(case)}
        assert findings["default-mass"].values.isfinite().any()
        assert len(set(case.keys.tolist())) == len(TEXTS)


@pytest.mark.sweep(keep=1)
@KIND
def test_an_audit_computes_no_forward_pass_twice(kind, folder, monkeypatch):
    adapter = examined(folder(kind))
    case = prepare(adapter, [Example(text) for text in TEXTS], {"attention": Attention()}, ProbeConfig()).case
    (steps,) = text_perturbations.pgd_on_attention.__defaults__
    shapes, costs = passes(adapter, monkeypatch), {}
    for name, work in {
        "prediction": lambda: case.probs,
        "attention": lambda: case.saliency("attention"),
        "noise": lambda: list(_probe_findings(case, "noise", case.probes["noise"])),
        "fgm-label": lambda: list(_probe_findings(case, "fgm-label", case.probes["fgm-label"])),
        "pgd-attention": lambda: list(_probe_findings(case, "pgd-attention", case.probes["pgd-attention"])),
        "gradient": lambda: case.gradient(False, case.sample),
        "the other gradients": lambda: case.gradient(False, case.all_rows),
    }.items():
        shapes.clear()
        work()
        costs[name] = sum(rows for rows, _ in shapes) / len(TEXTS)
    assert costs == {
        "prediction": 1,
        "attention": 0,
        "noise": 1,
        "fgm-label": 2,
        "pgd-attention": 5 + steps,  # the original, FGM, the steps, the last point and that of FGM, the best point
        "gradient": 1,
        "the other gradients": 0,
    }


@KIND
def test_padding_that_all_texts_share_is_not_read(kind, folder, monkeypatch):
    """Texts that lost most of their words cost what they are, not what they were."""
    adapter, batch = batch_of(examined(folder(kind)))
    shapes = passes(adapter, monkeypatch)
    gone = batch.mask & (batch.mask.cumsum(1) > 1)
    observe(adapter.model, remove_words(batch, gone))
    assert [width for _, width in shapes] == [int((batch.present & ~gone).sum(1).max())]


@KIND
def test_a_text_that_lost_every_word_is_still_read_and_alike_in_every_batch(kind, folder):
    """GPT-2 has no special tokens: nothing at all is left, and one token of padding stands for it."""
    adapter, batch = batch_of(examined(folder(kind)))
    nothing = remove_words(batch, batch.mask)
    seen = observe(adapter.model, nothing)
    assert seen.probs.isfinite().all()
    assert not seen.weights.any()
    torch.testing.assert_close(seen.probs, seen.probs[:1].expand_as(seen.probs), **CLOSE)
    torch.testing.assert_close(observe(adapter.model, widened(nothing, 4)).probs, seen.probs, **CLOSE)
    padded = replace(nothing, present=nothing.present | (torch.arange(batch.ids.shape[1]) < 1))
    if kind == "gpt2":
        padded = replace(padded, ids=torch.full_like(padded.ids, adapter.model.padding))
    torch.testing.assert_close(observe(adapter.model, padded).probs, seen.probs, **CLOSE)


@pytest.mark.sweep(keep=2)
@KIND
@PAIR
def test_probes_and_explainers_leave_it_as_it_was(kind, pair, folder):
    adapter, batch = batch_of(as_adapter(folder(kind), device="cpu"), pair)
    model = adapter.model.train()
    model.network.get_input_embeddings().weight.grad = torch.ones_like(adapter.model.vectors)
    before = state(model)
    text_perturbations.pgd_on_attention(model, batch, 0.3, RandomKey(0), steps=2)
    text_perturbations.fgm_on_label(model, batch, 0.3)
    observe(model, remove_words(batch, batch.mask))
    Attention().explain(model, batch)
    assert state(model) == before


def test_the_worst_move_of_vectors_moves_attention_further_than_a_random_one(folder):
    """That is what gradients through the weights are for."""
    adapter, batch = batch_of(as_adapter(folder("bert"), device="cpu"))
    seen = observe(adapter.model, batch).weights
    worst = text_perturbations.pgd_on_attention(adapter.model, batch, 0.5, RandomKey(0))
    random = text_perturbations.embedding_noise(adapter.model, batch, 0.5, RandomKey(0))
    moved = [
        (observe(adapter.model, batch, perturbation.embedded).weights - seen).abs().sum()
        for perturbation in (worst, random)
    ]
    assert moved[0] > 1.5 * moved[1]


@pytest.mark.sweep(keep=2)
@KIND
def test_a_live_model_stays_the_users_own(kind):
    """Mode, configuration, hooks and weights: an examined model is a twin that shares the weights alone."""
    model, words = network(kind).train(), tokenizer(kind)
    before = state(model), copy.deepcopy(model.config.to_dict()), model.config._attn_implementation
    written = words.backend_tokenizer.to_str()
    adapter, batch = batch_of(as_adapter((model, words)))
    observe(adapter.model, batch)
    assert (state(model), model.config.to_dict(), model.config._attn_implementation) == before
    assert words.backend_tokenizer.to_str() == written
    assert adapter.model.vectors.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    model.eval()
    ids = batch.ids[2:3, batch.present[2]]
    torch.testing.assert_close(
        observe(adapter.model, batch).probs[2:3], model(input_ids=ids).logits.double().softmax(-1), **CLOSE
    )


def test_a_live_model_and_its_folder_are_the_same_model(folder):
    result = as_adapter(folder("bert"), device="cpu")
    live = as_adapter((network("bert"), tokenizer("bert")))
    assert live.fingerprint == result.fingerprint
    assert is_comparable(live, result)
    assert (result.name, live.name) == ("bert", "BertForSequenceClassification")
    changed = network("bert")
    with torch.no_grad():
        changed.classifier.bias[0] += 1e-6
    assert as_adapter((changed, tokenizer("bert"))).fingerprint != result.fingerprint


def test_a_model_without_a_padding_token_reads_many_texts_at_once():
    """The library itself refuses that of GPT-2.  The end of a text is taken for padding."""
    model, words = network("gpt2", pad_token_id=None, eos_token_id=5), tokenizer("gpt2")
    words.pad_token = None
    adapter, batch = batch_of(as_adapter((model, words)))
    assert (adapter.model.padding, model.config.pad_token_id) == (5, None)
    for row in range(len(TEXTS)):
        alone = model(input_ids=batch.ids[row : row + 1, batch.present[row]]).logits.double().softmax(-1)
        torch.testing.assert_close(observe(adapter.model, batch).probs[row : row + 1], alone, **CLOSE)


def test_half_precision_is_read_as_it_is():
    adapter, batch = batch_of(as_adapter((network("bert").to(torch.bfloat16), tokenizer("bert"))))
    exact, _ = batch_of(as_adapter((network("bert"), tokenizer("bert"))))
    seen, right = observe(adapter.model, batch), observe(exact.model, batch)
    torch.testing.assert_close(seen.weights, right.weights, rtol=0, atol=0.05)
    torch.testing.assert_close(seen.weights.sum(-1), torch.ones(len(TEXTS), dtype=torch.float64), rtol=0, atol=1e-6)
    assert adapter.fingerprint != exact.fingerprint


@PAIR
def test_long_texts_are_cut_where_the_network_ends(pair, folder):
    adapter = as_adapter(folder("bert"), device="cpu").for_pairs(pair)
    long = " ".join(["good"] * 100)
    placed = adapter.tokens.place([long])
    read = adapter.data(placed, [long] if pair else None)
    many = int(read.text.lengths[0]) + (int(read.question.lengths[0]) if pair else 0)
    assert many == {False: 40, True: 39}[pair]  # 40 places; of a pair's 37 that are no specials, 18 each
    assert placed.ragged.cut.all()
    if not pair:
        words = AutoTokenizer.from_pretrained(folder("bert"))
        assert read.text.ids.tolist() == words(long, truncation=True, max_length=40)["input_ids"]
    observe(adapter.model, collate(read, np.array([0])))


@pytest.mark.slow
def test_a_tokenizer_that_gives_no_token_types_is_taken_at_its_word(tmp_path, folder):
    """The same network and template; only model_input_names differs."""
    words = tokenizer("bert")
    words.model_input_names = ["input_ids", "attention_mask"]
    network("bert").save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    adapter, batch = batch_of(as_adapter(tmp_path, device="cpu"), pair=True)
    torch.testing.assert_close(observe(adapter.model, batch).probs, theirs(tmp_path, True)[1], **CLOSE)
    typed, _ = batch_of(as_adapter(folder("bert"), device="cpu"), pair=True)
    assert (observe(typed.model, batch).probs - observe(adapter.model, batch).probs).abs().max() > 1e-3
