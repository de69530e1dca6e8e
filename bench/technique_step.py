"""Time of a training step of each technique, relative to vanilla.

    python bench/technique_step.py [--rounds 30] [--block 4] [--device cpu] [--threads 2]

In each round, every technique takes a block of steps on the same batches.  The ratio to vanilla is the median over the
rounds.  References, teachers and cached targets exist before: the ratios are those of the student's own steps.  Exits
with 1 if a ratio exceeds MAX_RATIOS.
"""

import argparse
import statistics
import sys
import time

import torch

from steadygaze.data.batches import Data, shuffled
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import LossContext, Technique
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.teacher_cache import cache_targets
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun, freeze
from train_step import corpus

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
SETTINGS: dict[str, Technique] = {
    "vanilla": TECHNIQUES["vanilla"](),
    **{name: TECHNIQUES[name]() for name in MAX_RATIOS if name in TECHNIQUES},
    "seat joint": TECHNIQUES["seat"](variant="joint"),
    "seat paper": TECHNIQUES["seat"](variant="paper"),
    "seat released": TECHNIQUES["seat"](variant="released"),
    "consensus": TECHNIQUES["consensus"](),
}
WARM_UP_ROUNDS = 2  # rounds before caches and memory pools are full


def timed_steps(loop: TechniqueLoop, batches: list) -> float:
    """Seconds of the steps on these batches."""
    start = time.perf_counter()
    for rows in batches:
        loop.train_batch(rows)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def training_loop(technique: Technique, job: TrainingJob, size: int) -> TechniqueLoop:
    """A technique in its last stage, ready to train."""
    shape = Architecture(hidden=128, dimension=100)

    def make() -> Classifier:
        return Classifier(word_encoder("bilstm", shape, size, pair=False), shape, classes=2, pair=False)

    run = TrainingRun(technique, make, job)
    names = {stage.model for stage in technique.stages(0)} - {RESULT}
    run.models = {name: freeze(make().to(job.accelerator.device)) for name in sorted(names)}
    state = run._begin(technique.stages(0)[-1], (0, 0))
    context = LossContext(run.models, dict(state.modules.items()), synonyms=job.synonyms)
    targets = cache_targets(technique, run.models, job.train, job.accelerator.device)
    loop = TechniqueLoop(job, technique.stages(0)[-1], state, context, targets)
    loop.start_epoch()
    return loop


def synonyms(size: int) -> Synonyms:
    """A table in which two of three words have eight synonyms.  Time does not depend on the words."""
    ids = torch.arange(size)
    return Synonyms((ids.unsqueeze(-1) + torch.arange(1, 9)) % size, (ids % 3 > 0) * 8, torch.zeros(size).bool())


def measure(data: Data, size: int, device: str, rounds: int, block: int) -> dict[str, float]:
    ratios_by_name: dict[str, list[float]] = {name: [] for name in SETTINGS}
    with accelerator(device, "no") as accelerate:
        job = TrainingJob(
            data, data, Training(epochs=1000), accelerate, SilentWatcher(), synonyms(size).to(accelerate.device)
        )
        loops = {name: training_loop(technique, job, size) for name, technique in SETTINGS.items()}
        batches = [rows for epoch in range(10) for rows in shuffled(data, 32, (0, epoch)) if len(rows) == 32]
        for i in range(rounds + WARM_UP_ROUNDS):
            part = batches[i * block : (i + 1) * block]
            times = {name: timed_steps(loop, part) for name, loop in loops.items()}
            for name, seconds in times.items():
                ratios_by_name[name].append(seconds / times["vanilla"])
            if i == WARM_UP_ROUNDS:
                print(f"a step of vanilla: {1000 * times['vanilla'] / block:.1f} ms")
    return {name: statistics.median(ratios[WARM_UP_ROUNDS:]) for name, ratios in ratios_by_name.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--block", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data, size = corpus()
    ratios = measure(data, size, arguments.device, arguments.rounds, arguments.block)
    failures = 0
    for name, ratio in ratios.items():
        bar = MAX_RATIOS[name][arguments.device != "cpu"] if name in MAX_RATIOS else None
        failures += bar is not None and ratio > bar
        print(f"{name:14} {ratio:6.2f}" + ("" if bar is None else f"   (bar: {bar})"))
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
