"""Errors for a model that is damaged, foreign or too new: one sentence, which file, what was expected."""

import json
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from estimator.model_folder.compare import assert_same, rewrite
from estimator.test_rationalizers import LABELS as MESSAGES
from estimator.test_rationalizers import TEXTS as ORDERED
from estimator.tiny import LABELS, TEXTS, fitted, tiny
from steadygaze.adapters.load_and_explain import load
from steadygaze.core.errors import UserError
from steadygaze.core.settings import settings
from steadygaze.estimator.model_config import SCHEMA
from steadygaze.estimator.model_folder import FILES
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rnp import Rnp
from steadygaze.techniques.vanilla import Vanilla


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(UserError, match=f"not a steadygaze model.*: it has no {name}"):
        load(folder)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such folder"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_truncated_weights_are_reported_as_damaged(folder, share):
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: int(len(weights) * share)])
    with pytest.raises(UserError, match=r"model\.safetensors is damaged or cut short"):
        load(folder)


@settings
class Mine(Rnp):
    """A technique of a user's own, whose models are no plain classifiers."""


def test_a_technique_that_is_not_known_is_named_and_so_is_what_would_read_it(tmp_path, monkeypatch):
    clf = tiny("bigru", technique=Mine()).fit(ORDERED, MESSAGES)
    clf.save(tmp_path / "model")
    with pytest.raises(UserError, match=r"model was trained by the unknown technique 'Mine'") as caught:
        load(tmp_path / "model")
    assert "steadygaze.techniques.TECHNIQUES['Mine'] = Mine" in str(caught.value)
    monkeypatch.setitem(TECHNIQUES, "Mine", Mine)
    back = load(tmp_path / "model", device="cpu")
    assert back.explain(ORDERED) == clf.explain(ORDERED)


@settings
class Plain(Vanilla):
    """One whose models are."""


def test_a_classifier_trained_by_a_technique_that_is_not_known_is_read_all_the_same(tmp_path):
    clf = tiny(technique=Plain()).fit(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model", device="cpu").predict(TEXTS).tolist() == clf.predict(TEXTS).tolist()


def edited(folder, edit):
    weights = load_file(folder / "model.safetensors")
    edit(weights)
    save_file(weights, folder / "model.safetensors")


def test_a_tensor_of_the_wrong_shape_is_named(folder):
    name = sorted(load_file(folder / "model.safetensors"))[0]
    edited(folder, lambda weights: weights.update({name: torch.zeros(3, 3, 3)}))
    with pytest.raises(UserError, match=rf"tensor {re.escape(name)} has shape \(3, 3, 3\), expected \("):
        load(folder)


def test_a_missing_and_a_foreign_tensor_are_named(folder):
    name = sorted(load_file(folder / "model.safetensors"))[0]
    edited(folder, lambda weights: weights.pop(name))
    with pytest.raises(UserError, match=rf"tensor {re.escape(name)} is missing"):
        load(folder)
    fitted().save(folder)
    edited(folder, lambda weights: weights.update({"zzz": torch.zeros(1)}))
    with pytest.raises(UserError, match="tensor zzz does not belong to this model"):
        load(folder)


def test_a_newer_schema_requires_an_upgrade(folder):
    rewrite(folder, schema=SCHEMA + 1, steadygaze="9.9", classes="something new")
    with pytest.raises(UserError, match=rf"schema {SCHEMA + 1}, written by steadygaze 9.9; .* upgrade"):
        load(folder)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "config.json is not JSON"),
        (b"{", "config.json is not JSON"),
        (b"[" * 100_000, "config.json is not JSON"),
        (b"\xff\xfe\x00", "config.json cannot be read"),
        (b"[]", "it has no schema number"),
        (b"3", "it has no schema number"),
        (b"{}", "it has no schema number"),
        (b'{"schema": "one"}', "it has no schema number"),
        (b'{"schema": 1}', "'classes' is missing"),
    ],
)
def test_a_damaged_config_is_reported_as_damaged(folder, content, sentence):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(UserError, match=sentence):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"classes": "ab"}, "setting 'classes': found 'ab'"),
        ({"classes": ["only"]}, "setting 'classes'"),
        ({"classes": ["a", None]}, "setting 'classes"),
        ({"classes": ["a", "a"]}, "labels are duplicates"),
        ({"classes": ["a", "b", "c"]}, "expected"),
        ({"pair": "perhaps"}, "setting 'pair': found 'perhaps'"),
        ({"pair": True}, "is missing"),
        ({"encoder": "bilstmm"}, "unknown encoder 'bilstmm': did you mean 'bilstm'"),
        ({"encoder": "transformer:x"}, "does not describe a network that can be built"),
        ({"encoder": "transformer:x", "network": {"model_type": "no-such"}}, "does not describe a network"),
        ({"encoder": "transformer:x", "network": {"model_type": "bert", "hidden_size": -1}}, "not describe a network"),
        ({"architecture": None}, "setting 'architecture'"),
        ({"architecture": {"hidden": 1}}, "setting 'architecture.hidden': found 1"),
        ({"architecture": {"hiden": 4}}, "architecture.hiden"),
        ({"kind": "letters"}, "setting 'kind': found 'letters'"),
        ({"max_length": 0}, "setting 'max_length': found 0"),
        ({"history": [1]}, "setting 'history.0'"),
        ({"seed": "x"}, "setting 'seed': found 'x'"),
    ],
)
def test_a_config_with_a_wrong_value_names_it(folder, changes, sentence):
    rewrite(folder, **changes)
    with pytest.raises(UserError, match=sentence) as caught:
        load(folder)
    assert "config.json" in str(caught.value) or "model.safetensors" in str(caught.value)


def test_a_key_of_a_later_package_is_passed_over(folder):
    rewrite(folder, color="blue")
    assert_same(fitted(), load(folder), TEXTS)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"version": "1.0"}'])
def test_a_broken_tokenizer_is_named(folder, content):
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.json"):
        load(folder)


def test_a_vocabulary_that_does_not_fit_its_vectors_is_refused(folder, network, tmp_path):
    vocabulary = json.loads((folder / "tokenizer.json").read_text())
    vocabulary["model"]["vocab"]["another"] = len(vocabulary["model"]["vocab"])
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    with pytest.raises(UserError, match=r"no tensor has a vector for each of the 25 tokens"):
        load(folder)
    tiny(f"transformer:{network}").fit(TEXTS, LABELS).save(tmp_path / "pieces")
    rewrite(
        tmp_path / "pieces",
        network={**json.loads((tmp_path / "pieces/config.json").read_text())["network"], "vocab_size": 9},
    )
    with pytest.raises(UserError, match=r"tokenizer\.json has \d+ tokens, but the network has vectors for 9"):
        load(tmp_path / "pieces")


def test_a_transformer_with_another_tokenizer_cannot_be_trained(network, tmp_path):
    odd = shutil.copytree(network, tmp_path / "odd")
    rewrite(odd, vocab_size=9)
    with pytest.raises(UserError, match="the network has vectors for 9"):
        tiny(f"transformer:{odd}").fit(TEXTS, LABELS)
