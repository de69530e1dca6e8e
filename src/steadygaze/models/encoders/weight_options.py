"""WeightOptions: the precision, the devices and the quantization of the weights of a loaded network.

Weights of the stored precision are used where the operating system maps the file, without a copy; on a GPU, each
tensor is copied there directly.  A quantized network is on a GPU alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.errors import UserError, unknown

DTYPES: dict[str, Any] = {"auto": "auto", "bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
"""`auto`: that of config.json, or else that of the weights."""
BITS = ("4bit", "8bit")
"""Quantizations by name, with bitsandbytes."""
LIBRARIES = {"BitsAndBytesConfig": "bitsandbytes", "TorchAoConfig": "torchao"}
"""Configurations of transformers that are accepted, and the package that each needs."""
STORED = "bitsandbytes"
"""The quantization that a folder may have: its configuration is plain values."""


@dataclass(frozen=True)
class WeightOptions:
    dtype: str = "auto"
    device_map: Any = None
    """None: all weights are on one device; otherwise as in the accelerate library."""
    quantization_config: Any = None
    """One of BITS, or an object of LIBRARIES."""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)
        if not isinstance(self.device_map, str | Mapping | None):
            raise UserError(f"device_map is {self.device_map!r:.80}; it must be 'auto' or a mapping of layers")
        config, kind = self.quantization_config, type(self.quantization_config).__name__
        if config is not None and not is_bits(config) and kind not in LIBRARIES:
            raise UserError(
                f"quantization_config is {config!r:.80}; it must be {' or '.join(map(repr, BITS))}, or a "
                f"{' or a '.join(LIBRARIES)} of transformers"
            )

    def arguments(self, device: torch.device) -> dict[str, Any]:
        """Keyword arguments of `from_pretrained`."""
        device_map = {"": device} if self.device_map is None else self.device_map
        result = {"dtype": DTYPES[self.dtype], "device_map": device_map}
        if self.quantization_config is None:
            return result
        library = LIBRARIES.get(type(self.quantization_config).__name__, STORED)
        check_quantization(library, f"quantization_config={self.quantization_config!r:.40}", device)
        return result | {"quantization_config": _configuration(self.quantization_config)}


def is_bits(config: Any) -> bool:
    """True for one of BITS; False for an array, too, which has no truth value."""
    return isinstance(config, str) and config in BITS


def check_quantization(library: str, subject: str, device: torch.device) -> None:
    """Refuse a quantized network without a GPU or without the package that computes with it."""
    if device.type != "cuda":
        raise UserError(
            f"{subject}: quantized weights need a GPU, and the model would be on the {device.type}; leave it out and "
            "pass dtype='bf16' (--dtype bf16), which halves the memory of single precision"
        )
    if find_spec(library) is None:
        raise UserError(f"{subject} needs the package {library}: pip install {library}")


def refuse_offloaded(tensors: Iterable[Tensor], name: object) -> None:
    """Refuse a network whose weights do not fit on its devices: explanations would read them from disk each time."""
    if any(tensor.is_meta for tensor in tensors):
        raise UserError(
            f"{name} does not fit on the GPUs: a part of its weights would stay in main memory; pass dtype='bf16' or "
            "quantization_config='4bit', or device='cpu'"
        )


def _configuration(config: Any) -> Any:
    """The object of the library."""
    if not is_bits(config):
        return config
    from transformers import BitsAndBytesConfig

    if config == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)


SINGLE = WeightOptions("fp32")
"""Single precision, for networks that are trained."""
