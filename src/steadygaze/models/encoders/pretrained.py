"""Load a network of the transformers library from an untrusted folder.

    config.json                      checked, and passed to the library as values
    model.safetensors                or the .safetensors files that model.safetensors.index.json lists

Weights are read here, only from .safetensors files with plain names inside the folder, and passed to the library as
tensors.  Therefore no pickle is loaded, no path leads outside the folder, and no code of a model runs.  Sizes in
config.json are compared with the header of the weights before allocation.

The files are mapped to memory: a network of the stored precision has no second copy of its weights.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.tensor_files import (
    check_counts,
    check_size,
    count,
    read_layout,
    read_tensors,
    refuse_non_finite,
    sketch,
)
from steadygaze.core.untrusted_files import foreign_error, read_object, read_object_or_empty, resolve
from steadygaze.models.encoders.weight_options import (
    SINGLE,
    STORED,
    WeightOptions,
    check_quantization,
    refuse_offloaded,
)

CPU = torch.device("cpu")
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
KERNELS = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal", "experts_implementation")
"""Configuration keys that can name a kernel on the hub, which is code; always ignored."""
IGNORED = (*KERNELS, "auto_map", "custom_pipelines", "distributed_config", "fusion_config", "transformers_weights")
"""Keys that are not passed to the library."""
QUANTIZED = ("quantization_config", "compression_config")
NEUTRAL = {"return_dict": True, "chunk_size_feed_forward": 0}
"""Keys that change only how the library computes and returns the same numbers."""


def read_values(folder: Path, kind: str = "encoder") -> dict[str, Any]:
    """Return the values of config.json, without keys that could load code, after a check of the sizes."""
    file = inside(folder, CONFIG)
    if not file.exists():
        raise UserError(f"{folder} is not a Hugging Face model folder: it has no {CONFIG}")
    values = read_object(file)
    for key in QUANTIZED:
        if values.get(key) is not None and (kind == "encoder" or not _is_readable(values[key])):
            raise UserError(
                f"{file}: {key} is not supported: weights must not be quantized; save them in float32"
                + ("" if kind == "encoder" else f" or bfloat16, or quantize them with {STORED}")
            )
    named = values.get("architectures")
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise UserError(f"{file}: architectures is {named!r:.80}; it must be a list of names")
    check_counts(values, file)
    for key in (key for key in values if "drop" in key):
        if isinstance(share := values[key], int | float) and not 0 <= share <= 1:
            raise UserError(f"{file}: {key} is {share!r:.40}; it must be a number from 0 to 1")
    return {key: value for key, value in values.items() if key not in IGNORED} | NEUTRAL


def read_config(folder: Path, kind: str = "encoder") -> Any:
    """Return the network's configuration without building it."""
    from transformers import CONFIG_MAPPING

    values = read_values(folder, kind)
    name = values.get("model_type")
    if not isinstance(name, str) or name not in CONFIG_MAPPING:
        raise UserError(f"{folder / CONFIG}: the installed transformers library has no model_type {name!r:.80}")
    with readable(folder, kind):
        config = CONFIG_MAPPING[name].from_dict(values)
        config._attn_implementation = None  # the library's default, not the file's
    for key in ("pad_token_id", "vocab_size", "hidden_size", "max_position_embeddings"):
        if not isinstance(value := _attribute(config, key), int | None):
            raise UserError(f"{folder / CONFIG}: {key} is {value!r:.80}; it must be a whole number")
    if kind == "encoder" and getattr(config, "is_encoder_decoder", False):
        raise UserError(f"{folder} contains a {config.model_type}, which generates text; use an encoder, such as BERT")
    return config


def load_network(
    folder: Path,
    auto: Any,
    kind: str,
    weights_as: WeightOptions = SINGLE,
    device: torch.device = CPU,
    changes: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Any, list[str]]:
    """Return the network that `auto` (such as AutoModel) makes of a folder, and the missing weights.

    `changes`: values of the configuration that replace those of the folder.
    """
    files = weight_files(folder)
    layouts = [read_layout(file) for file in files]
    config = read_config(folder, kind)
    config.update(dict(changes or {}))
    if getattr(config, "quantization_config", None) is not None:
        check_quantization(STORED, f"{folder / CONFIG}: quantization_config", device)
    arguments = weights_as.arguments(device)
    with readable(folder, kind):
        cls = _network_class(auto, config)
        described = sketch(lambda: cls(config), sum(map(len, layouts)), folder / CONFIG)
        check_size(described, sum(map(count, layouts)), folder / CONFIG)
        weights: dict[str, Tensor] = {}
        for file in files:
            weights.update(read_tensors(file, finite=False))  # some files contain unused masks of −∞
        network, report = cls.from_pretrained(
            None,
            config=config,
            state_dict=weights,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # an error below names the tensor
            **arguments,
            **options,
        )
    for name, shape, expected in sorted(report["mismatched_keys"]):
        raise UserError(
            f"{folder} cannot be read as a Hugging Face {kind}: the tensor {name} of the weights has shape "
            f"{tuple(shape)}, but {CONFIG} describes {tuple(expected)}"
        )
    network.config.name_or_path = str(folder)
    refuse_offloaded(network.parameters(), folder)
    refuse_non_finite(network.state_dict(), folder)
    return network, sorted(report["missing_keys"])


def weight_files(folder: Path) -> list[Path]:
    """Return the .safetensors files of a folder."""
    named = read_object_or_empty(folder / CONFIG).get("transformers_weights")
    if named is not None and (not isinstance(named, str) or not named.endswith((".safetensors", INDEX[5:]))):
        raise UserError(f"{folder / CONFIG}: transformers_weights is {named!r:.80}; it must name a .safetensors file")
    first = named or (WEIGHTS if (folder / WEIGHTS).exists() else INDEX)
    file = inside(folder, first)
    if not file.exists():
        raise UserError(f"{folder} has no .safetensors weights; other formats can run code when they are opened")
    files = _shards(folder, file) if first.endswith(".json") else [file]
    for file in files:
        read_layout(file)  # before anybody reads the whole file
    return files


def inside(folder: Path, name: str) -> Path:
    """Return a file of a folder by its plain name.  Links may lead outside only within the hub's cache."""
    if Path(name).name != name or "\\" in name or "\0" in name or name in ("", ".", ".."):
        raise UserError(f"{folder}: {name!r:.80} is not the plain name of a file in this folder")
    home, file = resolve(folder), resolve(folder / name)
    if not file.is_relative_to(home) and not _in_hub_cache(home, file):
        raise UserError(
            f"{folder / name} is a link to a file outside of the folder, which is not allowed; copy the file"
        )
    return folder / name


@contextmanager
def readable(folder: Path, kind: str = "encoder") -> Iterator[None]:
    """Convert the library's errors about a damaged or unknown model; hide warnings and the progress bar."""
    from transformers.utils import logging

    enabled, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with foreign_error(f"{folder} cannot be read as a Hugging Face {kind}"):
            yield
    finally:
        logging.set_verbosity(level)
        if enabled:
            logging.enable_progress_bar()


def _shards(folder: Path, index: Path) -> list[Path]:
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise UserError(f"{index} is damaged: it has no weight_map from tensors to files")
    for name in names.values():
        if not name.endswith(".safetensors"):
            raise UserError(f"{index} names {name!r:.80}; only .safetensors files are read, others can run code")
    return [inside(folder, name) for name in sorted(set(names.values()))]


def _in_hub_cache(home: Path, file: Path) -> bool:
    """Return True for the links of the hub's cache, which lead to ../../blobs."""
    from huggingface_hub.constants import HF_HUB_CACHE

    cached = home.parent.name == "snapshots" and home.is_relative_to(resolve(HF_HUB_CACHE))
    return cached and file.is_relative_to(home.parent.parent / "blobs")


def _is_readable(quantization: Any) -> bool:
    """True for the plain values of the quantization that a folder may have."""
    values = quantization.values() if isinstance(quantization, dict) else ()
    plain = all(isinstance(value, bool | int | float | str | list | None) for value in values)
    return plain and bool(values) and quantization.get("quant_method") == STORED


def _attribute(config: Any, key: str) -> Any:
    try:
        return getattr(config, key, None)
    except NotImplementedError:  # some configurations without a limit raise this
        return None


def _network_class(auto: Any, config: Any) -> Any:
    entry = auto._model_mapping[type(config)]
    candidates = entry if isinstance(entry, list | tuple) else [entry]
    listed = [cls for cls in candidates if cls.__name__ in (config.architectures or ())]
    return (listed or candidates)[0]
