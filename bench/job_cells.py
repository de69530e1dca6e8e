"""Jobs of a study, run by the engine of `steadygaze compare`; each leaves a record DIR/records/<job>.json.

Finished jobs are not repeated; failed and interrupted ones are.  A job is a frozen dataclass with an `id`.  If jobs
fail, the others still run, and the script exits with an error that names them.

    python bench/job_cells.py DIR/records [--without history] | gzip -9n > bench/records/NAME-COMMIT.jsonl.gz

Several workers import the functions of a job from its module: a script calls its own `main` through an import.
"""

import argparse
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

from steadygaze.core.atomic_files import write_text
from steadygaze.core.types import OnProgress
from steadygaze.study.cell_record import RECORD, Cell, CellRecord, Output, cell_folder
from steadygaze.study.engine import NAMED, choose_executor, run_round
from tables import read_records

Do = Callable[[Any], dict[str, Any]]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="folder of the records")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="jobs whose names this matches")


def run(
    options: argparse.Namespace,
    plan: Callable[[], list[Any]],
    do: Do,
    rounds: int = 1,
    needs: Callable[[Any], tuple[str, ...]] = lambda job: (),
) -> None:
    """Run all jobs of the plan, which is made anew in each round: it can depend on the records of the last one.

    do: job -> record.  needs: job -> names of jobs of the same round that must be finished first.
    Exits with an error after the last round if a job failed.
    """
    (options.out / "records").mkdir(parents=True, exist_ok=True)
    shared = do if options.workers == 1 else pickle.dumps(do)
    outcomes: dict[str, CellRecord] = {}
    with choose_executor("local", options.workers, options.device, sys.maxsize) as executor:
        for _ in range(rounds):
            jobs = [job for job in plan() if re.search(options.only, job.id)]
            for job in jobs:
                _forget_failure(options.out, job.id)
            cells = [
                Cell(job.id, job.id, dataclasses.asdict(job), partial(_work, options.out, shared, job), needs(job))
                for job in jobs
            ]
            outcomes |= run_round(cells, options.out, executor, _show)
    if failed := [outcome for outcome in outcomes.values() if not outcome.is_finished]:
        raise SystemExit(_failure_message(failed, len(outcomes), options.out))


def _failure_message(failed: list[CellRecord], count: int, out: Path) -> str:
    reasons = "; ".join(f"{outcome.label}: {outcome.error}" for outcome in failed[:NAMED])
    more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    return (
        f"{len(failed)} of {count} jobs failed: {reasons}{more}.  Their tracebacks are in {out / 'records'}, one file "
        "per job.  The same command runs failed jobs again."
    )


def _record(out: Path, name: str) -> Path:
    return out / "records" / f"{name}.json"


def _forget_failure(out: Path, name: str) -> None:
    """Remove the record of a failed job, and what the engine knows of a job without a record."""
    file = _record(out, name)
    if file.exists() and "error" in json.loads(file.read_text()):
        file.unlink()
    if not file.exists():
        (cell_folder(out, name) / RECORD).unlink(missing_ok=True)


def _work(out: Path, shared: Do | bytes, job: Any, folder: Path, on_progress: OnProgress) -> Output:
    """One job.  `shared`: its function, for other processes as bytes."""
    file, start = _record(out, job.id), time.monotonic()
    if file.exists():
        return Output()

    def write(result: dict[str, Any]) -> None:
        content = result | dataclasses.asdict(job) | {"seconds": round(time.monotonic() - start, 1)}
        write_text(file, json.dumps(content) + "\n")

    try:
        write((_loaded(shared) if isinstance(shared, bytes) else shared)(job))
    except Exception:
        write({"error": traceback.format_exc()})
        raise
    return Output()


@cache
def _loaded(shared: bytes) -> Do:
    """One function for all jobs of a worker: it may keep what it has read."""
    do: Do = pickle.loads(shared)
    return do


def _show(activity: str, done: int, total: int) -> None:
    if ": done" in activity or ": failed" in activity:
        print(f"{done}/{total} {activity}", flush=True)


def compact(value: Any) -> Any:
    """A record with numbers of five significant digits."""
    if isinstance(value, dict):
        return {name: compact(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [compact(entry) for entry in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description="Print records, one a line.")
    parser.add_argument("places", nargs="+", help="folders or files of records")
    parser.add_argument("--without", nargs="*", default=(), help="fields to leave out, such as history")
    options = parser.parse_args()
    for record in read_records(options.places):
        kept = {name: value for name, value in record.items() if name not in options.without}
        print(json.dumps(compact(kept), separators=(",", ":")))


if __name__ == "__main__":
    main()
