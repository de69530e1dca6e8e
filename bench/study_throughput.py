"""Throughput of the engine: two workers against one, and Ray on this machine against our worker processes.

    python bench/study_throughput.py [--rounds 3] [--cells 6] [--ray] [--sleep SECONDS]

Each cell trains and audits one small model, as `compare` does.  The runs are interleaved: one round runs each executor
once, and the ratio of a round compares runs beside each other.  Workers start once and import torch before the clock.
The ratios need a machine without other load; with --sleep, cells only wait, and the ratio shows the cost of scheduling.
"""

import argparse
import statistics
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

DATA = "planted-reviews:sizes=[{},100,100]"


def train(texts: int, seed: int, folder: Path, on_progress: OnProgress) -> Output:
    """One cell: a bilstm."""
    corpus = load_corpus(DATA.format(texts))
    examples = corpus.training
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


def seconds(executor: Executor, workers: int, work: Callable[..., Output], count: int) -> float:
    """Seconds for all cells, after the workers have started."""
    with tempfile.TemporaryDirectory() as root, executor:
        start = partial(sleep, 0.5, 0) if isinstance(work, partial) and work.func is sleep else warm_up
        first = [Cell(f"warm-{n}", f"warm {n}", {"warm": n}, start) for n in range(workers)]
        run_round(first, Path(root), executor)
        cells = [Cell(f"cell-{n}", f"cell {n}", {"seed": n}, partial(work, n)) for n in range(count)]
        begin = time.perf_counter()
        records = run_round(cells, Path(root), executor)
        assert all(record.is_finished for record in records.values()), records
        return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=6)
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--sleep", type=float, default=0.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # small models learn little
    ratios: dict[str, list[float]] = {"two workers / one": []} | ({"Ray / local": []} if options.ray else {})
    for number in range(options.rounds):
        work = partial(sleep, options.sleep) if options.sleep else partial(train, options.texts)
        run = partial(seconds, work=work, count=options.cells)
        serial_seconds, two = run(LocalProcesses(1), 1), run(LocalProcesses(2), 2)
        ratios["two workers / one"].append(serial_seconds / two)
        line = f"round {number}: one worker {serial_seconds:.1f} s, two workers {two:.1f} s"
        if options.ray:
            ray = run(choose_executor("ray", 2, "cpu", options.cells), 2)
            ratios["Ray / local"].append(two / ray)
            line += f", Ray with two CPUs {ray:.1f} s"
        print(line, flush=True)
    for name, values in ratios.items():
        print(f"{name}: throughput ratio {statistics.median(values):.2f} ({', '.join(f'{v:.2f}' for v in values)})")


if __name__ == "__main__":
    import study_throughput  # workers import the cells from this module, not from the script

    study_throughput.main()
