"""A cell, the unit of work of a study: run it, and keep its record on disk.

    cells/<name>/record.json      key, status, result, error, duration, digests of the output files; written last
    cells/<name>/...              the output files of the cell

The key is the digest of everything that the result depends on: resolved settings, data fingerprint, seed, versions
and `code_version`.  A record counts only if its key is the cell's key and its digests match.
"""

import json
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from steadygaze.core.atomic_files import FolderBusy, try_lock, write_text
from steadygaze.core.errors import RecoveryWarning, UserError, one_line
from steadygaze.core.settings import Field, build, settings
from steadygaze.core.types import OnProgress, no_progress
from steadygaze.core.untrusted_files import digest_file, digest_json, read_object

RECORD = "record.json"
GPU_SHARE = 0.25
"""Part of a GPU that Ray reserves for a cell; small models leave most of a GPU idle."""
Status = Literal["finished", "failed"]


@dataclass(frozen=True)
class Output:
    """What a cell returns."""

    result: dict[str, Any] = field(default_factory=dict)
    """Small results; JSON."""
    files: tuple[str, ...] = ()
    """Names of the output files to protect by a digest."""


Work = Callable[[Path, OnProgress], Output]
"""Writes files to the folder of the cell.  Another process runs it: use a function of a module, or a partial of one."""


@dataclass(frozen=True)
class Cell:
    name: str
    """Name of its folder, unique in the study; study/name for a cell of a study in a subfolder."""
    label: str
    """Name for people: word-at, seed 0."""
    inputs: Mapping[str, Any]
    """Everything that the result depends on; JSON."""
    work: Work
    needs: tuple[str, ...] = ()
    """Names of cells that must be finished first."""
    gpus: float = 0
    """GPUs that Ray reserves."""

    @cached_property
    def key(self) -> str:
        return digest_json([self.inputs], sort_keys=True)


def gpu_share(device: str) -> float:
    """The part of a GPU that a cell on this device takes."""
    return GPU_SHARE if device == "cuda" else 0


@settings
class CellRecord:
    key: str
    label: str
    status: Status
    result: dict[str, Any] = Field(default_factory=dict)
    files: dict[str, str] = Field(default_factory=dict)
    """Output file -> SHA-256."""
    error: str = ""
    wrong_input: bool = False
    """The error is about input, settings or the machine; otherwise it is an internal error."""
    traceback: str = ""
    seconds: float = 0.0

    @property
    def is_finished(self) -> bool:
        return self.status == "finished"


def failure(cell: Cell, error: BaseException, seconds: float = 0.0) -> CellRecord:
    """The record of a failed cell."""
    wrong_input = isinstance(error, UserError | OSError | MemoryError)
    return CellRecord(
        key=cell.key,
        label=cell.label,
        status="failed",
        error=one_line(error if isinstance(error, UserError) else f"{type(error).__name__}: {error}"),
        wrong_input=wrong_input,
        traceback="".join(traceback.format_exception(error)),
        seconds=seconds,
    )


def write_record(folder: Path, record: CellRecord) -> CellRecord:
    """Write a record atomically, with the digests of its files and of itself."""
    record = replace(record, files={name: digest_file(folder / name) for name in record.files})
    content = asdict(record)
    write_text(folder / RECORD, json.dumps({**content, "digest": digest_json([content], sort_keys=True)}, indent=1))
    return record


def read_record(folder: Path, key: str) -> CellRecord | None:
    """The record of a cell; None if there is none, or, with a warning, if it does not count."""
    if not (folder / RECORD).is_file():
        return None
    try:
        content = read_object(folder / RECORD)
        digest = content.pop("digest", None)
        if digest != digest_json([content], sort_keys=True):
            raise UserError(f"{folder / RECORD} is damaged: its content does not match its digest")
        record = build(CellRecord, content)
        if record.key != key:
            raise UserError(f"{folder / RECORD} belongs to other settings, data or code")
        for name, expected in record.files.items():
            if digest_file(folder / name) != expected:
                raise UserError(f"{folder / name} is damaged: it does not match its digest")
    except (UserError, OSError) as error:
        warnings.warn(RecoveryWarning(f"{error}; the cell runs again"), stacklevel=3)
        return None
    return record


def cell_folder(root: Path, name: str) -> Path:
    """The folder of a cell: name -> root/cells/name, study/name -> root/study/cells/name."""
    study, _, cell = name.rpartition("/")
    return root / study / "cells" / cell


def run_cell(cell: Cell, root: Path, on_progress: OnProgress = no_progress) -> CellRecord | None:
    """Run a cell in this process and write its record; None: another process runs it, or trains its model."""
    folder = cell_folder(root, cell.name)
    folder.mkdir(parents=True, exist_ok=True)
    with try_lock(folder) as lock:
        if lock == "busy":
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecoveryWarning)  # the driver has shown it
            record = read_record(folder, cell.key)
        if record is not None and record.is_finished:  # by another driver
            return record
        start = time.monotonic()
        try:
            output = cell.work(folder, on_progress)
        except FolderBusy:  # another driver trains this model in a stack
            return None
        except Exception as error:
            return write_record(folder, failure(cell, error, time.monotonic() - start))
        record = CellRecord(
            key=cell.key,
            label=cell.label,
            status="finished",
            result=output.result,
            files=dict.fromkeys(output.files, ""),
            seconds=time.monotonic() - start,
        )
        return write_record(folder, record)


def run_cell_in_worker(cell: Cell, root: Path) -> tuple[CellRecord | None, list[Warning]]:
    """The same in a worker process, which returns its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        record = run_cell(cell, root)
    return record, [item.message for item in caught if isinstance(item.message, UserWarning)]
