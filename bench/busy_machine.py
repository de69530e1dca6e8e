"""Time of training on a CPU with and without competing processes, for waiting threads that spin or sleep.

Each variant is a process of its own that trains a bilstm on the same batches.  Every core gets a number of competing
processes.  The variants run in turn; the ratio is the median over the rounds.  Start it on an idle machine.

    python bench/busy_machine.py [--competitors 0,1,2] [--rounds 3] [--steps 20]
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

VARIANTS = {
    "2 threads": {"OMP_NUM_THREADS": "2"},
    "2 threads, as commands set it": {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "10000"},
    "2 threads, passive": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"},
    "1 thread": {"OMP_NUM_THREADS": "1"},
}


def train(steps: int) -> None:
    """Print wall and CPU milliseconds per step."""
    from steadygaze.techniques.vanilla import Vanilla
    from steadygaze.training.device import accelerator
    from steadygaze.training.optimizers import Training
    from steadygaze.training.progress import SilentWatcher
    from steadygaze.training.technique_loop import TrainingJob
    from technique_step import training_loop
    from train_step import corpus

    data, size = corpus()
    with accelerator("cpu", "no") as accelerate:
        loop = training_loop(
            Vanilla(), TrainingJob(data, data, Training(epochs=100), accelerate, SilentWatcher()), size
        )
        batches = loop.batches()
        for rows in batches[:3]:
            loop.train_batch(rows)
        wall, cpu = time.perf_counter(), time.process_time()
        for rows in batches[3 : 3 + steps]:
            loop.train_batch(rows)
        print(1000 * (time.perf_counter() - wall) / steps, 1000 * (time.process_time() - cpu) / steps)


@contextmanager
def competitors(number: int) -> Iterator[None]:
    """Busy processes, on each core."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number * os.cpu_count())]  # type: ignore[operator]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(variant: dict[str, str], steps: int) -> tuple[float, float]:
    command = [sys.executable, __file__, "--train", str(steps)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    wall, cpu = subprocess.check_output(command, env=environment | variant, text=True).split()[-2:]
    return float(wall), float(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--competitors", default="0,1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--train", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train)
        return
    idle: dict[str, float] = {}
    print("competitors per core                     wall ms   CPU ms   × idle")
    for number in map(int, arguments.competitors.split(",")):
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
        with competitors(number):
            for _ in range(arguments.rounds):
                for name, variant in VARIANTS.items():
                    times[name].append(measure(variant, arguments.steps))
        for name, values in times.items():
            wall, cpu = (statistics.median(column) for column in zip(*values, strict=True))
            idle.setdefault(name, wall)
            print(f"{number}   {name:32} {wall:9.1f} {cpu:8.1f} {wall / idle[name]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
