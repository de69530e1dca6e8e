"""Precision, devices and quantization of a model that is loaded from a folder; the memory that loading takes."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters.folders import TEXTS, network, save, tokenizer
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.core.errors import UserError
from steadygaze.models.encoders import weight_options
from steadygaze.models.encoders.weight_options import WeightOptions

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def direct(folder, dtype):
    """By the library alone, on the CPU."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    net = AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype)
    words = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        rows = [net(**words(text, return_tensors="pt")).logits[0].float().softmax(-1) for text in TEXTS]
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
def test_the_precision_is_that_of_the_option_and_of_the_weights_otherwise(stored, dtype, tmp_path):
    folder = save("bert", tmp_path)
    network("bert").to(stored).save_pretrained(folder)
    for option, expected in ((dtype, TYPES[dtype]), ("auto", stored)):
        model = sg.load(folder, dtype=option, device="cpu")
        assert {value.dtype for value in model.model.parameters()} == {expected}
        tolerance = 1e-5 if expected == torch.float32 else 1e-2
        np.testing.assert_allclose(model.predict_proba(TEXTS), direct(folder, expected), atol=tolerance)
        assert model.facts.get("precision") == (None if expected == torch.float32 else str(expected)[6:])


def test_a_folder_in_shards_is_the_same_model(tmp_path):
    whole, parts = save("bert", tmp_path / "whole"), save("bert", tmp_path / "parts")
    (parts / "model.safetensors").unlink()
    network("bert").save_pretrained(parts, max_shard_size="2KB")
    assert len(list(parts.glob("*.safetensors"))) > 2
    assert as_adapter(parts, device="cpu").fingerprint == as_adapter(whole, device="cpu").fingerprint


def test_weights_of_the_stored_precision_are_those_of_the_mapped_file(tmp_path, monkeypatch):
    """A read that is not a mapping would be counted here."""
    read, original = [], torch.Tensor.to

    def to(tensor, *args, **kwargs):
        moved = original(tensor, *args, **kwargs)
        if moved.data_ptr() != tensor.data_ptr() and tensor.is_floating_point():
            read.append(tensor.numel())
        return moved

    folder = save("bert", tmp_path)
    monkeypatch.setattr(torch.Tensor, "to", to)
    model = sg.load(folder, device="cpu")
    parameters = [value.numel() for value in model.model.parameters()]
    assert max(read, default=0) < max(parameters)


def test_a_device_map_places_the_layers(tmp_path):
    folder = save("bert", tmp_path)
    model = sg.load(folder, device_map={"": "cpu"}, device="cpu")
    np.testing.assert_allclose(model.predict_proba(TEXTS), direct(folder, torch.float32), atol=1e-5)
    with pytest.raises(UserError, match=r"does not fit on the GPUs: .* pass dtype='bf16'"):
        weight_options.refuse_offloaded([torch.empty(2, device="meta")], "a model")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_quantization_without_a_gpu_is_refused_in_one_sentence(bits, tmp_path):
    folder = save("bert", tmp_path)
    with pytest.raises(UserError, match="need a GPU, and the model would be on the cpu; leave it out"):
        sg.load(folder, quantization_config=bits)
    file = folder / "config.json"
    stored = {"quant_method": "bitsandbytes", f"load_in_{bits}": True}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"quantization_config": stored}))
    with pytest.raises(UserError, match=r"config.json: quantization_config: quantized weights need a GPU"):
        sg.load(folder)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="bitsandbytes quantizes on a GPU")
@pytest.mark.parametrize("bits", ["4bit", "8bit"])
def test_a_quantized_model_predicts_what_a_direct_call_predicts(bits, tmp_path):
    pytest.importorskip("bitsandbytes")
    from transformers import AutoModelForSequenceClassification

    changes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32}
    folder = save("llama", tmp_path, **changes)
    config = weight_options.WeightOptions(quantization_config=bits).arguments(torch.device("cuda"))
    net = AutoModelForSequenceClassification.from_pretrained(folder, **config).eval()
    words = tokenizer("llama")
    with torch.no_grad():
        rows = [net(**words(text, return_tensors="pt").to("cuda")).logits[0].float().softmax(-1) for text in TEXTS]
    model = sg.load(folder, quantization_config=bits)
    alone = np.concatenate([model.predict_proba([text]) for text in TEXTS])  # 8bit rounds by the batch
    np.testing.assert_allclose(alone, torch.stack(rows).cpu().numpy(), atol=1e-2)
    assert model.facts["quantization"] == "bitsandbytes"
    assert all(model.explain(TEXTS[0], explainer="integrated-gradients", settings={"steps": 4}).weights)
    net.save_pretrained(tmp_path / "quantized")
    words.save_pretrained(tmp_path / "quantized")
    np.testing.assert_allclose(
        sg.load(tmp_path / "quantized").predict_proba(TEXTS), model.predict_proba(TEXTS), atol=1e-2
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dtype": "half"}, "dtype"),
        ({"quantization_config": "2bit"}, "it must be '4bit' or '8bit', or a BitsAndBytesConfig"),
        ({"quantization_config": {"load_in_4bit": True}}, "it must be '4bit' or '8bit', or a BitsAndBytesConfig"),
    ],
)
def test_an_unknown_option_of_the_weights_is_refused(options, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        sg.load(tmp_path, **options)


def test_options_of_weights_are_for_models_that_are_loaded():
    with pytest.raises(UserError, match=r"are for folders and hub ids of Hugging Face models, and .* is not one"):
        sg.load((network("bert"), tokenizer("bert")), dtype="bf16")
    with pytest.raises(UserError, match="are for folders and hub ids"):
        as_adapter(len, weights=WeightOptions(quantization_config="4bit"))


PEAK = """
import re, sys
from pathlib import Path
import steadygaze as sg
def kibibytes(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
small, large = sys.argv[1:]
sg.load(small, device="cpu")  # imports what a load needs
before = kibibytes("VmRSS")
sg.load(large, device="cpu")
print(1024 * (kibibytes("VmHWM") - before))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the peak memory of a process")
def test_loading_takes_little_more_memory_than_the_weights(tmp_path):
    """Of half precision, in shards.  timings/large_model.py measures a larger model."""
    small = save("llama", tmp_path / "small")
    large = tmp_path / "large"
    sizes = {"hidden_size": 1024, "intermediate_size": 4096, "head_dim": 64, "num_hidden_layers": 8}
    net = network("llama", num_attention_heads=16, num_key_value_heads=16, **sizes).bfloat16()
    net.save_pretrained(large, max_shard_size="100MB")
    tokenizer("llama").save_pretrained(large)
    weights = sum(file.stat().st_size for file in large.glob("*.safetensors"))
    assert weights > 2e8
    peak = subprocess.run([sys.executable, "-c", PEAK, small, large], capture_output=True, text=True, check=True)
    assert int(peak.stdout) <= 1.15 * weights
