"""Run the cells of a study: each once, several at a time, resumable after any interruption.

A finished cell never runs again.  A failed cell is recorded with its error, and the others continue; the next run
retries it.  A cell whose worker is killed runs again, at most `executor.retries` times.

A process locks the folder of a cell while it runs the cell.  Several drivers can therefore share one study: a driver
waits for the cells of another, and takes over those of a killed one.

`choose_executor` returns the executor of `--engine` and `--workers`.
"""

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from steadygaze.core.errors import RecoveryWarning, UserError
from steadygaze.core.types import OnProgress, no_progress
from steadygaze.study.cell_record import Cell, CellRecord, cell_folder, failure, read_record, write_record
from steadygaze.study.executor import CellFuture, Executor, InProcess, LocalProcesses, cores

CURRENT_CELL: ContextVar[str] = ContextVar("label of the current cell", default="")
"""Label of the cell that the driver reported last, to name the cell of a warning."""
POLL = 0.5
"""Seconds between two looks at a cell that another process runs."""
NAMED = 3
"""Failed or running cells that a message names."""
MEMORY_PER_WORKER = 1 << 30
"""Bytes that one worker needs: torch, the texts, a model and its audit."""


def choose_executor(engine: str, workers: int | None, device: str, cells: int) -> Executor:
    """Return the executor; `workers` None: as many workers as cores and memory allow, on a GPU one."""
    if engine == "ray" or engine.startswith("ray://"):
        from steadygaze.study.ray_executor import RayExecutor

        return RayExecutor(engine, workers)
    if engine != "local":
        raise UserError(f"unknown engine {engine!r}: use local, ray, ray://auto or ray://HOST:PORT")
    count = _fitting_workers(device, cells) if workers is None else min(workers, max(cells, 1))
    return InProcess() if count == 1 else LocalProcesses(count)


def _fitting_workers(device: str, cells: int) -> int:
    from steadygaze.models.inference import best_device  # imports torch

    if best_device(device).type != "cpu":
        return 1
    memory = int(psutil.virtual_memory().available) // MEMORY_PER_WORKER
    return max(1, min(cells, cores(), memory))


def run_cells(
    cells: Sequence[Cell], root: Path, executor: Executor, on_progress: OnProgress = no_progress
) -> dict[str, CellRecord]:
    """Run the cells that have no valid record, and end the executor; return the records of all, by name."""
    with executor:
        return run_round(cells, root, executor, on_progress)


def run_round(
    cells: Sequence[Cell], root: Path, executor: Executor, on_progress: OnProgress = no_progress
) -> dict[str, CellRecord]:
    """The same with an executor that stays open for more cells."""
    return _Driver(cells, root, executor, on_progress).run()


@dataclass
class _Driver:
    cells: Sequence[Cell]
    root: Path
    executor: Executor
    on_progress: OnProgress
    records: dict[str, CellRecord] = field(default_factory=dict)
    running: dict[CellFuture, Cell] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    """Name of a cell that another process runs -> time of the next try."""
    losses: Counter[str] = field(default_factory=Counter)
    """Name of a cell -> number of its killed workers."""

    def run(self) -> dict[str, CellRecord]:
        if self.executor.link:
            self.on_progress(f"Ray dashboard: {self.executor.link}", 0, len(self.cells))
        for cell in self.cells:
            record = read_record(cell_folder(self.root, cell.name), cell.key)
            if record is not None and record.is_finished:
                self._finish(cell, record)
        while len(self.records) < len(self.cells):
            self._submit()
            if not self.running:
                time.sleep(POLL)  # another process runs the rest
                continue
            done, _ = wait(self.running, timeout=POLL, return_when=FIRST_COMPLETED)
            for future in done:
                self._collect(self.running.pop(future), future)
        return {cell.name: self.records[cell.name] for cell in self.cells}

    def _submit(self) -> None:
        """Submit cells that are ready, while the executor has a free slot."""
        now, in_progress = time.monotonic(), {cell.name for cell in self.running.values()}
        for cell in self.cells:
            if cell.name in self.records or cell.name in in_progress or now < self.not_before.get(cell.name, 0):
                continue
            needed = [self.records.get(name) for name in cell.needs]
            if failed := [record for record in needed if record is not None and not record.is_finished]:
                self._finish(cell, failure(cell, UserError(f"it needs {failed[0].label}, which failed")))
            elif None not in needed and len(self.running) < self.executor.slots:
                self._show(cell, "started", cell)
                self.running[self.executor.submit(cell, self.root, self._progress_of(cell))] = cell

    def _collect(self, cell: Cell, future: CellFuture) -> None:
        error = future.exception()
        if error is not None:
            self._recover(cell, error)
            return
        record, messages = future.result()
        if messages:
            self._show(cell, "ended")  # the command line names the cell of a warning
        for message in messages:
            warnings.warn(message, stacklevel=2)
        if record is None:
            self.not_before[cell.name] = time.monotonic() + POLL
        else:
            self._finish(cell, record)

    def _recover(self, cell: Cell, error: BaseException) -> None:
        """Run a cell again whose worker was killed; record any other error."""
        self.losses[cell.name] += self.executor.is_loss(error)
        if self.executor.is_loss(error) and self.losses[cell.name] <= self.executor.retries:
            count = f"{self.losses[cell.name]} of {self.executor.retries}"
            self._show(cell, "lost")
            warnings.warn(RecoveryWarning(f"its worker was killed: the cell runs again ({count})"), stacklevel=2)
            return
        record = failure(cell, error)
        with suppress(OSError):  # a full disk
            write_record(cell_folder(self.root, cell.name), record)
        self._finish(cell, record)

    def _finish(self, cell: Cell, record: CellRecord) -> None:
        self.records[cell.name] = record
        self._show(cell, "done" if record.is_finished else f"failed: {record.error}")

    def _show(self, cell: Cell, activity: str, *new: Cell) -> None:
        """Report the activity, with the numbers of running and failed cells if there are several."""
        failed = sum(not record.is_finished for record in self.records.values())
        running = len(self.running) + len(new)
        counts = [f"{running} running"] * (running > 1) + [f"{failed} failed"] * (failed > 0)
        CURRENT_CELL.set(cell.label)
        self.on_progress(", ".join([f"{cell.label}: {activity}", *counts]), len(self.records) - failed, len(self.cells))

    def _progress_of(self, cell: Cell) -> OnProgress:
        def on_progress(activity: str, done: int, total: int) -> None:
            self._show(cell, activity + (f", {done:,} of {total:,} texts" if total else ""))

        return on_progress


def check_finished(records: dict[str, CellRecord]) -> None:
    """Raise an error that names the failed cells, if there are any."""
    failed = [record for record in records.values() if not record.is_finished]
    if not failed:
        return
    reasons = "; ".join(f"{record.label}: {record.error}" for record in failed[:NAMED])
    message = f"{len(failed)} of {len(records)} cells failed: {reasons}.  The same command retries them"
    if all(record.wrong_input for record in failed):
        raise UserError(message)
    raise RuntimeError("\n".join([message, *(record.traceback for record in failed)]))
