"""Limits on a network that a configuration describes, checked before anything large is made.

A configuration may claim any size, and every architecture has its own names for sizes.  So nothing is concluded from
names alone: the network is built without memory (PyTorch's device "meta"), its parts are counted on the way, and its
parameters are compared with the header of the weights.
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
"""Last words of keys that count modules in most architectures: refused by name, for a better message."""
MOST_MODULES = 1000
MOST_ENTRIES = 1 << 16
"""Labels of a model, and entries of any other list or object of a configuration."""
MOST_PARTS = 50_000
"""Modules, parameters and buffers of a network."""
PARTS_PER_TENSOR, MORE_PARTS = 10, 1000
"""Parts that a network may have for each tensor of the weights, and beyond."""
MORE_PARAMETERS = 1 << 22
"""Numbers that are trained and not saved: a part without weights."""
MORE_BUFFERS = 1 << 28
"""Numbers that are not trained: tables of positions and masks."""
M = TypeVar("M", bound=torch.nn.Module)


def check_counts(values: Mapping[str, Any], file: Path) -> None:
    """Of layers, heads, labels and entries, in parts of a configuration too."""
    for key, value in values.items():
        _check_entries(key, value, file)
        most = MOST_ENTRIES if key == "num_labels" else MOST_MODULES if key.split("_")[-1] in COUNTED else None
        if most is not None and isinstance(value, int) and not 0 <= value <= most:
            raise UserError(f"{file}: {key} is {value:,}; it must be from 0 to {most:,}")


def sketch(make: Callable[[], M], tensors: int, file: Path) -> M:
    """The network without memory; refused where it has many more parts than the weights have `tensors`."""
    most = min(MOST_PARTS, PARTS_PER_TENSOR * tensors + MORE_PARTS)
    refusal = UserError(
        f"{file} describes a network of more than {most:,} modules and parameters, "
        f"but the weights hold {tensors:,} tensors; at most {MOST_PARTS:,} are built"
    )
    with torch.device("meta"), _counted(most, refusal):
        return make()


def check_size(network: torch.nn.Module, numbers: int, file: Path) -> None:
    """Refuse a network far larger than its weights, which hold so many `numbers`."""
    parameters = sum(value.numel() for value in network.parameters())
    buffers = sum(value.numel() for value in network.buffers())
    if parameters > 2 * numbers + MORE_PARAMETERS or buffers > 2 * numbers + MORE_BUFFERS:
        raise UserError(
            f"{file} describes a network of {parameters + buffers:,} parameters, but the weights hold {numbers:,} "
            "numbers"
        )


def _check_entries(key: str, value: Any, file: Path) -> None:
    if isinstance(value, list | Mapping) and len(value) > MOST_ENTRIES:
        raise UserError(f"{file}: {key} has {len(value):,} entries; at most {MOST_ENTRIES:,} are read")
    if isinstance(value, Mapping):
        check_counts(value, file)
    elif isinstance(value, list):
        for one in value:
            _check_entries(key, one, file)


@contextmanager
def _counted(most: int, refusal: UserError) -> Iterator[None]:
    """Raise where this thread registers more modules, parameters and buffers."""
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
