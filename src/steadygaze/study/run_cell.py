"""Run one cell in this process, and write its record."""

import time
import warnings
from pathlib import Path

from steadygaze.core.atomic_files import try_lock
from steadygaze.core.errors import RecoveryWarning
from steadygaze.results.audit_config import silent
from steadygaze.study.cell_record import Cell, CellRecord, Watch, failure, read_record, write_record


def cell_folder(root: Path, name: str) -> Path:
    """The folder of a cell: name -> root/cells/name, study/name -> root/study/cells/name."""
    study, _, cell = name.rpartition("/")
    return root / study / "cells" / cell


def run_cell(cell: Cell, root: Path, watch: Watch = silent) -> CellRecord | None:
    """Run a cell in this process and write its record; None: another process runs it."""
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
            output = cell.work(folder, watch)
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
