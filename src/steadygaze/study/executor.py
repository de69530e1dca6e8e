"""Executors: where cells run.  This process, processes of this machine, or a Ray cluster."""

import os
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from steadygaze.study.cell_record import Cell, CellRecord, Watch
from steadygaze.study.run_cell import run_cell

CellFuture = Future[tuple[CellRecord | None, list[Warning]]]
"""The record of a cell, or None if another process runs it, and the warnings of a worker."""
RETRIES = 2
"""Times that a cell runs again after its worker was killed."""


class Executor(Protocol):
    """Runs cells.  It is a context manager, which ends its workers."""

    slots: int
    """Cells that it can take at a time."""
    retries: int
    """Times that the engine runs a cell again after its worker was killed."""
    link: str
    """Address of a dashboard, or nothing."""

    def submit(self, cell: Cell, root: Path, watch: Watch) -> CellFuture: ...

    def is_loss(self, error: BaseException) -> bool:
        """Return whether an error means that a worker was killed, so that the cell can run again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcess:
    """One cell after the other in this process: a GPU, or one worker."""

    slots, retries, link = 1, 0, ""

    def submit(self, cell: Cell, root: Path, watch: Watch) -> CellFuture:
        future: CellFuture = Future()
        try:
            future.set_result((run_cell(cell, root, watch), []))
        except Exception as error:
            future.set_exception(error)
        return future

    def is_loss(self, error: BaseException) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def cores() -> int:
    """The CPU cores that this process may use."""
    affinity: Any = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1
