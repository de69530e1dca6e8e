"""Teachers of consensus on a CPU: one after another with all threads, against worker processes with one thread each.

    python bench/teacher_workers.py [--teachers 4] [--steps 20] [--rounds 3] [--workers 2]

Each variant is a group of processes.  A process prepares its teachers, waits for the others, and then trains each for
`steps` steps.  Wall time is from the common start to the end of the last process, CPU time is the sum of all.  The
variants run in turn, and a ratio is the median over the rounds, with the smallest and the largest.  `start-up` is the
time before a process is ready: Python, imports and encoded texts.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time


def train(seeds: list[int], steps: int) -> None:
    """Prepare, print a line, wait for a line; train; print end, CPU seconds and digests of the weights."""
    from hashlib import sha256

    from steadygaze.techniques.vanilla import Vanilla
    from steadygaze.training.device import accelerator
    from steadygaze.training.optimizers import Training
    from steadygaze.training.progress import SilentWatcher
    from steadygaze.training.technique_loop import TrainingJob
    from throughput import loop_of
    from train_step import corpus

    data, size = corpus()
    with accelerator("cpu", "no") as accelerate:
        job = TrainingJob(data, data, Training(epochs=100), accelerate, SilentWatcher())
        loops = [loop_of(Vanilla(), job, size, seed, "bilstm") for seed in seeds]
        for loop in loops:
            loop.start_epoch()
            loop.train_batch(loop.batches()[0])
        print("ready", flush=True)
        sys.stdin.readline()
        cpu = time.process_time()
        for loop in loops:
            for rows in loop.batches()[1 : 1 + steps]:
                loop.train_batch(rows)
        weights = [b"".join(p.detach().numpy().tobytes() for p in loop.state.model.parameters()) for loop in loops]
        digests = [sha256(values).hexdigest()[:16] for values in weights]
        print(time.time(), time.process_time() - cpu, *digests, flush=True)


def measure(groups: list[list[int]], threads: int, steps: int) -> tuple[float, float, float, list[str]]:
    """Wall seconds, CPU seconds, seconds of start-up, and the digests of the teachers in order."""
    command = [sys.executable, __file__, "--steps", str(steps), "--train"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "GOMP_SPINCOUNT": "10000"}
    begin = time.time()
    processes = [
        subprocess.Popen(
            [*command, *map(str, seeds)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for seeds in groups
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    start = time.time()
    ends, cpu, digests = [], 0.0, {}
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process, seeds in zip(processes, groups, strict=True):
        end, seconds, *own = process.communicate()[0].split()
        ends.append(float(end))
        cpu += float(seconds)
        digests |= zip(seeds, own, strict=True)
    return max(ends) - start, cpu, start - begin, [digests[seed] for seed in sorted(digests)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--teachers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--train", type=int, nargs="+")
    arguments = parser.parse_args()
    if arguments.train is not None:
        train(arguments.train, arguments.steps)
        return
    seeds = list(range(arguments.teachers))
    shares = [seeds[i :: arguments.workers] for i in range(arguments.workers)]
    variants = {
        f"one process, {arguments.threads} threads": ([seeds], arguments.threads),
        f"{arguments.workers} processes, 1 thread": (shares, 1),
    }
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in variants}
    weights = set()
    for _ in range(arguments.rounds):
        for name, (groups, threads) in variants.items():
            wall, cpu, start_up, digests = measure(groups, threads, arguments.steps)
            weights.add(tuple(digests))
            times[name].append((wall, cpu, start_up))
            print(f"{name:28} wall {wall:6.1f} s, CPU {cpu:6.1f} s, start-up {start_up:5.1f} s", flush=True)
    for number, kind in enumerate(("wall", "CPU")):
        ratios = sorted(a[number] / b[number] for a, b in zip(*times.values(), strict=True))
        print(f"{kind}: one process / workers {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    print("weights of all variants are equal" if len(weights) == 1 else "weights differ")


if __name__ == "__main__":
    main()
