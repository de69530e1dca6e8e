"""What batches of texts of like length save: the time of an epoch of SST-2, beside batches cut at random.

The real loop trains on both kinds in turn, a block of the one and a block of the other, each kind reading every text
once in an epoch.  SST-2 if $STEADYGAZE_DATA has it, else planted reviews.

    python bench/bucketing.py [--epochs 2] [--texts 6920] [--block 5] [--threads 1]

Exits with 1 where bucketing is less than 1.3 times as fast.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.data.batches import Data, shuffled
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training import technique_loop
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.training_run import TrainingRun
from train_step import corpus

LEAST = 1.3
Rows = NDArray[np.int64]


def at_random(data: Data, batch_size: int, seed: tuple[int, ...]) -> list[Rows]:
    order = np.random.default_rng(seed).permutation(len(data))
    return np.split(order, range(batch_size, len(order), batch_size))


class InTurn(SilentWatcher):
    """Hands out both kinds of batches in turn, and adds up what each took."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.kinds: Iterator[str] = iter(())
        self.taken = {"bucketed": 0.0, "random": 0.0}
        self.epochs: list[dict[str, float]] = []

    def batches(self, data: Data, batch_size: int, seed: tuple[int, ...]) -> list[Rows]:
        both = {"bucketed": shuffled(data, batch_size, seed), "random": at_random(data, batch_size, seed)}
        mixed = [
            (kind, rows)
            for start in range(0, len(both["random"]), self.block)
            for kind, batches in both.items()
            for rows in batches[start : start + self.block]
        ]
        self.kinds = iter([kind for kind, _ in mixed])
        self.since = time.perf_counter()
        return [rows for _, rows in mixed]

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        now = time.perf_counter()
        self.taken[next(self.kinds)] += now - self.since
        self.since = now

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.epochs.append(self.taken)
        self.taken = dict.fromkeys(self.taken, 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--texts", type=int, default=6920)
    parser.add_argument("--block", type=int, default=5, help="batches of one kind in a row")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)

    data, size = corpus()
    count = min(chosen.texts, len(data))
    data = Data(data.text.select(range(count)), None, data.label[:count])
    few = Data(data.text.select(range(64)), None, data.label[:64])
    shape = Architecture()

    def make() -> Classifier:
        return Classifier(word_encoder("bilstm", shape, size, pair=False), shape, classes=2, pair=False)

    watcher = InTurn(chosen.block)
    technique_loop.shuffled = watcher.batches
    training = Training(epochs=chosen.epochs, patience=chosen.epochs)
    with accelerator("cpu", "no") as accelerate:
        TrainingRun(Vanilla(), make, technique_loop.TrainingJob(data, few, training, accelerate, watcher)).execute()

    for kind in ("bucketed", "random"):
        print(
            f"{kind:8}  {statistics.median(epoch[kind] for epoch in watcher.epochs):6.2f} s an epoch of {count} texts"
        )
    gain = statistics.median(epoch["random"] / epoch["bucketed"] for epoch in watcher.epochs)
    print(f"bucketing is {gain:.2f} times as fast   (at least {LEAST})")
    return 0 if gain >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
