"""Time of training on a CPU with and without competing processes, for waiting threads that spin or sleep.

Each variant is a process of its own that trains a bilstm on the same batches.  Every core gets a number of competing
processes.  Start it on an idle machine.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from timings.harness import Race, Result, clocked, environment, in_child, median
from timings.inputs import training_data, training_loop

VARIANTS = {
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "2 threads, as commands set it": {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "10000"},
    "2 threads, passive": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"},
    "1 thread": {"OMP_NUM_THREADS": "1"},
}


def train(steps: int) -> tuple[float, float]:
    """Wall and CPU seconds."""
    data, size = training_data()
    with accelerator("cpu", "no") as accelerate:
        job = TrainingJob(data, data, Training(epochs=100), accelerate, SilentWatcher())
        loop = training_loop(Vanilla(), job, size)
        loop.start_epoch()
        batches = loop.batches()

        def work(first: int, last: int) -> None:
            for rows in batches[first:last]:
                loop.train_batch(rows)

        work(0, 3)
        return clocked(lambda: work(3, 3 + steps))[:2]


@contextmanager
def competitors(number: int) -> Iterator[None]:
    """Busy processes, on each core."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(number * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(*, busy: str = "0,1,2", rounds: int = 3, steps: int = 20) -> list[Result]:
    """`busy`: numbers of competing processes per core; the first is the base of the ratios."""
    times: dict[int, Race] = {}
    for number in map(int, busy.split(",")):
        times[number] = Race()
        with competitors(number):
            for _ in range(rounds):
                for name, variables in VARIANTS.items():
                    with environment(**variables):
                        times[number].add(name, *in_child(train, steps))
    results, idle = [], next(iter(times.values()))
    for number, race in times.items():
        for name in VARIANTS:
            title = f"{name}, {number} per core"
            results.append(median(title, [1000 * seconds / steps for seconds in race.wall[name]], "ms"))
            results.append(median(f"{title}, CPU time", [1000 * seconds / steps for seconds in race.cpu[name]], "ms"))
            ratios = [busy / alone for busy, alone in zip(race.wall[name], idle.wall[name], strict=True)]
            results.append(median(f"{title}, × first", ratios, "×"))
    return results
