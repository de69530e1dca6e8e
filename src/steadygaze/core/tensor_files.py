"""Read untrusted .safetensors files: shapes before values, and finite values only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.untrusted_files import check_file, foreign_error, parse_json

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


def layout_difference(found: Layout, wanted: Layout) -> str | None:
    """Return the first difference of two layouts, for an error message; None if they agree."""
    for name in sorted({*found, *wanted}):
        if name not in found:
            return f"tensor {name} is missing"
        if name not in wanted:
            return f"tensor {name} does not belong to this model"
        (shape, dtype), (right, kind) = found[name], wanted[name]
        if shape != right:
            return f"tensor {name} has shape {shape}, expected {right}"
        if dtype != kind:
            return f"tensor {name} has the type {str(dtype)[6:]}, expected {str(kind)[6:]}"
    return None


def layout(tensors: Mapping[str, Tensor]) -> Layout:
    return {name: (tuple(value.shape), value.dtype) for name, value in tensors.items()}


def count(found: Layout) -> int:
    """Return the number of values in all tensors."""
    return sum(torch.Size(shape).numel() for shape, _ in found.values())
