"""Published tables on a GPU; what is finished stays in DIR, and the same command continues.

    python -m studies run papers PLAN... --out DIR --data DIR --glove FILE
    python -m studies run papers --one-by-one CELLS --out DIR --data DIR --glove FILE

PLAN is a name of PLANS in plan.py; the plans run one after another.  `--one-by-one` measures one worker: SST-2, BiLSTM,
seed 0 of Table 1 of SEAT.  `steadygaze reproduce TABLE --out DIR --finished` prints the tables.
"""

import json
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from steadygaze.core.errors import UserError
from steadygaze.study.compare import StudyRuntime, begin
from steadygaze.study.engine import run_round
from steadygaze.study.executor import LocalProcesses
from steadygaze.study.published_tables import find_table
from steadygaze.study.reproduce import TableRun, run_missing
from steadygaze.study.study_options import ReproduceOptions
from steadygaze.study.table_blocks import blocks
from studies.babi_settings.run import unit_vectors
from studies.papers.plan import ONE_WORKER, PLANS, SEEDS, TINY, UNIT, Choice


@dataclass(frozen=True)
class Inputs:
    """Where a run reads its data, and where it writes."""

    out: Path
    data: Path
    glove: Path
    device: str
    tiny: bool

    def options(self, choice: Choice) -> ReproduceOptions:
        values: Choice = {"seeds": SEEDS, "vectors": str(self.glove), **choice, **(TINY if self.tiny else {})}
        if values["vectors"] == UNIT:
            values["vectors"] = str(self._unit_vectors())
        return ReproduceOptions(**values)  # type: ignore[arg-type]

    def _unit_vectors(self) -> Path:
        file = self.out / "babi-vectors.txt"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(unit_vectors(self.data))
        return file


def run(
    plans: list[str] = [],  # noqa: B006
    *,
    out: Path,
    data: Path,
    glove: Path,
    workers: int = 14,
    device: str = "cuda",
    tiny: Annotated[bool, typer.Option("--tiny", help="a few texts, for a trial run")] = False,
    one_by_one: Annotated[int, typer.Option(help="cells to run with one worker")] = 0,
) -> None:
    if unknown := [name for name in plans if name not in PLANS]:
        sys.exit(f"{unknown[0]!r} is not a plan.  There are: {', '.join(PLANS)}")
    inputs = Inputs(out, data, glove, device, tiny)
    warnings.simplefilter("ignore")
    if one_by_one:
        print(one_worker(inputs, one_by_one), flush=True)
        return
    for name in plans:
        try:
            run_plan(name, inputs, workers)
        except (UserError, RuntimeError) as error:  # failed cells; the other plans go on
            print(f"{name}: {error}", flush=True)


def run_plan(name: str, inputs: Inputs, workers: int) -> None:
    start = time.monotonic()
    inputs.out.mkdir(parents=True, exist_ok=True)
    on_progress = partial(_log, inputs.out / "events.jsonl", name, start)
    runs = [TableRun(find_table(table), inputs.options(choice)) for table, choice in PLANS[name]]
    run_missing(runs, StudyRuntime(inputs.out, inputs.data, inputs.device, on_progress, workers=workers))
    print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


def _log(events: Path, plan: str, start: float, activity: str, done: int, total: int) -> None:
    """Write an event."""
    seconds = round(time.monotonic() - start, 2)
    with events.open("a") as file:
        file.write(json.dumps({"plan": plan, "seconds": seconds, "activity": activity, "done": done}) + "\n")
    if "failed: " in activity or (done % 35 == 0 and ": done" in activity):
        print(plan, seconds, activity, f"{done}/{total}", flush=True)


def one_worker(inputs: Inputs, count: int) -> str:
    """Seconds per cell with one worker, after it has started."""
    options = inputs.options(ONE_WORKER)
    (block,) = blocks(find_table("seat/table1"), options.only)
    job = begin(block.config(options), StudyRuntime(inputs.out, inputs.data, inputs.device))
    first, *cells = job.cells()
    with LocalProcesses(1) as worker:
        run_round([first], inputs.out, worker)
        start = time.monotonic()
        run_round(cells[:count], inputs.out, worker)
    seconds = (time.monotonic() - start) / min(len(cells), count)
    return f"one by one: {seconds:.2f} s per cell, {3600 / seconds:.0f} cells per hour"
