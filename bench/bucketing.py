"""Time of a training epoch with batches of texts of similar length, beside random batches.

    python bench/bucketing.py [--epochs 2] [--texts 6920] [--block 5] [--threads 1]

The training loop reads blocks of both kinds of batches in turn; each kind has every text once in an epoch.  The texts
are SST-2 if $STEADYGAZE_DATA has it, else sentences of planted reviews.  Exits with 1 if bucketing is less than 1.3
times as fast.
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

MIN_SPEEDUP = 1.3
Rows = NDArray[np.int64]


def random_batches(data: Data, batch_size: int, seed: tuple[int, ...]) -> list[Rows]:
    order = np.random.default_rng(seed).permutation(len(data))
    return np.split(order, range(batch_size, len(order), batch_size))


class BlockTimer(SilentWatcher):
    """Alternates blocks of both kinds of batches, and adds up the seconds of each kind."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.kinds: Iterator[str] = iter(())
        self.seconds = {"bucketed": 0.0, "random": 0.0}
        self.epochs: list[dict[str, float]] = []

    def batches(self, data: Data, batch_size: int, seed: tuple[int, ...], _: object = None) -> list[Rows]:
        by_kind = {"bucketed": shuffled(data, batch_size, seed), "random": random_batches(data, batch_size, seed)}
        mixed = [
            (kind, rows)
            for start in range(0, len(by_kind["random"]), self.block)
            for kind, batches in by_kind.items()
            for rows in batches[start : start + self.block]
        ]
        self.kinds = iter([kind for kind, _ in mixed])
        self.last_step = time.perf_counter()
        return [rows for _, rows in mixed]

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        now = time.perf_counter()
        self.seconds[next(self.kinds)] += now - self.last_step
        self.last_step = now

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.epochs.append(self.seconds)
        self.seconds = dict.fromkeys(self.seconds, 0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--texts", type=int, default=6920)
    parser.add_argument("--block", type=int, default=5, help="batches of one kind in a row")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    data, size = corpus()
    count = min(options.texts, len(data))
    data = Data(data.text.select(range(count)), None, data.label[:count])
    few = Data(data.text.select(range(64)), None, data.label[:64])
    shape = Architecture()

    def make() -> Classifier:
        return Classifier(word_encoder("bilstm", shape, size, pair=False), shape, classes=2, pair=False)

    watcher = BlockTimer(options.block)
    technique_loop.shuffled = watcher.batches
    training = Training(epochs=options.epochs, patience=options.epochs)
    with accelerator("cpu", "no") as accelerate:
        TrainingRun(Vanilla(), make, technique_loop.TrainingJob(data, few, training, accelerate, watcher)).execute()

    for kind in ("bucketed", "random"):
        print(
            f"{kind:8}  {statistics.median(epoch[kind] for epoch in watcher.epochs):6.2f} s per epoch of {count} texts"
        )
    gain = statistics.median(epoch["random"] / epoch["bucketed"] for epoch in watcher.epochs)
    print(f"bucketing is {gain:.2f} times as fast   (at least {MIN_SPEEDUP})")
    return 0 if gain >= MIN_SPEEDUP else 1


if __name__ == "__main__":
    sys.exit(main())
