"""Time of a training step of L2X with and without CUDA graphs, on a GPU that has no other work.

    python bench/selector_step.py [--steps 100] [--rounds 5]

Texts of 40 words and images of 28 × 28 pixels, random; batches and settings as in bench/black_boxes.py.  Blocks of
steps alternate; the ratio is the median over the rounds.  All texts have one length, and captures are not counted.
"""

import argparse
import json
import statistics
import time
from functools import partial
from typing import Any

import numpy as np
import torch

from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.data.batches import Data
from steadygaze.explainers.learned.l2x import L2X, BatchFunction, InputSplit
from steadygaze.explainers.learned.selector_training import SelectorFit, SelectorLoop
from steadygaze.explainers.learned.text_inputs import Table, TextInputs, text_nets
from steadygaze.images.patch_networks import ImageInputs, PatchConfig, image_nets, image_settings
from steadygaze.training.progress import SilentWatcher

COUNT, LENGTH, WORDS, SHAPE = 4000, 40, 2000, (1, 28, 28)


def texts(device: torch.device) -> tuple[Any, Any, InputSplit]:
    ids = np.random.default_rng(0).integers(2, WORDS, COUNT * LENGTH).astype(np.int32)
    tokens = TokenArray(ids, np.ones(len(ids), np.bool_), row_starts(np.full(COUNT, LENGTH)), np.zeros(COUNT, np.bool_))
    config = L2X(k=5, conditioned=True)
    split = TextInputs(Data(tokens), predictions(), Table(torch.arange(WORDS), None).to(device), device)
    return config, partial(text_nets, config, WORDS, 2), split


def images(device: torch.device) -> tuple[Any, Any, InputSplit]:
    config: Any = image_settings(L2X, {"k": 25, "conditioned": True})
    split = ImageInputs(torch.rand(COUNT, *SHAPE, device=device), predictions().to(device), SHAPE[1] * SHAPE[2])
    return config, partial(image_nets, config, SHAPE, 2, PatchConfig(reader=True)), split


def predictions() -> torch.Tensor:
    return torch.rand(COUNT, 2, generator=torch.Generator().manual_seed(0)).softmax(-1)


def make_loop(make: Any, device: torch.device) -> SelectorLoop:
    config, networks, split = make(device)
    fit = SelectorFit(config, networks, split, split, SilentWatcher(), device)
    return SelectorLoop(fit, networks().to(device), 0, fit.stages[0])


def milliseconds(loop: SelectorLoop, steps: int) -> float:
    """Mean time of a step."""
    batches = [rows for rows in loop.batches() if len(rows) == loop.fit.config.batch_size]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for step in range(steps):
        loop.train_batch(batches[step % len(batches)])
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    device = torch.device("cuda")
    for make in (texts, images):
        graphs = make_loop(make, device)
        BatchFunction.gathering_devices = ()
        eager = make_loop(make, device)
        BatchFunction.gathering_devices = ("cuda",)
        pairs = [[milliseconds(loop, options.steps) for loop in (graphs, eager)] for _ in range(options.rounds + 1)]
        graph_times, eager_times = zip(*pairs[1:], strict=True)  # the first round captures the graphs
        ratio = statistics.median(slow / fast for fast, slow in pairs[1:])
        record = {"graph, ms": statistics.median(graph_times), "eager, ms": statistics.median(eager_times)}
        print(
            json.dumps(
                {
                    "inputs": make.__name__,
                    **{name: round(value, 3) for name, value in record.items()},
                    "ratio": round(ratio, 2),
                }
            )
        )


if __name__ == "__main__":
    main()
