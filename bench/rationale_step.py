"""Time of a training step of each rationalizer, relative to RNP, and the size of the largest tensor of a step.

    python bench/rationale_step.py [--cut FILE] [--rounds 20] [--block 4] [--batch-size 200] [--device cpu]

In each round, every row takes a block of steps on the same batches.  The ratio of its time to that of RNP of the same
granularity is the median over the rounds.  Exits with 1 if a ratio exceeds MAX_RATIOS, or if a step makes a tensor of
batch × tokens × hidden × sentences numbers or more.
"""

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rationale_jobs import read_reviews
from steadygaze.core.ragged import segment_count, segment_ids
from steadygaze.data.batches import Data, collate, shuffled
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rationalizing import RationalizingTechnique
from steadygaze.techniques.technique import LossContext
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.teacher_cache import cache_targets
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import TrainingRun
from technique_step import timed_steps

TOKEN: dict[str, Any] = {"granularity": "token"}
ROWS: dict[str, RationalizingTechnique] = {
    "rnp": TECHNIQUES["rnp"](),
    "a2r": TECHNIQUES["a2r"](),
    "a2r released": TECHNIQUES["a2r"](variant="released"),
    "three-player": TECHNIQUES["three-player"](granularity="sentence"),
    "rnp, tokens": TECHNIQUES["rnp"](**TOKEN),
    "rnp straight-through, tokens": TECHNIQUES["rnp"](**TOKEN, estimator="straight-through"),
    "a2r, tokens": TECHNIQUES["a2r"](**TOKEN),
    "a2r released, tokens": TECHNIQUES["a2r"](**TOKEN, variant="released"),
    "three-player, tokens": TECHNIQUES["three-player"](**TOKEN),
    "hardkuma, tokens": TECHNIQUES["hardkuma"](spans=10),
}
MAX_RATIOS = {"a2r": 2.0, "a2r, tokens": 2.0}
WARM_UP_ROUNDS = 2
SHAPE = Architecture(hidden=100, dimension=50, train_vectors=False)


class LargestTensor(TorchDispatchMode):
    """Records the shape of the largest tensor of all operations."""

    shape: tuple[int, ...] = ()
    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.numel() > self.size:
                self.size, self.shape = leaf.numel(), tuple(leaf.shape)
        return result


def load_reviews(file: Path | None) -> tuple[Data, torch.Tensor]:
    """Texts with labels, and the sentence role of each id."""
    if file is not None:
        reviews = read_reviews(file, "palate", None)
        return reviews.data["train"], reviews.roles
    from steadygaze.data.planted.reviews import planted_reviews
    from steadygaze.data.sentence_roles import sentence_roles
    from steadygaze.data.word_tokenizer import build_word_tokenizer

    examples = planted_reviews(aspect="palate", sizes=(3_000, 0, 0))["train"]
    words = build_word_tokenizer([example.text for example in examples])
    label = np.array([example.label == "positive" for example in examples], np.int64)
    texts = words.encode([example.text for example in examples])
    return Data(texts, None, label), torch.from_numpy(sentence_roles(words.vocabulary))


def training_loop(technique: RationalizingTechnique, job: TrainingJob, roles: torch.Tensor) -> TechniqueLoop:
    """A technique in its last stage, ready to train."""

    def make() -> Any:
        return technique.build(
            lambda: word_encoder("bigru", SHAPE, len(roles), pair=False),
            SHAPE,
            classes=2,
            pair=False,
            roles=lambda: roles,
        )

    run = TrainingRun(technique, make, job)
    state = run._begin(technique.stages(0)[-1], (0, 0))
    targets = cache_targets(technique, {}, job.train, job.accelerator.device)
    loop = TechniqueLoop(job, technique.stages(0)[-1], state, LossContext(), targets)
    loop.start_epoch()
    return loop


def measure(options: argparse.Namespace) -> tuple[dict[str, float], dict[str, LargestTensor], int]:
    data, roles = load_reviews(options.cut)
    ratios_by_row: dict[str, list[float]] = {name: [] for name in ROWS}
    with accelerator(options.device, "no") as accelerate:
        job = TrainingJob(data, data, Training(epochs=1000, batch_size=options.batch_size), accelerate, SilentWatcher())
        loops = {name: training_loop(technique, job, roles) for name, technique in ROWS.items()}
        epochs = (shuffled(data, options.batch_size, (0, epoch)) for epoch in range(1000))
        batches = (rows for epoch in epochs for rows in epoch if len(rows) == options.batch_size)
        for i in range(options.rounds + WARM_UP_ROUNDS):
            part = [next(batches) for _ in range(options.block)]
            times = {name: timed_steps(loop, part) for name, loop in loops.items()}
            for name, seconds in times.items():
                ratios_by_row[name].append(seconds / times["rnp, tokens" if "tokens" in name else "rnp"])
            if i == WARM_UP_ROUNDS:
                for name in ("rnp", "rnp, tokens"):
                    print(f"a step of {name}: {1000 * times[name] / options.block:.1f} ms")
        rows = next(batches)
        medians = {name: statistics.median(ratios[WARM_UP_ROUNDS:]) for name, ratios in ratios_by_row.items()}
        return medians, *_largest_tensors(loops, rows, roles)


def _largest_tensors(
    loops: dict[str, TechniqueLoop], rows: Any, roles: torch.Tensor
) -> tuple[dict[str, LargestTensor], int]:
    """The largest tensor of a step of each row, and the number batch × tokens × hidden × sentences."""
    largest = {}
    for name, loop in loops.items():
        with LargestTensor() as largest[name]:
            loop.train_batch(rows)
    batch = collate(next(iter(loops.values())).job.train, rows)
    sentences = int(segment_count(segment_ids(batch.ids, batch.mask, roles)).max())
    return largest, batch.ids.numel() * 2 * SHAPE.hidden * sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, help="prepared reviews of bench/rationales.py; default: generated reviews")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--block", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ratios, largest, limit = measure(options)
    failures = 0
    print(f"batch × tokens × hidden × sentences: {limit:,} numbers")
    for name, ratio in ratios.items():
        bar, tensor = MAX_RATIOS.get(name), largest[name]
        failures += (bar is not None and ratio > bar) + (tensor.size >= limit)
        comment = "" if bar is None else f"   (bar: {bar})"
        print(f"{name:30} {ratio:6.2f}   largest tensor {tensor.size:,} {tensor.shape}{comment}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
