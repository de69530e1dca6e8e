"""The machine that a record belongs to, and what is compared on another one.

The bits of a result depend on the processor: its kernels add in another order.  A record of the same machine is
compared bit for bit.  On another machine an entry is equal if

    numbers    differ by at most 1e-3, absolute or relative
    rest       at most 2 % of its values differ: a text close to a threshold counts in one share and in its interval
    left out   hashes of weights, and texts that are shown because their shifts are the largest

With the same code, an ARM and an x86 processor differ by more in 33 of the other 140,513 values, in five entries.
"""

import os
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Json = Any
TOLERANCE, SHARE = 1e-3, 0.02
LEFT_OUT = {"tensors", "shifts"}
"""Keys whose values depend on bits, as do the digests of models in signatures."""
MODEL = re.compile(r"model:[0-9a-f]+")
CPU_KEYS = {
    **{"vendor_id": "vendor", "model name": "model", "model": "number"},  # x86
    **{"CPU implementer": "vendor", "CPU part": "model"},  # ARM
}
"""Names in /proc/cpuinfo -> ours."""
LIMITS = ("ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
"""Variables that choose other kernels than the processor's best."""


def describe_machine() -> dict[str, Any]:
    """Return everything that the bits of a result depend on."""
    import torch

    return {
        "processor": platform.machine(),
        **_processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "limits": {name: os.environ[name] for name in LIMITS if name in os.environ},
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _processor() -> dict[str, str]:
    """Return vendor and model of the first processor."""
    file = Path("/proc/cpuinfo")
    found = {"vendor": "unknown", "model": platform.processor() or "unknown"}
    for line in reversed(file.read_text().splitlines() if file.is_file() else []):
        key, _, value = line.partition(":")
        if key.strip() in CPU_KEYS:
            found[CPU_KEYS[key.strip()]] = value.strip()
    return found


def is_same_machine(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return True if both records can be compared bit for bit; the version of Python does not count."""
    return {**old, "python": ""} == {**new, "python": ""}


def portable(value: Json) -> Json:
    """Return a JSON tree without what depends on bits."""
    if isinstance(value, dict):
        return {key: portable(entry) for key, entry in value.items() if key not in LEFT_OUT and not _is_tensor(entry)}
    if isinstance(value, list):
        return [portable(entry) for entry in value]
    return MODEL.sub("model:", value) if isinstance(value, str) else value


def _is_tensor(entry: Json) -> bool:
    """Return True for dtype, shape and SHA-256 of a tensor."""
    return isinstance(entry, list) and len(entry) == 3 and isinstance(entry[2], str) and len(entry[2]) == 64


def portable_differences(
    old: dict[str, Json], new: dict[str, Json], compare: Callable[[Json, Json, float, str], Iterator[str]]
) -> Iterator[str]:
    """Yield the differences of the entries that differ on another machine; `compare`: of two trees."""
    for name in sorted({*old, *new}):
        lines = list(compare(*({name: portable(r[name])} if name in r else {} for r in (old, new)), TOLERANCE, ""))
        structural = [line for line in lines if line.endswith((": gone", ": new")) or " entries, now " in line]
        if structural or len(lines) > SHARE * _count(old.get(name)):
            yield from lines


def _count(value: Json) -> int:
    """Return the number of values of a JSON tree."""
    if isinstance(value, dict | list):
        return sum(map(_count, value.values() if isinstance(value, dict) else value))
    return 1
