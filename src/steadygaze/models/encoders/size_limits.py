"""Size limits of a network that a configuration describes, checked before allocation.

A configuration can claim any size, and every architecture has its own names for sizes.  Therefore the network is built
without memory (PyTorch's device "meta"), its parts are counted during construction, and its parameters are compared
with the header of the weights.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.nn.modules import module as registration

from steadygaze.core.errors import UserError

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
    with torch.device("meta"), _limit_parts(most, refusal):
        return make()


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
