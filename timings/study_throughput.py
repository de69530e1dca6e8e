"""Throughput of the engine: two workers against one, and Ray on this machine against our worker processes.

Each cell trains and audits one small model, as `compare` does.  Workers start once and import torch before the clock.
The ratios need a machine without other load.  With --sleep-seconds, cells only wait: the cost of scheduling.
"""

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from steadygaze.core.types import OnProgress
from steadygaze.data.corpora import load_corpus
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.study.cell_record import Cell, Output
from steadygaze.study.engine import choose_executor, run_round
from steadygaze.study.executor import Executor, LocalProcesses
from timings.harness import Race, Result, clocked

DATA = "planted-reviews:sizes=[{},100,100]"


def train(texts: int, seed: int, folder: Path, on_progress: OnProgress) -> Output:
    """One cell: a bilstm."""
    examples = load_corpus(DATA.format(texts)).training
    clf = TextClassifier("bilstm", seed=seed, epochs=2, settings={"small_data": False}, device="cpu", verbose=False)
    clf.fit([example.text for example in examples], [example.label for example in examples])
    return Output({"macro-f1": clf.stored_.description.best_epoch["macro-f1"]})


def sleep(duration: float, seed: int, folder: Path, on_progress: OnProgress) -> Output:
    """One cell without computation: what remains is the cost of scheduling."""
    time.sleep(duration)
    return Output()


def warm_up(folder: Path, on_progress: OnProgress) -> Output:
    """Imports everything; takes long enough that every worker gets one."""
    train(120, 0, folder, on_progress)
    return Output()


def cells_seconds(executor: Executor, workers: int, work: Callable[..., Output], count: int, start: object) -> float:
    """Seconds for all cells, after the workers have started."""
    with tempfile.TemporaryDirectory() as root, executor:
        first = [Cell(f"warm-{n}", f"warm {n}", {"warm": n}, start) for n in range(workers)]  # type: ignore[arg-type]
        run_round(first, Path(root), executor)
        cells = [Cell(f"cell-{n}", f"cell {n}", {"seed": n}, partial(work, n)) for n in range(count)]
        wall, _, records = clocked(partial(run_round, cells, Path(root), executor))
        assert all(record.is_finished for record in records.values()), records
        return wall


def run(
    *, rounds: int = 3, cells: int = 6, texts: int = 600, ray: bool = False, sleep_seconds: float = 0.0
) -> list[Result]:
    """`sleep_seconds`: seconds that a cell waits instead of training."""
    warnings.simplefilter("ignore")  # small models learn little
    work = partial(sleep, sleep_seconds) if sleep_seconds else partial(train, texts)
    start = partial(sleep, 0.5, 0) if sleep_seconds else warm_up
    measure, times = partial(cells_seconds, work=work, count=cells, start=start), Race()
    for _ in range(rounds):
        for number in (1, 2):
            times.add(f"{number} workers", measure(LocalProcesses(number), number), 0.0)
        if ray:
            times.add("2 workers of Ray", measure(choose_executor("ray", 2, "cpu", cells), 2), 0.0)
    ratios = [times.ratio("1 workers", "2 workers")]
    ratios += [times.ratio("2 workers", "2 workers of Ray")] if ray else []
    return [*(times.time(name, "s") for name in times.wall), *ratios]
