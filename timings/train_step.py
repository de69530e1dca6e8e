"""Time of a training step relative to a bare PyTorch loop with the same model, batches and optimizer.

Ours is the complete training run, with padding of batches, accelerate, loss terms and a watcher.  The bare loop has
prepared batches.  Blocks of steps alternate on the same batches.  The weights of both models must be bitwise equal.
"""

from collections.abc import Mapping
from functools import partial
from time import perf_counter, process_time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.core.random_key import derive_seed
from steadygaze.core.types import Batch
from steadygaze.data.batches import collate, shuffled
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun
from timings.harness import Race, Result, clocked
from timings.inputs import first, training_data, word_model

MAX_RATIO = 1.10
WARM_UP_BLOCKS = 2  # blocks before caches and memory pools are full


class BareLoop:
    """A training loop of plain PyTorch."""

    def __init__(self, model: Classifier, training: Training) -> None:
        self.model, self.training = model.train(), training
        decayed = [p for name, p in model.named_parameters() if name.startswith(("encoder.text.", "decoder."))]
        plain = [p for name, p in model.named_parameters() if not name.startswith(("encoder.text.", "decoder."))]
        groups: list[dict[str, Any]] = [{"params": plain}, {"params": decayed, "weight_decay": training.weight_decay}]
        self.adam = torch.optim.Adam(groups, lr=training.learning_rate, amsgrad=True, fused=True)

    def steps(self, batches: list[Batch]) -> None:
        for batch in batches:
            loss = cross_entropy(self.model(batch).logits, batch.gold)
            self.adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
            self.adam.step()


class BlockTimer(SilentWatcher):
    """Runs and times the bare loop on the same batches after each block of our steps."""

    def __init__(self, bare: BareLoop, batches: list[Batch], block: int) -> None:
        self.bare, self.batches, self.block = bare, batches, block
        self.step_count, self.race = 0, Race()

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.started = perf_counter(), process_time()

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        self.step_count += 1
        if self.step_count % self.block == 0:
            own = perf_counter() - self.started[0], process_time() - self.started[1]
            wall, cpu, _ = clocked(
                partial(self.bare.steps, self.batches[self.step_count - self.block : self.step_count])
            )
            if self.step_count > WARM_UP_BLOCKS * self.block:
                self.race.add("ours", *own)
                self.race.add("bare", wall, cpu)
            self.started = perf_counter(), process_time()


def run(*, steps: int = 200, block: int = 4, encoder: str = "bilstm", hidden: int = 128) -> list[Result]:
    """`block`: steps of one kind in a row."""
    training = Training(epochs=1)
    data, size = training_data(steps * training.batch_size)
    make = partial(word_model, size, encoder, Architecture(hidden=hidden))
    torch.manual_seed(derive_seed(0, 0))  # as a run with seed 0 begins
    bare = BareLoop(make(), training)
    watcher = BlockTimer(bare, [collate(data, rows) for rows in shuffled(data, training.batch_size, (0, 0, 0))], block)
    with accelerator("cpu", "no") as accelerate:
        job = TrainingJob(data, first(data, 64), training, accelerate, watcher)
        model = TrainingRun(Vanilla(), make, job).execute()
    race, pairs = watcher.race, zip(model.parameters(), bare.model.parameters(), strict=True)
    different = sum(not torch.equal(a, b) for a, b in pairs)
    return [
        *(race.time(name, per=block) for name in ("ours", "bare")),
        race.ratio("ours", "bare", at_most=MAX_RATIO),
        race.ratio("ours", "bare", clock="cpu"),
        Result(f"parameters that differ after {watcher.step_count} steps", different, at_most=0),
    ]
