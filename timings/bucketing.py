"""Time of a training epoch with batches of texts of similar length, beside random batches.

The training loop reads blocks of both kinds of batches in turn; each kind has every text once in an epoch.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.data.batches import Data, shuffled
from steadygaze.models.classifier import Architecture
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training import technique_loop
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.training_run import TrainingRun
from timings.harness import Race, Result
from timings.inputs import first, training_data, word_model

MIN_SPEEDUP = 1.3
Rows = NDArray[np.int64]


def random_batches(data: Data, batch_size: int, seed: tuple[int, ...]) -> list[Rows]:
    order = np.random.default_rng(seed).permutation(len(data))
    return np.split(order, range(batch_size, len(order), batch_size))


class BlockTimer(SilentWatcher):
    """Alternates blocks of both kinds of batches, and adds up the seconds of each kind."""

    def __init__(self, block: int) -> None:
        self.block, self.race = block, Race()
        self.kinds: Iterator[str] = iter(())
        self.seconds = {"bucketed": np.zeros(2), "random": np.zeros(2)}

    def batches(self, data: Data, batch_size: int, seed: tuple[int, ...], _: object = None) -> list[Rows]:
        by_kind = {"bucketed": shuffled(data, batch_size, seed), "random": random_batches(data, batch_size, seed)}
        mixed = [
            (kind, rows)
            for start in range(0, len(by_kind["random"]), self.block)
            for kind, batches in by_kind.items()
            for rows in batches[start : start + self.block]
        ]
        self.kinds = iter([kind for kind, _ in mixed])
        self.last_step = np.array([perf_counter(), process_time()])
        return [rows for _, rows in mixed]

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        now = np.array([perf_counter(), process_time()])
        self.seconds[next(self.kinds)] += now - self.last_step
        self.last_step = now

    def epoch(self, record: Mapping[str, Any]) -> None:
        for kind, seconds in self.seconds.items():
            self.race.add(kind, *seconds)
            seconds[:] = 0.0


def run(*, epochs: int = 2, texts: int = 6920, block: int = 5) -> list[Result]:
    """`block`: batches of one kind in a row."""
    data, size = training_data(texts)
    watcher, training = BlockTimer(block), Training(epochs=epochs, patience=epochs)
    make = partial(word_model, size, shape=Architecture())
    with accelerator("cpu", "no") as accelerate, patch.object(technique_loop, "shuffled", watcher.batches):
        job = technique_loop.TrainingJob(data, first(data, 64), training, accelerate, watcher)
        TrainingRun(Vanilla(), make, job).execute()
    race = watcher.race
    return [
        race.time("bucketed", "s"),
        race.time("random", "s"),
        race.ratio("random", "bucketed", at_least=MIN_SPEEDUP),
    ]
