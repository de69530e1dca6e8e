"""LoRA adapters of peft, from a folder and in memory, predict what peft predicts."""

import json

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters.folders import LABELS, TEXTS, language_model, network, tokenizer
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.errors import UserError
from steadygaze.models.encoders.weight_options import WeightOptions

peft = pytest.importorskip("peft")
TARGETS = {"bert": ["query", "value"], "llama": ["q_proj", "down_proj"]}
CHANGES = [{}, {"use_rslora": True, "rank_pattern": {"query": 2}}, {"use_dora": True}, {"bias": "all"}]


def adapted(kind, net, task="SEQ_CLS", **changes):
    """A model of peft whose adapter has an effect."""
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS[kind], task_type=task, **changes)
    model = peft.get_peft_model(net, config).eval()
    torch.manual_seed(1)
    for name, value in model.named_parameters():
        if "lora_" in name or "modules_to_save" in name:
            value.data.normal_(std=0.3)
    return model


def save(folder, kind, model, base):
    """The folders of the adapter and of the base model."""
    model.save_pretrained(folder / "adapter")
    base.save_pretrained(folder / "base")
    tokenizer(kind).save_pretrained(folder / "base")
    return folder / "adapter", folder / "base"


def probabilities(model, kind):
    words = tokenizer(kind)
    with torch.no_grad():
        rows = [model(**words(text, return_tensors="pt")).logits[0].float().softmax(-1) for text in TEXTS]
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: "-".join(changes) or "plain")
def test_an_adapter_folder_predicts_what_peft_predicts(changes, tmp_path):
    model = adapted("bert", network("bert"), **changes)
    adapter, base = save(tmp_path, "bert", model, network("bert"))
    expected = probabilities(model, "bert")
    assert np.abs(expected - probabilities(network("bert"), "bert")).max() > 0.05
    read = sg.load(adapter, base_model=base, device="cpu")
    np.testing.assert_allclose(read.predict_proba(TEXTS), expected, atol=1e-5)
    assert read.facts["adapter"] == "LoRA, r = 4"
    assert read.fingerprint != as_adapter(base, device="cpu").fingerprint
    explanation = read.explain(TEXTS[0], explainer="integrated-gradients", settings={"steps": 4})
    assert len(explanation.weights) == 6


def test_an_adapter_with_the_head_of_its_own_classifier_completes_a_language_model(tmp_path):
    net = network("llama")  # three classes; the base model has none
    model = adapted("llama", net)
    adapter, base = save(tmp_path, "llama", model, language_model("llama"))
    own = {name: value for name, value in net.state_dict().items() if "lora_" not in name and "score" not in name}
    plain = language_model("llama")
    plain.load_state_dict({name.replace(".base_layer", ""): value for name, value in own.items()}, strict=False)
    plain.save_pretrained(base)
    read = sg.load(adapter, base_model=base, classes=LABELS, device="cpu")
    np.testing.assert_allclose(read.predict_proba(TEXTS), probabilities(model, "llama"), atol=1e-5)
    assert list(read.classes_) == LABELS


def test_an_adapter_stays_beside_weights_of_half_precision(tmp_path):
    model = adapted("bert", network("bert"))
    adapter, base = save(tmp_path, "bert", model, network("bert"))
    half = as_adapter(adapter, base_model=base, device="cpu", weights=WeightOptions("bf16"))
    assert any("lora_" in name for name, _ in half.model.network.named_parameters())
    np.testing.assert_allclose(half.predict_proba(TEXTS), probabilities(model, "bert"), atol=0.05)
    direct = peft.PeftModel.from_pretrained(network("bert").bfloat16(), adapter).eval()
    np.testing.assert_allclose(half.predict_proba(TEXTS), probabilities(direct, "bert"), atol=1e-2)


def test_an_adapter_of_a_prompted_model_predicts_what_peft_predicts(tmp_path):
    model = adapted("llama", language_model("llama"), "CAUSAL_LM")
    adapter, base = save(tmp_path, "llama", model, language_model("llama"))
    options = {"prompt": "the {text} was", "label_words": {"yes": " good", "no": " bad"}}
    live = sg.load((model, tokenizer("llama")), **options)
    read = sg.load(adapter, base_model=base, device="cpu", **options)
    np.testing.assert_allclose(read.predict_proba(TEXTS), live.predict_proba(TEXTS), atol=1e-5)
    without = sg.load(base, device="cpu", **options)
    assert np.abs(read.predict_proba(TEXTS) - without.predict_proba(TEXTS)).max() > 0.01


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_a_live_model_of_peft_predicts_what_it_predicts(kind):
    model = adapted(kind, network(kind))
    read = sg.load((model, tokenizer(kind)))
    np.testing.assert_allclose(read.predict_proba(TEXTS), probabilities(model, kind), atol=1e-5)


def test_prompt_tuning_is_refused():
    model = peft.get_peft_model(
        network("bert"), peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2)
    ).eval()
    with pytest.raises(UserError, match="PROMPT_TUNING adds vectors to the text"):
        sg.load((model, tokenizer("bert")))


@pytest.fixture
def folders(tmp_path):
    return save(tmp_path, "bert", adapted("bert", network("bert")), network("bert"))


def rewrite(folder, **changes):
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3', and only LORA is read"),
        ({"init_lora_weights": "pissa"}, "changes the base model"),
        ({"layer_replication": [[0, 1]]}, "layer_replication is .* not read"),
        ({"rank_pattern": {"(a+)+$": 4}}, "not the name of a layer"),
        ({"rank_pattern": {"query": 3}}, "cannot be read as a LoRA adapter|does not fit its base model"),
    ],
)
def test_an_adapter_that_is_not_read_is_refused(changes, sentence, folders):
    adapter, base = folders
    rewrite(adapter, **changes)
    with pytest.raises(UserError, match=sentence):
        sg.load(adapter, base_model=base, device="cpu")


def test_patterns_of_an_adapter_are_not_evaluated(folders):
    """A pattern of exponential time among the names of the adapted layers."""
    adapter, base = folders
    before = sg.load(adapter, base_model=base, device="cpu").predict_proba(TEXTS)
    rewrite(adapter, target_modules="(.*.*.*.*.*.*.*.*.*.*)*!", exclude_modules="(x*)*y")
    np.testing.assert_array_equal(sg.load(adapter, base_model=base, device="cpu").predict_proba(TEXTS), before)


@pytest.mark.parametrize("name", ["/etc", "../base", "~/models", "a/b/c", None])
def test_the_base_model_of_an_adapter_is_never_a_path_of_its_file(name, folders):
    adapter, _ = folders
    rewrite(adapter, base_model_name_or_path=name)
    with pytest.raises(UserError, match=r"a path, which is not followed: pass its folder as base_model="):
        sg.load(adapter)


def test_a_pickle_is_not_read_in_place_of_the_weights(folders):
    adapter, base = folders
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    with pytest.raises(UserError, match=r"has no adapter_model.safetensors; other formats can run code"):
        sg.load(adapter, base_model=base)


def test_a_base_model_is_for_adapters(folders):
    with pytest.raises(UserError, match="is for a LoRA adapter, and base is not one"):
        sg.load(folders[1], base_model=folders[1])
