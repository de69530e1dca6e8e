"""Teachers of consensus on a CPU: one after another with all threads, against worker processes with one thread each.

Each variant is a group of processes.  A process prepares its teachers, waits for the others, and then trains each for
`steps` steps.  Wall time is from the common start to the end of the last process, CPU time is the sum of all.  The time
before a process is ready, imports and encoded texts included, is `start-up`.
"""

import multiprocessing
import os
import time
from functools import partial
from hashlib import sha256
from typing import Any

from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from timings.harness import Race, Result, environment, median
from timings.inputs import training_data, training_loop


def train(seeds: list[int], steps: int, barrier: Any, results: Any) -> None:
    """Prepare, wait for the others, train; the results: end, CPU seconds, and a digest of the weights of each seed."""
    data, size = training_data()
    with accelerator("cpu", "no") as accelerate:
        job = TrainingJob(data, data, Training(epochs=100), accelerate, SilentWatcher())
        loops = [training_loop(Vanilla(), job, size, seed) for seed in seeds]
        for loop in loops:
            loop.start_epoch()
            loop.train_batch(loop.batches()[0])
        barrier.wait()
        cpu = time.process_time()
        for loop in loops:
            for rows in loop.batches()[1 : 1 + steps]:
                loop.train_batch(rows)
        end, cpu = time.time(), time.process_time() - cpu
        weights = [b"".join(p.detach().numpy().tobytes() for p in loop.state.model.parameters()) for loop in loops]
        results.put((end, cpu, dict(zip(seeds, [sha256(values).hexdigest() for values in weights], strict=True))))


def measure(groups: list[list[int]], threads: int, steps: int) -> tuple[float, float, float, dict[int, str]]:
    """Wall seconds, CPU seconds, seconds of start-up, and the digests of the teachers."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(len(groups) + 1), context.Queue()
    with environment(OMP_NUM_THREADS=str(threads), GOMP_SPINCOUNT="10000"):
        begin = time.time()
        processes = [context.Process(target=train, args=(seeds, steps, barrier, results)) for seeds in groups]
        for process in processes:
            process.start()
        barrier.wait()
        start = time.time()
        ends, cpu, digests = zip(*(results.get() for _ in groups), strict=True)
        for process in processes:
            process.join()
    return max(ends) - start, sum(cpu), start - begin, {seed: value for part in digests for seed, value in part.items()}


def run(*, teachers: int = 4, steps: int = 20, rounds: int = 3, workers: int = 2) -> list[Result]:
    """`workers`: processes with one thread each."""
    seeds, threads = list(range(teachers)), os.cpu_count() or 1
    variants = {
        f"one process, {threads} threads": partial(measure, [seeds], threads, steps),
        f"{workers} processes, 1 thread": partial(measure, [seeds[i::workers] for i in range(workers)], 1, steps),
    }
    times, start_up, weights = Race(), dict[str, list[float]](), []
    for _ in range(rounds):
        for name, work in variants.items():
            wall, cpu, before, digests = work()
            times.add(name, wall, cpu)
            start_up.setdefault(name, []).append(before)
            weights.append(digests)
    return [
        *(times.time(name, "s") for name in variants),
        *(median(f"{name}, start-up", values, "s") for name, values in start_up.items()),
        times.ratio(*variants),
        times.ratio(*variants, clock="cpu"),
        Result("runs with other weights", sum(digests != weights[0] for digests in weights), at_most=0),
    ]
