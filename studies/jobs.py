"""Run the jobs of a study with the engine of `steadygaze compare`; each job writes a record DIR/records/<job>.json.

Finished jobs are not repeated; failed and interrupted ones are.  A job is a frozen dataclass with an `id`, such as a
subclass of Job.  If jobs fail, the others still run, and the script exits with an error that names them.

`python -m studies records DIR/records | gzip -9n > studies/records/NAME-COMMIT.jsonl.gz` joins the records.
"""

import dataclasses
import json
import pickle
import re
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.atomic_files import write_text
from steadygaze.core.types import OnProgress
from steadygaze.study.cell_record import RECORD, Cell, CellRecord, Output, cell_folder
from steadygaze.study.engine import NAMED, choose_executor, run_round

RunJob = Callable[[Any], dict[str, Any]]


class Job:
    """Base of frozen dataclasses; the name of a job are its values, joined by dots."""

    @property
    def id(self) -> str:
        fields: dict[str, Any] = dataclasses.asdict(self)  # type: ignore[call-overload]
        name = ".".join(f"s{value}" if key == "seed" else str(value) for key, value in fields.items())
        return re.sub(r"[ ,/]+", "-", name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options of every study that runs jobs."""

    out: Path = dataclasses.field(metadata={"help": "folder of the records"})
    device: str = "cpu"
    workers: int = dataclasses.field(default=1, metadata={"help": "processes"})
    only: str = dataclasses.field(default="", metadata={"help": "jobs whose names this matches"})


def run(
    options: JobOptions,
    plan: Callable[[], list[Any]],
    run_job: RunJob,
    rounds: int = 1,
    needs: Callable[[Any], tuple[str, ...]] = lambda job: (),
) -> None:
    """Run all jobs of the plan, which is made anew in each round: it can depend on the records of the last one.

    run_job: job -> record.  needs: job -> names of jobs of the same round that must be finished first.
    Exits with an error after the last round if a job failed.
    """
    (options.out / "records").mkdir(parents=True, exist_ok=True)
    function = run_job if options.workers == 1 else pickle.dumps(run_job)
    outcomes: dict[str, CellRecord] = {}
    with choose_executor("local", options.workers, options.device, sys.maxsize) as executor:
        for _ in range(rounds):
            jobs = [job for job in plan() if re.search(options.only, job.id)]
            for job in jobs:
                _forget_failure(options.out, job.id)
            cells = [
                Cell(
                    job.id,
                    job.id,
                    dataclasses.asdict(job),
                    partial(_run_and_record, options.out, function, job),
                    needs(job),
                )
                for job in jobs
            ]
            outcomes |= run_round(cells, options.out, executor, _print_progress)
    if failed := [outcome for outcome in outcomes.values() if not outcome.is_finished]:
        raise SystemExit(_failure_message(failed, len(outcomes), options.out))


def _failure_message(failed: list[CellRecord], count: int, out: Path) -> str:
    reasons = "; ".join(f"{outcome.label}: {outcome.error}" for outcome in failed[:NAMED])
    more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return (
        f"{len(failed)} of {count} jobs failed: {reasons}{more}.  Their tracebacks are in {out / 'records'}, one file "
        "per job.  The same command runs failed jobs again."
    )


def _record_file(out: Path, name: str) -> Path:
    return out / "records" / f"{name}.json"


def _forget_failure(out: Path, name: str) -> None:
    """Remove the record of a failed job, and what the engine knows of a job without a record."""
    file = _record_file(out, name)
    if file.exists() and "error" in json.loads(file.read_text()):
        file.unlink()
    if not file.exists():
        (cell_folder(out, name) / RECORD).unlink(missing_ok=True)


def _run_and_record(out: Path, function: RunJob | bytes, job: Any, folder: Path, on_progress: OnProgress) -> Output:
    """Run one job and write its record.  `function`: that of the jobs, for other processes as bytes."""
    file, start = _record_file(out, job.id), time.monotonic()
    if file.exists():
        return Output()

    def write(result: dict[str, Any]) -> None:
        content = result | dataclasses.asdict(job) | {"seconds": round(time.monotonic() - start, 1)}
        write_text(file, json.dumps(content) + "\n")

    try:
        write((_load_function(function) if isinstance(function, bytes) else function)(job))
    except Exception:
        write({"error": traceback.format_exc()})
        raise
    return Output()


@cache
def _load_function(function: bytes) -> RunJob:
    """One function for all jobs of a worker: it can cache the data it has read."""
    run_job: RunJob = pickle.loads(function)
    return run_job


def _print_progress(activity: str, done: int, total: int) -> None:
    if ": done" in activity or ": failed" in activity:
        print(f"{done}/{total} {activity}", flush=True)


def load_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file: texts that were prepared for jobs."""
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def compact(value: Any) -> Any:
    """A record with numbers of five significant digits."""
    if isinstance(value, dict):
        return {name: compact(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [compact(entry) for entry in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
