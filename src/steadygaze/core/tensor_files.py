"""Write weights, and read untrusted ones: .safetensors files, and the size of the network of a configuration.

Shapes are read before values, and values must be finite.  A configuration can claim any size, and every architecture
has its own names for sizes.  Therefore the network is built without memory (PyTorch's device "meta"), its parts are
counted during construction, and its parameters are compared with the header of the weights.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.modules import module as registration
from torch.overrides import TorchFunctionMode

from steadygaze.core.atomic_files import new_folder
from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import check_file, foreign_error, parse_json, reason

Layout = dict[str, tuple[tuple[int, ...], torch.dtype]]
"""Shape and type of every tensor, by name."""
DTYPES: dict[str, torch.dtype] = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32,
    "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
}  # fmt: skip
"""Supported types, by their name in the format."""


def read_layout(file: Path) -> Layout:
    """Return shapes and types from the header, without reading tensors."""
    check_file(file)
    with foreign_error(f"{file} is damaged or cut short"), safe_open(file, framework="pt") as opened:
        parts = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
        entries = {name: (tuple(part.get_shape()), part.get_dtype()) for name, part in parts.items()}
    for name, (_, kind) in entries.items():
        if kind not in DTYPES:
            raise UserError(f"{file}: tensor {name} has the type {kind}; known: {', '.join(DTYPES)}")
    return {name: (shape, DTYPES[kind]) for name, (shape, kind) in entries.items()}


def read_tensors(file: Path, *, finite: bool = True) -> dict[str, Tensor]:
    """Return every tensor; raise for NaN or infinity if `finite`."""
    read_layout(file)
    with foreign_error(f"{file} is damaged or cut short"), safe_open(file, framework="pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (not a mapping)
    if finite:
        refuse_non_finite(tensors, file)
    return tensors


def read_metadata(file: Path, key: str) -> Any:
    """Return the JSON value under a key of the header."""
    check_file(file)
    with foreign_error(f"{file} is damaged or cut short"), safe_open(file, framework="pt") as opened:
        metadata = opened.metadata() or {}
    if key not in metadata:
        raise UserError(f"{file} is damaged (its header has no {key})")
    return parse_json(metadata[key], f"the header of {file}")


def write_network_folder(
    folder: Path, config: Mapping[str, Any], weights: Mapping[str, Mapping[str, Tensor]], texts: Mapping[str, str]
) -> None:
    """Write config.json, files of weights and files of text into a folder, all or nothing."""
    try:
        with new_folder(folder) as new:
            for name, text in {"config.json": json.dumps(config, indent=1) + "\n", **texts}.items():
                (new / name).write_text(text, encoding="utf-8")
            for name, tensors in weights.items():
                parts = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
                save_file(parts, new / name, metadata={"format": "pt"})
    except (OSError, SafetensorError) as error:
        raise UserError(f"could not write {folder}: {reason(error)}; existing files are unchanged") from None


def refuse_non_finite(tensors: Mapping[str, Tensor], where: object) -> None:
    """Raise if a tensor contains NaN or infinity."""
    for name, value in tensors.items():
        if not is_finite(value):
            raise UserError(
                f"{where}: tensor {name} contains NaN or infinity: the weights are damaged, or training diverged"
            )


def is_finite(value: Tensor) -> bool:
    """Return True if no entry is NaN or infinite, without a copy of the tensor."""
    if not value.is_floating_point() or not value.numel():
        return True
    low, high = torch.aminmax(value.detach())
    return bool(low.isfinite() & high.isfinite())


def layout_difference(stored: Layout, wanted: Layout) -> str | None:
    """Return the first difference of two layouts, for an error message; None if they agree."""
    for name in sorted({*stored, *wanted}):
        if name not in stored:
            return f"tensor {name} is missing"
        if name not in wanted:
            return f"tensor {name} does not belong to this model"
        (shape, dtype), (right, kind) = stored[name], wanted[name]
        if shape != right:
            return f"tensor {name} has shape {shape}, expected {right}"
        if dtype != kind:
            return f"tensor {name} has the type {str(dtype)[6:]}, expected {str(kind)[6:]}"
    return None


def layout(tensors: Mapping[str, Tensor]) -> Layout:
    return {name: (tuple(value.shape), value.dtype) for name, value in tensors.items()}


def count(shapes: Layout) -> int:
    """Return the number of values in all tensors."""
    return sum(torch.Size(shape).numel() for shape, _ in shapes.values())


COUNTED = ("layer", "layers", "blocks", "experts", "groups", "stages", "heads", "head")
"""Last words of keys that count modules in most architectures; checked by name for a better message."""
MOST_MODULES = 1000
MOST_ENTRIES = 1 << 16
"""Maximum number of labels, and of entries of a list or object of a configuration."""
MOST_PARTS = 50_000
"""Maximum number of modules, parameters and buffers of a network."""
PARTS_PER_TENSOR, MORE_PARTS = 10, 1000
"""Maximum number of parts per tensor of the weights, plus a constant."""
MORE_PARAMETERS = 1 << 22
"""Allowance for parameters that are not in the weights."""
MORE_BUFFERS = 1 << 28
"""Allowance for buffers, such as position tables and masks."""
M = TypeVar("M", bound=torch.nn.Module)


def check_counts(values: Mapping[str, Any], file: Path) -> None:
    """Check the numbers of layers, heads, labels and entries, recursively."""
    for key, value in values.items():
        _check_entries(key, value, file)
        most = MOST_ENTRIES if key == "num_labels" else MOST_MODULES if key.split("_")[-1] in COUNTED else None
        if most is not None and isinstance(value, int) and not 0 <= value <= most:
            raise UserError(f"{file}: {key} is {value:,}; it must be from 0 to {most:,}")


def sketch(make: Callable[[], M], tensors: int, file: Path) -> M:
    """Build the network without memory; raise if it has many more parts than the weights have `tensors`."""
    most = min(MOST_PARTS, PARTS_PER_TENSOR * tensors + MORE_PARTS)
    refusal = UserError(
        f"{file} describes a network of more than {most:,} modules and parameters, "
        f"but the weights contain {tensors:,} tensors; at most {MOST_PARTS:,} parts are allowed"
    )
    with without_memory(), _limit_parts(most, refusal):
        return make()


class _NoInitialization(TorchFunctionMode):
    """Skip random initial values, which imports PyTorch's compiler on the device "meta" and takes seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.nn.init.normal_, torch.Tensor.normal_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


@contextmanager
def without_memory() -> Iterator[None]:
    """Build networks on the device "meta": without memory and initial values."""
    with torch.device("meta"), _NoInitialization():
        yield


def check_size(network: torch.nn.Module, numbers: int, file: Path) -> None:
    """Raise if a network is far larger than its weights, which contain `numbers` values."""
    parameters = sum(value.numel() for value in network.parameters())
    buffers = sum(value.numel() for value in network.buffers())
    if parameters > 2 * numbers + MORE_PARAMETERS or buffers > 2 * numbers + MORE_BUFFERS:
        raise UserError(
            f"{file} describes a network of {parameters + buffers:,} parameters, but the weights contain {numbers:,} "
            "values"
        )


def _check_entries(key: str, value: Any, file: Path) -> None:
    if isinstance(value, list | Mapping) and len(value) > MOST_ENTRIES:
        raise UserError(f"{file}: {key} has {len(value):,} entries; at most {MOST_ENTRIES:,} are allowed")
    if isinstance(value, Mapping):
        check_counts(value, file)
    elif isinstance(value, list):
        for entry in value:
            _check_entries(key, entry, file)


@contextmanager
def _limit_parts(most: int, refusal: UserError) -> Iterator[None]:
    """Raise if this thread registers more than `most` modules, parameters and buffers."""
    thread, count = threading.get_ident(), 0

    def add(*_: object) -> None:
        nonlocal count
        count += threading.get_ident() == thread
        if count > most:
            raise refusal

    with ExitStack() as hooks:
        for register in (
            registration.register_module_module_registration_hook,
            registration.register_module_parameter_registration_hook,
            registration.register_module_buffer_registration_hook,
        ):
            hooks.callback(register(add).remove)
        yield
