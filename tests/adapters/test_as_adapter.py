"""Any accepted model becomes a ModelAdapter; an error names what is accepted otherwise."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline

import steadygaze as sg
from adapters.folders import LABELS, TEXTS, network, save, tokenizer
from estimator.tiny import TEXTS as OURS
from estimator.tiny import fitted, fitted_pair, tiny
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.black_box import black_box
from steadygaze.adapters.transformer_checks import check_network, try_network
from steadygaze.adapters.transformer_network import ForwardOptions, TransformerModel
from steadygaze.core.errors import UserError
from steadygaze.data.batches import collate
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.encoders.transformer import PACKAGES, locate
from steadygaze.properties.probes.text_perturbations import observe


def spoiled(folder, place, **changes):
    """A copy with another value in config.json."""
    shutil.copytree(folder, place)
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(config | changes))
    return place


def test_an_adapter_is_returned_as_it_is_and_a_text_classifier_becomes_one(tmp_path):
    adapter = as_adapter(fitted())
    assert (adapter.name, adapter.kind, adapter.pair) == ("model", "a steadygaze classifier", False)
    assert as_adapter(adapter).classes == adapter.classes == ["neg", "pos"]
    assert as_adapter(fitted_pair()).pair is True
    fitted().save(tmp_path / "mine")
    for inputs in (tmp_path / "mine", str(tmp_path / "mine") + "/"):
        loaded = as_adapter(inputs, device="cpu")
        assert (loaded.name, loaded.fingerprint) == ("mine", adapter.fingerprint)
        data = loaded.data(loaded.tokens.place(OURS), None)
        probs = observe(loaded.model, collate(data, np.arange(len(OURS)))).probs
        np.testing.assert_allclose(probs.numpy(), fitted().predict_proba(OURS), atol=1e-6)


def test_a_name_is_never_a_path(folder, monkeypatch):
    monkeypatch.chdir(folder("bert"))
    assert as_adapter(".", device="cpu").name == "bert"
    live = AutoModelForSequenceClassification.from_pretrained(folder("bert"))
    words = AutoTokenizer.from_pretrained(folder("bert"))
    assert as_adapter((live, words)).name == "bert"
    live.config._name_or_path = live.name_or_path = "somebody/bert-of-films"
    assert as_adapter((live, words)).name == "somebody/bert-of-films"
    assert as_adapter(lambda texts: texts, classes=["a", "b"]).name == "a function"


def test_a_hub_id_is_fetched_and_keeps_its_name(folder, monkeypatch):
    queries = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda name, **more: queries.append((name, more)) or str(folder("bert"))
    )
    adapter = as_adapter("somebody/films", device="cpu")
    assert (adapter.name, queries[0][0]) == ("somebody/films", "somebody/films")
    assert not [pattern for pattern in queries[0][1]["allow_patterns"] if pattern.endswith((".bin", ".py", ".pt"))]
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: 1 / 0)
    with pytest.raises(UserError, match=r"somebody/films: no such folder, and the download from the hub failed"):
        as_adapter("somebody/films")


def test_a_bare_name_without_a_folder_does_not_wait_for_the_hub(monkeypatch):
    options = []

    def download(name, **more):
        options.append(more["local_files_only"])
        raise OSError("not cached")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(UserError, match=r"films: no such folder, and not a name on the hub, OWNER/NAME"):
        as_adapter("films")
    with pytest.raises(UserError, match="the download from the hub failed"):
        as_adapter("somebody/films")
    assert options == [True, False]


@pytest.mark.parametrize("name", ["./no/folder/deep", "no/folder/deep", "/no/folder"])
def test_a_path_that_is_not_a_hub_id_is_a_missing_folder(name):
    with pytest.raises(UserError, match=rf"{name}: no such folder, and not a name on the hub"):
        as_adapter(name)


def test_facts_name_how_attention_was_aggregated(folder):
    assert as_adapter(folder("bert"), device="cpu").facts["attention"] == "last"
    rolled = as_adapter(folder("bert"), device="cpu", attention="rollout")
    assert rolled.facts == {"architecture": "BertForSequenceClassification", "attention": "rollout"}
    assert rolled.kind == "a Hugging Face classifier (bert)"
    with pytest.raises(UserError, match=r"unknown attention 'first'.*last, rollout"):
        as_adapter(folder("bert"), attention="first")


def test_a_loaded_model_keeps_its_attention(folder):
    last, rolled = (sg.load(folder("bert"), device="cpu", attention=how) for how in ("last", "rollout"))
    assert as_adapter(rolled, attention="rollout").facts["attention"] == "rollout"
    with pytest.raises(UserError, match=r"bert is already loaded with attention='last': pass .*'rollout' to sg\.load"):
        sg.audit(last, ["good"], ["positive"], attention="rollout")


def test_attention_is_refused_for_models_of_other_kinds(tmp_path):
    fitted().save(tmp_path / "model")
    for model in (fitted(), tmp_path / "model", black_box(lambda _: [[0.1, 0.9]], ["a", "b"], "f"), lambda _: [0.5]):
        with pytest.raises(UserError, match=r"attention='rollout' .* Hugging Face model.*leave out attention="):
            sg.load(model, attention="rollout")
    with pytest.raises(UserError, match=r"unknown attention 'bogus'.*last, rollout"):
        sg.load(lambda _: [0.5], attention="bogus")


def test_load_expands_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "img").mkdir()
    (tmp_path / "img/config.json").write_text('{"kind": "image-classifier"}')
    with pytest.raises(UserError, match="img is an image classifier: leave out classes=, attention="):
        sg.load("~/img", classes=["a", "b"])


@pytest.mark.slow
def test_classes_are_the_models_own_or_those_given(folder):
    assert as_adapter(folder("bert"), device="cpu").classes == LABELS
    named = as_adapter(folder("bert"), device="cpu", classes=[2, 0, 1])
    assert named.label_codes([0, 2]) == [1, 0]
    with pytest.raises(UserError, match="bert has 3 classes, but classes= has 2 names: pass one name for each of "):
        as_adapter(folder("bert"), device="cpu", classes=["a", "b"])
    with pytest.raises(UserError, match="two classes named 'a'"):
        as_adapter(folder("bert"), device="cpu", classes=["a", "b", "a"])
    with pytest.raises(UserError, match="two classes named 'a'"):
        as_adapter(len, classes=["a", "a"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"architectures": ["BertModel"]}, "is not a classifier: its config.json names BertModel"),
        ({"architectures": None}, "is not a classifier: its config.json names no architecture"),
        ({"architectures": ["ViTForImageClassification"]}, r"classifies images: .* sg\.explain_images\(network"),
        ({"problem_type": "ranking"}, "problem_type is 'ranking'|cannot be read"),
        ({"id2label": {"0": "score"}, "label2id": {"score": 0}}, "cannot be read as a Hugging Face classifier"),
        ({"is_encoder_decoder": True}, "cannot be examined"),
        ({"model_type": "nonsense"}, "has no model_type 'nonsense'"),
        ({"vocab_size": 20}, "cannot be read as a Hugging Face classifier|has vectors for 20"),
        ({"hidden_size": 16}, "cannot be read as a Hugging Face classifier"),
        ({"id2label": {str(i): str(i) for i in range(5)}}, "cannot be read as a Hugging Face classifier"),
    ],
)
def test_a_folder_that_is_no_trained_classifier_of_one_label_is_refused(changes, sentence, folder, tmp_path):
    with pytest.raises(UserError, match=sentence) as refusal:
        as_adapter(spoiled(folder("bert"), tmp_path / "spoiled", **changes), device="cpu")
    assert "\n" not in str(refusal.value)


def test_a_head_that_was_never_trained_is_refused(tmp_path):
    """The library would make up its weights."""
    network("bert").bert.save_pretrained(tmp_path / "headless")
    tokenizer("bert").save_pretrained(tmp_path / "headless")
    with pytest.raises(UserError, match=r"headless is not a classifier: its config\.json names BertModel"):
        as_adapter(tmp_path / "headless", device="cpu")
    config = json.loads((tmp_path / "headless" / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "headless" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="headless is not a trained classifier: its weights lack classifier"):
        as_adapter(tmp_path / "headless", device="cpu")


@pytest.mark.parametrize(
    ("lost", "sentence"),
    [
        ("config.json", "not a steadygaze model or a Hugging Face classifier: it has no config.json; pass the folder"),
        ("model.safetensors", r"has no \.safetensors weights"),
        ("tokenizer.json", r"no tokenizer\.json in"),
    ],
)
def test_a_folder_that_lacks_a_file_is_an_error_that_names_it(lost, sentence, folder, tmp_path):
    shutil.copytree(folder("bert"), tmp_path / "copy")
    os.remove(tmp_path / "copy" / lost)
    with pytest.raises(UserError, match=sentence):
        as_adapter(tmp_path / "copy", device="cpu")


@pytest.mark.parametrize("name", ["model.joblib", "model.pkl", "model.safetensors"])
def test_a_file_is_not_read_as_a_model_and_the_way_to_pass_its_content_is_named(name, tmp_path):
    (tmp_path / name).write_bytes(b"\x80\x04c__main__\nrun\n.")
    with pytest.raises(UserError, match=r"runs code.  Load it in a module of your own, and pass MODULE:NAME"):
        as_adapter(tmp_path / name, device="cpu")
    with pytest.raises(UserError, match="pass MODULE:NAME"):
        sg.load(tmp_path / name)


def test_damaged_files_are_named(folder, tmp_path):
    shutil.copytree(folder("bert"), tmp_path / "copy")
    (tmp_path / "copy" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"model\.safetensors is damaged or cut short"):
        as_adapter(tmp_path / "copy", device="cpu")
    (tmp_path / "copy" / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json is not JSON"):
        as_adapter(tmp_path / "copy", device="cpu")


def test_pickled_weights_and_code_of_a_folder_are_never_opened(folder, tmp_path):
    place = spoiled(folder("bert"), tmp_path / "evil", auto_map={"AutoModelForSequenceClassification": "evil.Evil"})
    (place / "evil.py").write_text(f"open({str(tmp_path / 'was_here')!r}, 'w').close()\nclass Evil: ...\n")
    assert type(as_adapter(place, device="cpu").model.network).__module__.startswith("transformers.")
    assert not (tmp_path / "was_here").exists()
    os.remove(place / "model.safetensors")
    torch.save(network("bert").state_dict(), place / "pytorch_model.bin")
    with pytest.raises(UserError, match="can run code"):
        as_adapter(place, device="cpu")


def test_a_kernel_named_in_a_folder_is_never_fetched(folder, tmp_path):
    place = spoiled(folder("bert"), tmp_path / "kernel", _attn_implementation="kernels-community/flash-attn")
    assert as_adapter(place, device="cpu").model.network.config._attn_implementation == "eager"


@pytest.mark.parametrize(
    ("make_object", "sentence"),
    [
        (lambda: (network("bert").bert, tokenizer("bert")), "a BertModel is not a classifier"),
        (lambda: (network("bert"), object()), "object is not a fast tokenizer"),
        (lambda: (network("bert"), None), "NoneType is not a fast tokenizer"),
        (
            lambda: network("bert"),
            r"alone cannot read texts: pass it with its tokenizer, .* images is for sg\.explain_images",
        ),
        (lambda: TextClassifier(), "has not been trained yet"),
        (lambda: tiny, "has no classes_"),
        (lambda: TextClassifier, "is not a model; pass a TextClassifier, a folder or hub id"),
        (lambda: 3, "3 is not a model; pass a TextClassifier, a folder"),
        (lambda: None, "None is not a model"),
        (lambda: ("a", "b"), "is not a model"),
    ],
)
def test_an_object_that_is_not_a_model_is_refused_with_what_is_accepted(make_object, sentence):
    with pytest.raises(UserError, match=sentence):
        as_adapter(make_object())


def test_a_pipeline_for_something_else_is_refused(folder):
    bert = AutoModel.from_pretrained(folder("bert"))
    words = AutoTokenizer.from_pretrained(folder("bert"))
    with pytest.raises(UserError, match="a pipeline for feature-extraction does not classify texts"):
        as_adapter(pipeline("feature-extraction", model=bert, tokenizer=words, device="cpu"))


def test_a_network_that_hides_its_attention_has_vectors_alone(monkeypatch):
    model, words = network("bert"), tokenizer("bert")
    right = type(model).forward

    def hidden(self, **inputs):
        output = right(self, **inputs)
        output.attentions = None
        return output

    monkeypatch.setattr(type(model), "forward", hidden)
    adapter = as_adapter((model, words))
    assert type(adapter.model) is TransformerModel
    assert (adapter.model.capabilities, adapter.facts["attention"]) == (
        frozenset({"embeddings", "transformer"}),
        "none shown",
    )
    seen = observe(adapter.model, collate(adapter.data(adapter.tokens.place(TEXTS), None), np.arange(len(TEXTS))))
    assert seen.shown is None
    assert seen.probs.shape == (len(TEXTS), 3)


def test_a_network_that_reads_padding_is_refused():
    """A model that attends to padding lets GPT-2 read it: the behavior of a network without a mask."""
    model = as_adapter((network("gpt2"), tokenizer("gpt2"))).model.network
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    result = try_network(model, ids)
    assert (result.read, result.attentive) == ("last", True)
    check_network(TransformerModel(model, ForwardOptions(0), "last"), ids)
    with pytest.raises(UserError, match=r"a GPT2ForSequenceClassification cannot be examined .*changes with padding"):
        check_network(TransformerModel(model, ForwardOptions(0), "first"), ids)


def test_a_network_that_cannot_read_vectors_is_refused_in_its_own_words(monkeypatch):
    model = network("bert")

    def only_ids(self, input_ids=None, attention_mask=None, **inputs):
        raise NotImplementedError("ids, please\nand nothing else")

    monkeypatch.setattr(type(model), "forward", only_ids)
    with pytest.raises(UserError, match=r"cannot be examined \(NotImplementedError: ids, please\)"):
        as_adapter((model, tokenizer("bert")))


@pytest.mark.slow
def test_minilm_with_a_head_of_classes_is_read_from_its_folder(tmp_path):
    """A network of real size, saved as anybody saves one."""
    pytest.importorskip(PACKAGES["minilm"][0], reason="the minilm extra is not installed")
    source = locate("minilm")
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=2)
    model.save_pretrained(tmp_path / "films")
    words = AutoTokenizer.from_pretrained(source)
    words.save_pretrained(tmp_path / "films")
    adapter = as_adapter(tmp_path / "films", device="cpu", attention="rollout").for_pairs(True)
    texts, questions = ["A gorgeous, witty movie.", "Dull."], ["Is it good?", "Would you, perhaps, see it twice?"]
    batch = collate(adapter.data(adapter.tokens.place(texts), questions), np.arange(2))
    question_tokens = words(texts, questions, return_tensors="pt", padding=True)
    with torch.no_grad():
        expected = model.eval()(**question_tokens).logits.double().softmax(-1)
    torch.testing.assert_close(observe(adapter.model, batch).probs, expected, rtol=0, atol=1e-5)
    assert adapter.classes == ["LABEL_0", "LABEL_1"]
    assert adapter.label_codes([1, 0]) == [1, 0]


def test_seven_places_for_a_pair_leave_two_for_each(tmp_path):
    place = save("bert", tmp_path / "short", max_position_embeddings=7)
    adapter = as_adapter(place, device="cpu").for_pairs(True)
    read = adapter.data(adapter.tokens.place(["good good good"]), ["bad bad bad"])
    assert (read.text.lengths.tolist(), read.question.lengths.tolist()) == ([4], [3])


def test_a_model_without_pairs_can_read_single_texts(tmp_path):
    adapter = as_adapter(save("bert", tmp_path / "short", max_position_embeddings=4), device="cpu")
    assert adapter.for_pairs(False).tokens.encode(["good good good"]).lengths.tolist() == [4]
    with pytest.raises(UserError, match=r"short reads single texts, found pairs .*: leave out the questions"):
        adapter.for_pairs(True)


def test_steadygaze_models_have_their_own_classes_and_no_prompt(tmp_path):
    classifier = fitted()
    classifier.save(tmp_path / "model")
    prompt = {"prompt": "{text}:", "label_words": {"a": " x", "b": " y"}}
    for model in (classifier, tmp_path / "model"):
        assert sg.load(model, classes=["neg", "pos"]).classes_.tolist() == ["neg", "pos"]
        with pytest.raises(UserError, match=r"load does not rename the classes .* pass classes= to explain, evaluate"):
            sg.load(model, classes=["bad", "good"])
        with pytest.raises(UserError, match="a prompt is for a causal language model"):
            sg.load(model, **prompt)
        assert sg.evaluate(model, OURS[:1], ["good"], classes=["bad", "good"]).classes == ("bad", "good")
