"""A model as a folder: what it holds, and that it comes back as it was."""

import json
import re
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import steadygaze
from estimator.model_folder.compare import assert_same, contents
from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, fitted, tiny
from steadygaze.adapters.load_and_explain import load
from steadygaze.core.errors import UserError
from steadygaze.estimator.model_config import SCHEMA
from steadygaze.estimator.model_folder import FILES
from steadygaze.estimator.train_config import TextConfig
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders import ENCODERS

NUMBERS = [int(label == "pos") for label in LABELS]

pytestmark = pytest.mark.filterwarnings(
    "ignore::steadygaze.core.errors.CoverageWarning"
)  # some are cut short on purpose


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("X", [TEXTS, PAIRS], ids=["single", "pair"])
def test_a_loaded_model_is_the_saved_one_bit_for_bit(encoder, X, tmp_path):
    clf = tiny(encoder).fit(X, NUMBERS)
    clf.save(tmp_path / "model")
    assert_same(clf, load(tmp_path / "model"), X)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("X", [TEXTS, PAIRS], ids=["single", "pair"])
def test_a_transformer_needs_its_folder_no_more_once_it_is_saved(network, X, tmp_path):
    home = shutil.copytree(network, tmp_path / "home")
    clf = tiny(f"transformer:{home}").fit(X, LABELS)
    clf.save(tmp_path / "model")
    shutil.rmtree(home)
    assert_same(clf, load(tmp_path / "model"), X)


@pytest.mark.slow
@given(
    architecture=st.fixed_dictionaries(
        {
            "hidden": st.integers(2, 6),
            "dimension": st.integers(1, 6),
            "score": st.sampled_from(["additive", "dot"]),
            "attention": st.sampled_from(["softmax", "sparsemax", "entmax15"]),
            "decoder": st.sampled_from(["linear", "mlp"]),
            "dropout": st.sampled_from([0.0, 0.5]),
        }
    ),
    encoder=st.sampled_from(sorted(ENCODERS)),
    pair=st.booleans(),
    labels=st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=4, unique=True)
    | st.lists(
        st.text(st.characters(codec="utf-8", categories=["L", "P", "S"]), min_size=1),
        min_size=2,
        max_size=12,  # a label per text is refused
        unique=True,
    ),
    max_length=st.none() | st.integers(1, 9),
)
@settings(max_examples=12, deadline=None)
def test_any_tiny_model_comes_back_as_it_was(architecture, encoder, pair, labels, max_length):
    X, y = PAIRS if pair else TEXTS, [labels[i % len(labels)] for i in range(24)]
    clf = tiny(encoder, settings=architecture, max_length=max_length)
    clf.fit(X, y, validation=(X, y))
    with tempfile.TemporaryDirectory() as home:
        clf.save(Path(home) / "model")
        assert_same(clf, load(Path(home) / "model"), X)


def test_config_describes_the_model(folder):
    config = json.loads((folder / "config.json").read_text())
    assert config["schema"] == SCHEMA
    assert config["steadygaze"] == steadygaze.__version__
    assert config["classes"] == ["neg", "pos"]
    assert config["technique"] == "vanilla"
    assert config["technique_settings"] == {}
    assert config["training"]["learning_rate"] == 0.05
    assert config["text"] == asdict(TextConfig())
    assert config["architecture"] == asdict(Architecture(**SMALL))
    assert re.fullmatch(r"[0-9a-f]{64}", config["corpus"])
    assert len(config["history"]) == len(fitted().history_)


def test_the_fingerprint_is_of_texts_labels_and_weights():
    def fingerprint(*data):
        return tiny("average").fit(*data).stored_.description.corpus

    prints = [
        fingerprint(TEXTS, LABELS),
        fingerprint([*TEXTS[:-1], "another"], LABELS),
        fingerprint(TEXTS, LABELS[::-1]),
        fingerprint(TEXTS, LABELS, [1, 2] * 12),
    ]
    assert len(set(prints)) == 4
    assert fingerprint(np.array(TEXTS), tuple(LABELS)) == prints[0]


def test_the_fingerprint_is_of_what_was_given_whatever_the_seed_set_aside():
    first, second = (tiny("average", seed=seed).fit(TEXTS, LABELS).stored_.description.corpus for seed in (1, 2))
    chosen = tiny("average").fit(TEXTS, LABELS, validation=(TEXTS[:2], LABELS[:2])).stored_.description.corpus
    assert first == second == chosen.split(":")[0]
    assert len(chosen.split(":")) == 2


def test_a_model_folder_names_no_path_of_this_machine(network, tmp_path):
    vectors = tmp_path / "my-vectors.txt"
    vectors.write_text("".join(f"{word} 0.1 0.{i} 0.3\n" for i, word in enumerate(["good", "bad", "film"])))
    tiny(vectors=vectors).fit(TEXTS, LABELS).save(tmp_path / "words")
    tiny(f"transformer:{network}").fit(TEXTS, LABELS).save(tmp_path / "pieces")
    for model in ("words", "pieces"):
        for name, content in contents(tmp_path / model).items():
            for path in (tmp_path, network.parent, Path.home(), Path.cwd()):
                assert len(str(path)) < 3 or str(path).encode() not in content, name
    assert load(tmp_path / "words").get_params()["vectors"] == "my-vectors.txt"
    assert load(tmp_path / "pieces").get_params()["encoder"] == "transformer:tiny-bert"


def test_two_saves_are_the_same_bytes(folder, tmp_path):
    fitted().save(tmp_path / "again")
    load(folder).save(tmp_path / "loaded")
    assert contents(folder) == contents(tmp_path / "again") == contents(tmp_path / "loaded")
    assert set(contents(folder)) == {*FILES, "training_texts.safetensors", "README.md"}


def test_two_trainings_are_the_same_bytes(tmp_path):
    for name in ("first", "second"):
        tiny().fit(TEXTS, LABELS).save(tmp_path / name)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_nothing_in_the_folder_is_a_pickle(folder):
    for name, content in contents(folder).items():
        assert not content.startswith((b"\x80", b"PK")), name
        assert b"pickle" not in content, name


def test_loading_leaves_the_callers_random_state_alone(folder):
    before = torch.get_rng_state()
    load(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loaded_estimator_trains_its_like(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("vectors.txt").write_text("".join(f"{word} 0.1 0.{i} 0.3\n" for i, word in enumerate(["good", "bad", "film"])))
    values = {"hidden": 3, "attention": "sparsemax", "decoder": "mlp", "learning_rate": 0.01, "min_df": 1}
    clf = tiny(
        "gru",
        seed=5,
        epochs=2,
        batch_size=7,
        vectors="vectors.txt",
        settings=values,
        max_length=5,
        class_weight={1: 2.0, 0: 0.5},
    )
    clf.fit(TEXTS, NUMBERS).save("model")
    loaded = load("model", device="cpu")
    assert loaded.get_params(deep=False) == {**clf.get_params(deep=False), "settings": {**values, "dimension": 3}}
    assert np.array_equal(clone(loaded).fit(TEXTS, NUMBERS).predict_proba(TEXTS), clf.predict_proba(TEXTS))
    assert clone(loaded).set_params(epochs=1).fit(TEXTS, NUMBERS).history_ == clf.history_[:1]


def test_a_loaded_estimator_mentions_only_what_is_not_the_default(tmp_path):
    tiny("bilstm").fit(TEXTS, LABELS).save(tmp_path / "model")
    assert repr(load(tmp_path / "model")) == f"TextClassifier(epochs=1, max_length=512, settings={SMALL!r})".replace(
        "{'hidden': 4, 'dimension': 6}", "{'dimension': 6, 'hidden': 4}"
    )


def test_a_device_is_checked_before_anything_is_read(tmp_path):
    with pytest.raises(UserError, match="unknown device 'gpu'"):
        load(tmp_path / "nowhere", device="gpu")


def test_labels_of_any_characters_come_back(tmp_path):
    labels = ["très bien", "|`ba`d`|", "😀\n😀", "\x7f"]
    clf = tiny("average").fit(TEXTS, labels * 6)
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == sorted(labels)
