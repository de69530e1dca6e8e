"""Time of a training step of each technique, relative to vanilla.

In each round, every technique takes a block of steps on the same batches.  References, teachers and cached targets
exist before: the ratios are those of the student's own steps.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from steadygaze.data.batches import shuffled
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from timings.harness import Result, race
from timings.inputs import TECHNIQUE_SETTINGS, synonyms, training_data, training_loop

MAX_RATIOS = {  # on a CPU, on a GPU
    "attention-rp": (1.10, 1.3),
    "attention-at": (1.10, 1.3),
    "attention-iat": (1.10, 1.3),
    "seat joint": (1.20, 1.4),
    "seat paper": (0.35, 0.8),
    "word-at": (2.2, 2.8),
    "word-iat": (2.4, 2.8),
    "anchored": (3.2, 5.0),
}
WARM_UP_ROUNDS = 2  # rounds before caches and memory pools are full


def blocks(loop: TechniqueLoop, batches: Iterator[Any], block: int) -> Callable[[], None]:
    """A function that takes the next steps."""
    loop.start_epoch()

    def steps() -> None:
        for rows in islice(batches, block):
            loop.train_batch(rows)

    return steps


def run(*, rounds: int = 30, block: int = 4, device: str = "cpu") -> list[Result]:
    """`block`: steps of one technique in a row."""
    data, size = training_data()

    def batches() -> Iterator[Any]:
        return (rows for epoch in range(10_000) for rows in shuffled(data, 32, (0, epoch)) if len(rows) == 32)

    with accelerator(device, "no") as accelerate:
        table = synonyms(size).to(accelerate.device)
        job = TrainingJob(data, data, Training(epochs=1000), accelerate, SilentWatcher(), table)
        make = partial(training_loop, job=job, size=size)
        variants = {name: blocks(make(chosen), batches(), block) for name, chosen in TECHNIQUE_SETTINGS.items()}
        times = race(variants, rounds, WARM_UP_ROUNDS)
    limits = {name: bars[device != "cpu"] for name, bars in MAX_RATIOS.items()}
    ratios = [times.ratio(name, "vanilla", at_most=limits.get(name)) for name in variants if name != "vanilla"]
    return [times.time("vanilla", per=block), *ratios]
