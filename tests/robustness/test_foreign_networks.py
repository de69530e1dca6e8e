"""Hugging Face folders that were damaged or made by an attacker: no pickle is opened, and one sentence is printed."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import steadygaze as sg
from robustness.conftest import run, shard
from robustness.damage import JSON, SPECIAL, WEIGHTS, Damage, changed, content, filled
from robustness.harness import assert_clean

AUDIT = ["audit", "{}/bert", "--data", "{}/films.csv", "--classes", "neg,pos,other"]
EXPLAIN = ["explain", "{}/bert", "a good film"]
TRAIN = ["train", "{}/films.csv", "--encoder", "transformer:{}/encoder", "--out", "{}/new", "--epochs", "1", "--quiet"]
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


class Bomb:
    """Unpickled, it writes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def armed(place: Path) -> Path:
    """Pickles under every name that the library knows, in both folders and beside them."""
    for folder in (place / "bert", place / "encoder", place):
        for name in ("pytorch_model.bin", "adapter_model.bin", "evil.bin", "model.bin"):
            (folder / name).write_bytes(pickle.dumps(Bomb(place / "exploded")))
    return place


def shards(**names: str) -> Damage:
    return lambda config: shard(config.parent, names)


def all_in(name: str) -> Damage:
    """An index by which one file holds every tensor."""

    def listed(config: Path) -> None:
        shard(config.parent, {})
        index = config.parent / "model.safetensors.index.json"
        names = json.loads(index.read_text())["weight_map"]
        index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, name)}))

    return listed


PICKLES: dict[str, Damage] = {
    "transformers_weights-bin": changed(transformers_weights="pytorch_model.bin"),
    "transformers_weights-adapter": changed(transformers_weights="adapter_model.bin"),
    "transformers_weights-parent": changed(transformers_weights="../evil.safetensors"),
    "transformers_weights-absolute": changed(transformers_weights="/etc/evil.safetensors"),
    "transformers_weights-list": changed(transformers_weights=["model.safetensors"]),
    "transformers_weights-missing": changed(transformers_weights="other.safetensors"),
    "weight_map-bin": shards(first="pytorch_model.bin"),
    "weight_map-all-bin": all_in("pytorch_model.bin"),
    "weight_map-parent": shards(first="../evil.safetensors"),
    "weight_map-parent-bin": shards(first="../evil.bin"),
    "weight_map-folder": shards(first="sub/evil.safetensors"),
    "weight_map-absolute": shards(first="/etc/evil.safetensors"),
    "weight_map-backslash": shards(first="..\\evil.safetensors"),
    "weight_map-nul": shards(first="a\0.safetensors"),
    "weight_map-missing": shards(first="model-7.safetensors"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("damage", PICKLES)
@pytest.mark.parametrize(("command", "folder"), [(AUDIT, "bert"), (TRAIN, "encoder")])
def test_only_safetensors_with_plain_names_inside_the_folder_are_read(
    damage: str, command: list[str], folder: str, armed: Path
) -> None:
    PICKLES[damage](armed / folder / "config.json")
    result = run(armed, *command)
    assert_clean(result, codes={2})
    assert not (armed / "exploded").exists()


@pytest.mark.parametrize("damage", ["transformers_weights-bin", "weight_map-all-bin", "weight_map-parent"])
def test_nor_are_valid_weights_in_a_pickle_or_outside_of_the_folder(damage: str, place: Path) -> None:
    weights = load_file(place / "bert" / "model.safetensors")
    PICKLES[damage](place / "bert" / "config.json")
    torch.save(weights, place / "bert" / "pytorch_model.bin")
    save_file(weights, place / "evil.safetensors", {"format": "pt"})
    assert_clean(run(place, *EXPLAIN), codes={2})


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_link_to_a_file_outside_of_the_folder_is_not_followed(name: str, armed: Path) -> None:
    (armed / "bert" / name).rename(armed / name)
    (armed / "bert" / name).symlink_to(armed / name)
    result = run(armed, *EXPLAIN)
    assert_clean(result, codes={2})
    assert "outside of the folder" in result.err


CONFIGS: dict[str, Damage] = {
    "id2label-list": changed(id2label=["a", "b", "c"]),
    "id2label-gap": changed(id2label={"0": "a", "1": "b", "5": "c"}),
    "id2label-words": changed(id2label={"a": "0", "b": "1", "c": "2"}),
    "id2label-number": changed(id2label=3),
    "id2label-lists": changed(id2label={"0": [], "1": {}, "2": None}),
    "id2label-short": changed(id2label={"0": "a"}),
    "num_labels": changed(id2label=..., label2id=..., num_labels=10**9),
    "num_labels-negative": changed(id2label=..., label2id=..., num_labels=-1),
    "num_labels-text": changed(id2label=..., label2id=..., num_labels="many"),
    "layers": changed(num_hidden_layers=10**6),
    "layers-text": changed(num_hidden_layers="three"),
    "hidden": changed(hidden_size=10**8),
    "intermediate": changed(intermediate_size=10**9),
    "positions": changed(max_position_embeddings=10**10),
    "positions-text": changed(max_position_embeddings="all"),
    "vocabulary": changed(vocab_size=10**9),
    "vocabulary-small": changed(vocab_size=3),
    "vocabulary-list": changed(vocab_size=[1]),
    "heads": changed(num_attention_heads=0),
    "pad_token_id": changed(pad_token_id=[0]),
    "pad_token_id-text": changed(pad_token_id="zero"),
    "quantization": changed(quantization_config={"quant_method": "gptq", "bits": 4}),
    "quantization-unknown": changed(quantization_config={"quant_method": "none-such"}),
    "quantization-text": changed(quantization_config="4bit"),
    "compression": changed(compression_config={"quant_method": "compressed-tensors"}),
    "model_type": changed(model_type="none-such"),
    "model_type-list": changed(model_type=["bert"]),
    "model_type-number": changed(model_type=7),
    "architectures": changed(architectures=7),
    "architectures-objects": changed(architectures=[{}]),
    "activation": changed(hidden_act="none-such"),
    "dtype": changed(dtype="none-such"),
    "dropout": changed(hidden_dropout_prob=7),
    "big-integer": changed(vocab_size=10**250),
    "problem_type": changed(problem_type=["regression"]),
}


@pytest.mark.sweep(keep=12)
@pytest.mark.parametrize("damage", CONFIGS)
def test_a_configuration_that_cannot_be_built_is_refused_before_anything_is_allocated(damage: str, place: Path) -> None:
    CONFIGS[damage](place / "bert" / "config.json")
    assert_clean(run(place, *EXPLAIN, limit=30), codes={2})


@pytest.mark.parametrize("damage", ["layers", "hidden", "vocabulary", "quantization", "pad_token_id", "model_type"])
def test_the_same_holds_for_encoders(damage: str, place: Path) -> None:
    CONFIGS[damage](place / "encoder" / "config.json")
    assert_clean(run(place, *TRAIN, limit=30), codes={2})


@pytest.mark.sweep
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", SPECIAL)
def test_what_is_not_a_regular_file_is_refused_and_never_waited_for(file: str, damage: str, place: Path) -> None:
    SPECIAL[damage](place / "bert" / file)
    result = run(place, *EXPLAIN, limit=30)
    assert_clean(result, codes={2})


@pytest.mark.sweep(keep=("sparse",))
@pytest.mark.parametrize("damage", SPECIAL)
def test_training_reads_the_header_of_the_weights_before_all_of_them(damage: str, place: Path) -> None:
    SPECIAL[damage](place / "encoder" / "model.safetensors")
    assert_clean(run(place, *TRAIN, limit=30), codes={2})


@pytest.mark.parametrize("damage", JSON)
def test_a_configuration_that_is_not_json_is_refused(damage: str, place: Path) -> None:
    JSON[damage](place / "bert" / "config.json")
    assert_clean(run(place, *AUDIT), codes={2})


@pytest.mark.sweep
@pytest.mark.parametrize("damage", [name for name in WEIGHTS if name not in ("half-precision", "one-more")])
@pytest.mark.parametrize(("command", "folder"), [(EXPLAIN, "bert"), (TRAIN, "encoder")])
def test_weights_that_do_not_belong_to_the_configuration_are_refused(
    damage: str, command: list[str], folder: str, place: Path
) -> None:
    WEIGHTS[damage](place / folder / "model.safetensors")
    assert_clean(run(place, *command), codes={2})


def test_weights_that_are_not_finite_pass_no_gate(place: Path) -> None:
    filled(float("nan"))(place / "bert" / "model.safetensors")
    result = run(place, *AUDIT, "--require", "jensen-shannon/noise<=0.02")
    assert_clean(result, codes={2})
    assert "contains NaN or infinity" in result.err


def test_a_live_model_with_weights_that_are_not_finite_is_refused(place: Path) -> None:
    from adapters.folders import network, tokenizer

    live = network("bert")
    with torch.no_grad():
        live.classifier.bias[0] = torch.nan
    with pytest.raises(sg.UserError, match=r"classifier\.bias contains NaN or infinity"):
        sg.audit((live, tokenizer("bert")), ["a good film"])


def tokenizer(**changes: Any) -> Damage:
    return changed(**changes)


SPECIAL_TOKEN = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
FIRST, SECOND = ({"Sequence": {"id": letter, "type_id": 0}} for letter in "AB")


def template(ids: list[int] | None) -> dict[str, Any]:
    known = {} if ids is None else {"[CLS]": {"id": "[CLS]", "ids": ids, "tokens": ["[CLS]"] * len(ids)}}
    single, pair = [SPECIAL_TOKEN, FIRST], [SPECIAL_TOKEN, FIRST, SECOND]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": known}


TOKENIZERS: dict[str, Damage] = {
    "panic-precompiled": tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
    "panic-charsmap": tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAAA="}),
    "panic-template": tokenizer(post_processor=template(None)),
    "panic-fixed-length": tokenizer(pre_tokenizer={"type": "FixedLength", "length": 0}),
    "template-beyond": tokenizer(post_processor=template([99_999_999])),
    "roberta-beyond": tokenizer(
        post_processor={
            "type": "RobertaProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 4294967295], "trim_offsets": True,
            "add_prefix_space": True,
        }
    ),
    "ids-beyond": tokenizer(model={"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 500}, "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}),
    "ids-huge": tokenizer(model={"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 2**32 - 1}, "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}),
    "unknown-missing": tokenizer(model={"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"}),
    "regex": tokenizer(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(((("}, "behavior": "Isolated",
        "invert": False}),
    "pad-beyond": tokenizer(padding={"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 77_777, "pad_type_id": 0, "pad_token": "[PAD]"}),
    "nothing": content(b"{}"),
}  # fmt: skip


@pytest.mark.parametrize("damage", [name for name in TOKENIZERS if name != "pad-beyond"])
def test_a_tokenizer_that_panics_or_has_ids_without_vectors_is_refused(
    damage: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    TOKENIZERS[damage](place / "bert" / "tokenizer.json")
    result = run(place, *EXPLAIN, limit=30)
    assert_clean(result, codes={2})
    assert capfd.readouterr().err == ""  # what a panic prints itself


@pytest.mark.parametrize("damage", [name for name in TOKENIZERS if name != "ids-beyond"])
def test_a_damaged_tokenizer_of_an_encoder_is_refused(damage: str, place: Path) -> None:
    TOKENIZERS[damage](place / "encoder" / "tokenizer.json")
    assert_clean(run(place, *TRAIN, limit=30), codes={2})


PADS: list[Any] = [["[PAD]"], 0, 1.5, True, {"content": 7}, {"content": ["[PAD]"]}]


@pytest.mark.parametrize("pad", PADS)
def test_a_padding_token_that_is_not_a_string_is_refused(pad: Any, place: Path) -> None:
    changed(pad_token=pad)(place / "bert" / "tokenizer_config.json")
    result = run(place, *EXPLAIN)
    assert_clean(result, codes={2})
    assert "pad_token" in result.err


LOADS: dict[str, Callable[[Path], object]] = {
    "audit": lambda place: sg.audit(place / "bert", ["a good film"]),
    "fit": lambda place: sg.TextClassifier(f"transformer:{place / 'encoder'}", epochs=1, device="cpu").fit(
        ["a good film", "a bad film"] * 20, [1, 0] * 20
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("damage", ["transformers_weights-bin", "weight_map-bin", "weight_map-parent"])
@pytest.mark.parametrize(("load", "folder"), [("audit", "bert"), ("fit", "encoder")])
def test_the_python_functions_open_no_pickle(damage: str, load: str, folder: str, armed: Path) -> None:
    PICKLES[damage](armed / folder / "config.json")
    with pytest.raises(sg.UserError):
        LOADS[load](armed)
    assert not (armed / "exploded").exists()


def test_the_bomb_explodes_where_it_is_unpickled(tmp_path: Path) -> None:
    """The tests above can fail."""
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()


def test_a_mask_of_infinities_that_no_network_reads_does_no_harm(place: Path) -> None:
    file = place / "bert" / "model.safetensors"
    save_file({**load_file(file), "bert.mask": torch.full((2, 2), -torch.inf)}, file, {"format": "pt"})
    result = run(place, *EXPLAIN, "--json")
    assert_clean(result, codes={0})
    assert json.loads(result.out)["label"] in ("negative", "neutral", "positive")


TRAINED: dict[str, tuple[str, Damage, str]] = {
    "dropout-nan": ("config.json", changed(hidden_dropout_prob=float("nan")), "hidden_dropout_prob is nan"),
    "dropout-infinite": ("config.json", changed(attention_probs_dropout_prob=float("inf")), "must be a number from 0"),
    "dropout-attention": ("config.json", changed(attention_probs_dropout_prob=float("nan")), "must be a number from 0"),
    "template-long": (
        "tokenizer.json",
        tokenizer(post_processor=template([4] * 100) | {"single": [SPECIAL_TOKEN, FIRST]}),
        "special tokens to a text",
    ),
}


@pytest.mark.parametrize("damage", TRAINED)
@pytest.mark.parametrize(("command", "folder"), [(EXPLAIN, "bert"), (TRAIN, "encoder")])
def test_a_network_that_fails_once_it_is_trained_is_refused_before(
    damage: str, command: list[str], folder: str, place: Path
) -> None:
    file, change, sentence = TRAINED[damage]
    change(place / folder / file)
    result = run(place, *command)
    assert_clean(result, codes={2})
    assert sentence in result.err


@pytest.mark.parametrize("change", [{"return_dict": False}, {"chunk_size_feed_forward": 7}])
@pytest.mark.parametrize(("command", "folder"), [(EXPLAIN, "bert"), (TRAIN, "encoder")])
def test_how_the_library_returns_and_splits_its_numbers_does_not_matter(
    change: dict[str, Any], command: list[str], folder: str, place: Path
) -> None:
    changed(**change)(place / folder / "config.json")
    assert_clean(run(place, *command), codes={0}, written=None)


def test_an_encoder_that_fails_in_training_mode_alone_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: two trial texts are read before the training."""
    from transformers import BertModel

    def forward(network: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no gradient" if network.training else "not in training mode")

    monkeypatch.setattr(BertModel, "forward", forward)
    result = run(place, *TRAIN)
    assert_clean(result, codes={2})
    assert "cannot be read as a Hugging Face encoder: no gradient" in result.err
