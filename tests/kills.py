"""Kills at every disk operation: all that a killed process leaves behind is what is on the disk.

`record` runs a command and keeps the content of a folder before each of its disk operations: creating, writing,
flushing, renaming and deleting.  A file that was being written is also kept half written.  Each kept state is what a
kill at that moment leaves; `restore` puts it back, so that the command can be run again.  States that differ only in
the random names of temporary files count once.
"""

import builtins
import hashlib
import io
import json
import multiprocessing
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch as tensors

State = dict[str, bytes | None]
"""Path in the folder -> content; None for a folder."""
CALLS = ("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "fsync")
RANDOM = re.compile(r"\.[0-9a-f]{8}\.(tmp|old)")


def forked(work: Callable[..., object], *inputs: object) -> multiprocessing.process.BaseProcess:
    """A process that works, to be killed: a copy of this one, which has imported torch already."""
    process = multiprocessing.get_context("fork").Process(target=_silent, args=(work, *inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # this process has threads
        process.start()
    return process


def _silent(work: Callable[..., object], *inputs: object) -> None:
    warnings.simplefilter("ignore")
    work(*inputs)


@dataclass
class Recorder:
    base: Path
    operations: int = 0
    states: dict[str, State] = field(default_factory=dict)
    """By a digest of what matters; in the order in which they came."""
    _contents: dict[bytes, bytes] = field(default_factory=dict)
    _written: Path | None = None
    _busy: bool = False

    def operation(self, target: object = None) -> None:
        """Before a disk operation; `target`: the file that it begins to write."""
        if self._busy:
            return
        self._busy = True
        try:
            self.operations += 1
            self.keep()
            self._written = Path(os.fspath(target)) if isinstance(target, str | os.PathLike) else None  # type: ignore[arg-type]
        finally:
            self._busy = False

    def keep(self) -> None:
        state = snapshot(self.base, self._contents)
        self._add(state)
        if self._written is not None and self._written.is_file() and self._written.is_relative_to(self.base):
            name = str(self._written.relative_to(self.base))
            half = (state[name] or b"")[: len(state[name] or b"") // 2]
            self._add({**state, name: half})

    def _add(self, state: State) -> None:
        digest = hashlib.sha256()
        for name, content in sorted((RANDOM.sub(r".\1", name), content) for name, content in state.items()):
            digest.update(name.encode() + b"\0" + (b"folder" if content is None else hashlib.sha256(content).digest()))
        self.states.setdefault(digest.hexdigest(), state)


def snapshot(base: Path, contents: dict[bytes, bytes] | None = None) -> State:
    """Everything in a folder; equal contents are one object."""
    known = {} if contents is None else contents
    certificates: State = {}
    for path in sorted(base.rglob("*")):
        content = path.read_bytes() if path.is_file() else None
        certificates[str(path.relative_to(base))] = None if content is None else known.setdefault(content, content)
    return certificates


def restore(base: Path, state: State) -> None:
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    for name, content in state.items():
        if content is None:
            (base / name).mkdir(parents=True, exist_ok=True)
        else:
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_bytes(content)


def without_durations(state: State) -> State:
    """The records of cells without their duration and its digest; without Optuna's journal, which has dates."""

    def plain(name: str, content: bytes | None) -> bytes | None:
        if content is None or not name.endswith("/record.json"):
            return content
        return json.dumps({**json.loads(content), "seconds": 0, "digest": ""}).encode()

    return {name: plain(name, content) for name, content in state.items() if not name.endswith("optuna.log")}


def record(base: Path, command: Callable[[], object]) -> Recorder:
    """Run a command that writes into a folder; the last state is how it ends."""
    recorder = Recorder(base)
    with pytest.MonkeyPatch.context() as patch, _intercepted(patch, recorder):
        command()
    recorder._written = None
    recorder.keep()
    return recorder


@contextmanager
def _intercepted(patch: pytest.MonkeyPatch, recorder: Recorder) -> Iterator[None]:
    for name in CALLS:
        patch.setattr(os, name, _before(getattr(os, name), recorder))
    for module in (io, builtins):
        patch.setattr(module, "open", _before_open(io.open, recorder))
    patch.setattr(os, "open", _before_open(os.open, recorder))
    patch.setattr(tensors, "serialize_file", _before_tensors(tensors.serialize_file, recorder))
    yield


def _before(call: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    def called(*inputs: Any, **more: Any) -> Any:
        recorder.operation()
        return call(*inputs, **more)

    return called


def _before_open(call: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    def called(path: Any, mode: Any = "r", *inputs: Any, **more: Any) -> Any:
        flags = mode & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) if isinstance(mode, int) else set(mode) & set("wax+")
        if flags:
            recorder.operation(path)
        return call(path, mode, *inputs, **more)

    return called


def _before_tensors(call: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """`safetensors` fills a hidden file beside the real one, then renames it."""

    def called(data: Any, path: Any, *inputs: Any, **more: Any) -> Any:
        hidden = Path(path).with_name(".tmpAbC123")
        recorder.operation(hidden)
        call(data, hidden, *inputs, **more)
        os.rename(hidden, path)

    return called
