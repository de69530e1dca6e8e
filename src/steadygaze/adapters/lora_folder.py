"""LoRA adapters of the peft library: a folder with adapter_config.json and adapter_model.safetensors.

    W' = W + (α / r) B A            W a weight of the base model; with rsLoRA α / √r; with DoRA renormalized

The base model is a name on the hub, or the folder that the user passes: a path in adapter_config.json is not followed.
The adapted layers are those that adapter_model.safetensors names, so that no pattern of the file is evaluated.

In single precision the product is added to W, once.  In other precisions, and for quantized weights, that would round
the weights again: the adapter stays beside them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.tensor_files import read_tensors
from steadygaze.core.untrusted_files import foreign_error, read_object
from steadygaze.models.encoders.pretrained import inside
from steadygaze.models.encoders.transformer import from_hub

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""The library's prefix of the tensors' names."""
HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
LAYER = re.compile(r"\^?[\w.]+\$?")
"""A layer in rank_pattern and alpha_pattern: longer patterns can take exponential time."""
CLASSIFIES = "SEQ_CLS"
HEADS = ("score.", "classifier.")
"""The parts of a classifier that its task adds to a base model."""
READ = (
    "r", "lora_alpha", "fan_in_fan_out", "bias", "use_rslora", "use_dora", "modules_to_save", "rank_pattern",
    "alpha_pattern", "lora_bias",
)  # fmt: skip
"""Fields that change the function of the adapter, and are read."""
UNUSED = (
    "peft_type", "task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision", "inference_mode",
    "target_modules", "exclude_modules", "lora_dropout", "init_lora_weights", "layers_to_transform", "layers_pattern",
    "megatron_config", "megatron_core", "loftq_config", "eva_config", "corda_config", "lora_ga_config",
    "qalora_group_size", "runtime_config", "ensure_weight_tying",
)  # fmt: skip
"""Fields that concern training, or say where the adapted layers are."""
PLAIN = (True, False, None, "gaussian", "orthogonal")
"""Initializations that leave the weights of the base model as they are."""


@dataclass(frozen=True)
class LoraFolder:
    folder: Path
    values: Mapping[str, Any]
    """Of adapter_config.json."""
    tensors: Mapping[str, Tensor]

    @property
    def classes(self) -> int | None:
        """The number of classes of a classifier that the adapter completes; None: the base model has its own."""
        sizes = [
            len(value)
            for name, value in self.tensors.items()
            if "lora_" not in name and name.endswith(".weight") and value.dim() == 2 and _short(name).startswith(HEADS)
        ]
        return min(sizes, default=None) if self.values.get("task_type") == CLASSIFIES else None

    def base(self, base_model: str | Path | None) -> Path:
        """The folder of the base model: that of the user, or a download from the hub."""
        if base_model is not None:
            folder = Path(base_model).expanduser()
            return folder if folder.is_dir() else from_hub(str(base_model), f"base_model={str(base_model)!r}")
        name = self.values.get("base_model_name_or_path")
        if not isinstance(name, str) or not HUB_NAME.fullmatch(name) or Path(name).exists():
            raise UserError(
                f"{self.folder / CONFIG} names the base model {name!r:.80}, a path, which is not followed: pass its "
                "folder as base_model= (--base-model)"
            )
        return from_hub(name, f"the base model {name!r} of {self.folder}", ", or pass its folder as base_model=")

    def completes(self, missing: str) -> bool:
        """True if the adapter has this weight, which the base model lacks."""
        return any(_short(name) == missing for name in self.tensors)

    def applied(self, network: Any) -> Any:
        """The network with the adapter."""
        import peft

        layers = {_short(name).partition(".lora_")[0] for name in self.tensors if ".lora_" in name}
        fields = {name: self.values[name] for name in READ if self.values.get(name) is not None}
        kind = self.values.get("task_type") if self.values.get("task_type") == CLASSIFIES else None
        with foreign_error(f"{self.folder} cannot be read as a LoRA adapter"), torch.random.fork_rng(devices=[]):
            config = peft.LoraConfig(target_modules=sorted(layers), task_type=kind, inference_mode=True, **fields)
            adapted = peft.get_peft_model(network, config)
            report: Any = peft.set_peft_model_state_dict(adapted, dict(self.tensors))
        own = {name for name, _ in adapted.named_parameters() if ".lora_" in name or ".modules_to_save." in name}
        extra = {name for name in report.unexpected_keys if ".lora_" in name}
        if absent := sorted(extra | ({*report.missing_keys} & own)):
            raise UserError(f"{self.folder / WEIGHTS} does not fit its base model: see the tensor {absent[0]!r:.120}")
        quantized = getattr(network, "is_quantized", False)
        if network.dtype == torch.float32 and not quantized:
            return adapted.merge_and_unload().eval()
        return adapted.get_base_model().eval()


def is_adapter(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and not (folder / "config.json").exists()


def read_adapter(folder: Path) -> LoraFolder:
    """Read and check an adapter; its weights stay in the file until they are used."""
    if find_spec("peft") is None:
        raise UserError(f"{folder} is an adapter of the peft library: pip install 'steadygaze[lora]'")
    values = read_object(inside(folder, CONFIG))
    problem = _problem(values)
    if problem is not None:
        raise UserError(
            f"{folder / CONFIG}: {problem}; load it with peft, and pass (model, tokenizer) to sg.load in Python"
        )
    if not (folder / WEIGHTS).exists():
        raise UserError(f"{folder} has no {WEIGHTS}; other formats can run code when they are opened")
    return LoraFolder(folder, values, read_tensors(inside(folder, WEIGHTS)))


def _problem(values: Mapping[str, Any]) -> str | None:
    """Why an adapter is not read."""
    if values.get("peft_type") != "LORA":
        return f"peft_type is {values.get('peft_type')!r:.40}, and only LORA is read from folders"
    if values.get("init_lora_weights", True) not in PLAIN:
        return f"init_lora_weights is {values['init_lora_weights']!r:.40}, which changes the base model"
    for name, value in values.items():
        if value and name not in READ + UNUSED:
            return f"{name} is {value!r:.40}, which is not read from folders"
    for name in ("rank_pattern", "alpha_pattern"):
        for pattern in values.get(name) or {}:
            if not LAYER.fullmatch(pattern):
                return f"{name} has {pattern!r:.40}, which is not the name of a layer"
    return None


def _short(name: str) -> str:
    """The name of a tensor in the base model."""
    return name.removeprefix(PREFIX)
