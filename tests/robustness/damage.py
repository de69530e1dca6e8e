"""Ways to damage a file, and to put something else in its place."""

import json
import os
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

Damage = Callable[[Path], None]


def fifo(path: Path) -> None:
    """A pipe without a writer."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def zeros(path: Path) -> None:
    """A device that never ends."""
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def null_device(path: Path) -> Path:
    """A device node like /dev/null: code that replaces it leaves the machine's own alone.

    Users who may not make one, who could not replace /dev/null either, get a pipe.
    """
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        os.mkfifo(path)
    return path


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def loop(path: Path) -> None:
    """A symbolic link to itself."""
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def unix_socket(path: Path) -> None:
    path.unlink(missing_ok=True)
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as endpoint:
            endpoint.bind(path.name)
    finally:
        os.chdir(here)


def sparse(path: Path) -> None:
    """A sparse file of a terabyte."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(1 << 40)


SPECIAL: dict[str, Damage] = {
    "fifo": fifo, "dev-zero": zeros, "folder": folder, "link-loop": loop, "socket": unix_socket, "sparse": sparse,
}  # fmt: skip
"""What is not a regular file of a reasonable size."""


def content(data: bytes | str) -> Damage:
    """The file holds this instead."""
    return lambda path: void(path.write_bytes(data if isinstance(data, bytes) else data.encode()))


JSON: dict[str, Damage] = {
    "empty": content(b""),
    "not-utf-8": content(b"\xff\xfe{}"),
    "deep-list": content(b"[" * 100_000),
    "deep-object": content(b'{"a":' * 900 + b"1" + b"}" * 900),
    "deep-key": content(b'{"schema": ' + b"[" * 500 + b"]" * 500 + b"}"),
    "many-digits": content(b'{"schema": 1' + b"0" * 5000 + b"}"),
    "10**400": content(b'{"schema": 1' + b"0" * 400 + b"}"),
    "a-list": content(b"[1, 2]"),
    "a-number": content(b"1e999"),
    "null": content(b"null"),
    "cut": lambda path: void(path.write_bytes(path.read_bytes()[:-9])),
}
"""What is not the JSON object it should be."""


def changed(**values: Any) -> Damage:
    """Keys of a JSON object that have other values; ... removes one."""

    def damage(path: Path) -> None:
        now = {**json.loads(path.read_text(encoding="utf-8")), **values}
        path.write_text(json.dumps({key: value for key, value in now.items() if value is not ...}), encoding="utf-8")

    return damage


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    """The tensors of a .safetensors file, changed; its metadata stay."""

    def damage(path: Path) -> None:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata()
        weights = load_file(path)
        change(weights)
        save_file({name: value.contiguous() for name, value in weights.items()}, path, metadata)

    return damage


def filled(value: float) -> Damage:
    """The first entry of the last tensor is this."""

    def change(weights: dict[str, torch.Tensor]) -> None:
        name = max(name for name, tensor in weights.items() if tensor.is_floating_point())
        weights[name].view(-1)[0] = value

    return tensors(change)


def state(key: str, value: Any, at: str = "state") -> Damage:
    """The JSON in the header of a .safetensors file has another value under a key; ... removes it."""

    def damage(path: Path) -> None:
        with safe_open(path, framework="pt") as opened:
            metadata = dict(opened.metadata())
        now = {**json.loads(metadata[at]), key: value}
        metadata[at] = json.dumps({name: entry for name, entry in now.items() if entry is not ...})
        save_file(load_file(path), path, metadata)

    return damage


def header(data: bytes) -> Damage:
    """A .safetensors file with this header and nothing else."""
    return content(struct.pack("<Q", len(data)) + data)


WEIGHTS: dict[str, Damage] = {
    "nan": filled(float("nan")),
    "infinity": filled(float("inf")),
    "cut": lambda path: void(path.write_bytes(path.read_bytes()[:-9])),
    "half-precision": tensors(
        lambda weights: weights.update({name: tensor.half() for name, tensor in weights.items()})
    ),
    "transposed": tensors(
        lambda weights: weights.update({name: tensor.T for name, tensor in weights.items() if tensor.ndim == 2})
    ),
    "one-missing": tensors(lambda weights: weights.pop(min(weights))),
    "one-more": tensors(lambda weights: weights.update({"more": torch.zeros(1)})),
    "huge-header": content(struct.pack("<Q", 1 << 62) + b"{}"),
    "no-header": content(b"\x80\x04pickle"),
    "deep-header": header(b"[" * 100_000),
    "huge-shape": header(b'{"x": {"dtype": "F32", "shape": [4611686018427387904, 8], "data_offsets": [0, 0]}}'),
}
"""What is not the weights it should be."""


def void(_: object) -> None:
    """A function that returns nothing."""
