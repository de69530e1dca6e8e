"""Jobs that run side by side: each leaves a record DIR/records/<job>.json.

What is there is not done again; what failed, or was killed, is.  A job is a frozen dataclass with an `id`.

    python bench/job_queue.py DIR/records... > bench/records/NAME.jsonl        all records, one a line
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, help="where records go")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--only", default="", help="jobs whose names this matches")
    parser.add_argument("--one-of-many", action="store_true", help=argparse.SUPPRESS)  # the claims it finds are others'


def run(
    given: argparse.Namespace, plan: Callable[[], list[Any]], do: Callable[[Any], dict[str, Any]], rounds: int = 1
) -> None:
    """All jobs of the plan, which is asked anew in each round: it may go by what the last one found."""
    (given.out / "records").mkdir(parents=True, exist_ok=True)
    if not given.one_of_many:
        tidy(given.out)
    for _ in range(rounds):
        if given.workers > 1:
            _side_by_side(given.workers)
        else:
            work(given.out, [job for job in plan() if re.search(given.only, job.id)], do)


def tidy(out: Path) -> None:
    """Takes away the claims of workers that were killed, and the records of jobs that failed."""
    for claim in (out / "claims").glob("*"):
        record = out / "records" / f"{claim.name}.json"
        if record.exists() and "error" in json.loads(record.read_text()):
            record.unlink()
        if not record.exists():
            claim.rmdir()


def work(out: Path, jobs: Iterable[Any], do: Callable[[Any], dict[str, Any]]) -> None:
    """Every job that nobody has begun, one after the other."""
    for job in jobs:
        record = out / "records" / f"{job.id}.json"
        try:
            if record.exists():
                continue
            (out / "claims" / job.id).mkdir(parents=True)
        except FileExistsError:
            continue
        started = time.time()
        try:
            result = do(job)
        except Exception:
            result = {"error": traceback.format_exc()}
        result |= dataclasses.asdict(job) | {"seconds": round(time.time() - started, 1)}
        new = record.with_suffix(".tmp")
        new.write_text(json.dumps(result) + "\n")
        os.replace(new, record)
        print(job.id, result.get("error") or _short(result), f"{result['seconds']:.0f} s", flush=True)


def _short(result: dict[str, Any]) -> dict[str, float]:
    found = result.get("chosen", {}).get("test") or result
    return {name: round(value, 3) for name, value in found.items() if isinstance(value, float) and name != "seconds"}


def _side_by_side(workers: int) -> None:
    """This very command in so many processes."""
    command = [sys.executable, *sys.argv, "--workers=1", "--one-of-many"]  # the last one counts
    running = [subprocess.Popen(command) for _ in range(workers)]
    for worker in running:
        worker.wait()


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def read_records(places: Iterable[str]) -> list[dict[str, Any]]:
    """Of folders of records, or files of one record a line; those that failed are named and left out."""
    found = []
    for place in map(Path, places):
        lines = place.read_text().splitlines() if place.is_file() else []
        found += records(place) if place.is_dir() else [json.loads(line) for line in lines]
    for record in found:
        if "error" in record:
            print("failed:", {k: v for k, v in record.items() if k != "error"}, file=sys.stderr)
    return [record for record in found if "error" not in record]


def compact(value: Any) -> Any:
    """A record with numbers of five significant digits."""
    if isinstance(value, dict):
        return {name: compact(one) for name, one in value.items()}
    if isinstance(value, list):
        return [compact(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    for record in read_records(sys.argv[1:]):
        print(json.dumps(compact(record), separators=(",", ":")))
