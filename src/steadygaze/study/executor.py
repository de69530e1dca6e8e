"""Executors: where cells run.  This process, processes of this machine, or a Ray cluster."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Protocol, Self

from steadygaze.core.errors import UserError, one_line
from steadygaze.core.types import OnProgress
from steadygaze.study.cell_record import Cell, CellRecord, run_cell, run_cell_in_worker

CellFuture = Future[tuple[CellRecord | None, list[Warning]]]
"""The record of a cell, or None if another process runs it, and the warnings of a worker."""
RETRIES = 2
"""Times that a cell runs again after its worker was killed."""
SAFE_PATH = "PYTHONSAFEPATH"


class Executor(Protocol):
    """Runs cells.  It is a context manager, which ends its workers."""

    slots: int
    """Cells that it can take at a time."""
    retries: int
    """Times that the engine runs a cell again after its worker was killed."""
    link: str
    """Address of a dashboard, or nothing."""

    def submit(self, cell: Cell, root: Path, on_progress: OnProgress) -> CellFuture: ...

    def is_loss(self, error: BaseException) -> bool:
        """Return whether an error means that a worker was killed, so that the cell can run again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class InProcess:
    """One cell after the other in this process: a GPU, or one worker."""

    slots, retries, link = 1, 0, ""

    def submit(self, cell: Cell, root: Path, on_progress: OnProgress) -> CellFuture:
        future: CellFuture = Future()
        try:
            future.set_result((run_cell(cell, root, on_progress), []))
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


@dataclass
class _Lane:
    """One worker process, and its last cell."""

    pool: ProcessPoolExecutor
    future: CellFuture | None = None

    @property
    def is_free(self) -> bool:
        return self.future is None or self.future.done()


class LocalProcesses:
    """Worker processes with one thread each.

    Every worker is a pool of its own: a killed worker ends one cell, and the others go on.
    """

    retries, link = RETRIES, ""

    def __init__(self, workers: int) -> None:
        self.slots = workers
        self._lanes: list[_Lane] = []

    def submit(self, cell: Cell, root: Path, on_progress: OnProgress) -> CellFuture:
        with _without_main(), _without_working_directory():
            if not self._lanes:  # nothing has started
                _check_portable(cell)
            lane = self._free_lane()
            lane.future = lane.pool.submit(run_cell_in_worker, cell, root)
        return lane.future

    def is_loss(self, error: BaseException) -> bool:
        return isinstance(error, BrokenProcessPool)

    def _free_lane(self) -> _Lane:
        for lane in [lane for lane in self._lanes if lane.is_free]:
            if lane.future is None or not isinstance(lane.future.exception(), BrokenProcessPool):
                return lane
            lane.pool.shutdown(wait=False)
            self._lanes.remove(lane)
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_start_worker)
        self._lanes.append(_Lane(pool))
        return self._lanes[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the workers; after an error or an interruption, in the middle of their cells, which can be resumed."""
        for lane in self._lanes:
            processes = list((getattr(lane.pool, "_processes", None) or {}).values())
            lane.pool.shutdown(wait=kind is None, cancel_futures=True)
            for process in processes if kind is not None else ():
                process.terminate()
                process.join()


def _check_portable(cell: Cell) -> None:
    """Refuse work that a worker process cannot import; the caller hides the main module."""
    try:
        with open(os.devnull, "wb") as nowhere:
            ForkingPickler(nowhere).dump(cell.work)
    except Exception as error:
        raise UserError(
            f"a worker process cannot import what this study uses: {one_line(error)}.  Define techniques, explainers "
            "and properties of your own at the top level of a module (a notebook or a script is none) and import it, "
            "or use one worker: workers=1 (--workers 1)"
        ) from None


def _start_worker() -> None:
    """Prepare a worker: one thread; it ignores Ctrl-C, and ends with the driver, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    driver = parent_process()
    assert driver is not None
    threading.Thread(target=_exit_after, args=(driver,), daemon=True).start()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # torch reads them when a cell imports it
        os.environ[name] = "1"


def _exit_after(driver: BaseProcess) -> None:
    driver.join()
    os._exit(1)


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module: a new worker would run the user's script again, with its call of this function."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _without_working_directory() -> Iterator[None]:
    """Start workers with the module path of this process; Python would search the working directory before it."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before
