"""Time of a training step of each rationalizer, relative to RNP, and the size of the largest tensor of a step.

In each round, every row takes a block of steps on the same batches.  No step may make a tensor of batch × tokens ×
hidden × sentences numbers or more.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from steadygaze.core.ragged import segment_count, segment_ids
from steadygaze.data.batches import Data, collate, shuffled
from steadygaze.data.planted.reviews import planted_reviews
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rationalizing import RationalizingTechnique
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import TrainingRun
from timings.harness import Result, race
from timings.technique_step import WARM_UP_ROUNDS, blocks

ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnp": ("rnp", {}),
    "a2r": ("a2r", {}),
    "a2r released": ("a2r", {"variant": "released"}),
    "three-player": ("three-player", {"granularity": "sentence"}),
    "rnp, tokens": ("rnp", {"granularity": "token"}),
    "rnp straight-through, tokens": ("rnp", {"granularity": "token", "estimator": "straight-through"}),
    "a2r, tokens": ("a2r", {"granularity": "token"}),
    "a2r released, tokens": ("a2r", {"granularity": "token", "variant": "released"}),
    "three-player, tokens": ("three-player", {"granularity": "token"}),
    "hardkuma, tokens": ("hardkuma", {"spans": 10}),
}
MAX_RATIOS = {"a2r": 2.0, "a2r, tokens": 2.0}
SHAPE = Architecture(hidden=100, dimension=50, train_vectors=False)


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The number of elements of the largest tensor of all operations."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        sizes = (leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
        self.size = max(self.size, *sizes, 0)
        return result


def reviews() -> tuple[Data, torch.Tensor]:
    """Texts with labels, and the sentence role of each id."""
    examples = planted_reviews(aspect="palate", sizes=(3_000, 0, 0))["train"]
    words = build_word_tokenizer([example.text for example in examples])
    label = np.array([example.label == "positive" for example in examples], np.int64)
    texts = words.encode([example.text for example in examples])
    return Data(texts, None, label), torch.from_numpy(sentence_roles(words.vocabulary))


def training_loop(row: str, job: TrainingJob, roles: torch.Tensor) -> TechniqueLoop:
    """A technique in its last stage, ready to train."""
    name, settings = ROWS[row]
    technique = TECHNIQUES[name](**settings)
    assert isinstance(technique, RationalizingTechnique)

    def make() -> Any:
        encoder = lambda: word_encoder("bigru", SHAPE, len(roles), pair=False)  # noqa: E731
        return technique.build(encoder, SHAPE, classes=2, pair=False, roles=lambda: roles)

    training = TrainingRun(technique, make, job)
    stage = technique.stages(0)[-1]
    return training._loop(0, stage, training._begin(stage, (0, 0)))


def run(*, rounds: int = 20, block: int = 4, batch_size: int = 200, device: str = "cpu") -> list[Result]:
    """`block`: steps of one row in a row."""
    data, roles = reviews()

    def batches() -> Iterator[Any]:
        epochs = (shuffled(data, batch_size, (0, epoch)) for epoch in range(10_000))
        return (rows for epoch in epochs for rows in epoch if len(rows) == batch_size)

    with accelerator(device, "no") as accelerate:
        job = TrainingJob(data, data, Training(epochs=1000, batch_size=batch_size), accelerate, SilentWatcher())
        loops = {name: training_loop(name, job, roles) for name in ROWS}
        times = race({name: blocks(loop, batches(), block) for name, loop in loops.items()}, rounds, WARM_UP_ROUNDS)
        rows = next(batches())
        batch = collate(data, rows)
        sentences = int(segment_count(segment_ids(batch.ids, batch.mask, roles)).max())
        limit = batch.ids.numel() * 2 * SHAPE.hidden * sentences
        results = []
        for name, loop in loops.items():
            base = "rnp, tokens" if "tokens" in name else "rnp"
            with LargestTensor() as largest:  # type: ignore[no-untyped-call]
                loop.train_batch(rows)
            results += [] if name == base else [times.ratio(name, base, at_most=MAX_RATIOS.get(name))]
            results.append(Result(f"{name}: largest tensor", largest.size, "numbers", at_most=limit - 1))
    return [times.time(name, per=block) for name in ("rnp", "rnp, tokens")] + results
