"""Time of a training step of L2X with and without CUDA graphs, on a GPU that has no other work.

Texts of 40 words and images of 28 × 28 pixels, random; batches and settings as in the study of black boxes.  All texts
have one length, and captures are not counted.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.data.batches import Data
from steadygaze.explainers.learned.l2x import L2X, BatchFunction, InputSplit
from steadygaze.explainers.learned.selector_training import SelectorFit, SelectorLoop
from steadygaze.explainers.learned.text_inputs import Table, TextInputs, text_nets
from steadygaze.images.patch_networks import ImageInputs, PatchConfig, image_nets, image_settings
from steadygaze.training.progress import SilentWatcher
from timings.harness import Result, race

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


def steps_of(loop: SelectorLoop, steps: int) -> Callable[[], None]:
    batches = [rows for rows in loop.batches() if len(rows) == loop.fit.config.batch_size]

    def work() -> None:
        for step in range(steps):
            loop.train_batch(batches[step % len(batches)])

    return work


def run(*, steps: int = 100, rounds: int = 5) -> list[Result]:
    """The first round, which captures the graphs, is not counted."""
    device, results = torch.device("cuda"), []
    for make in (texts, images):
        graphs = make_loop(make, device)
        with patch.object(BatchFunction, "gathering_devices", ()):
            eager = make_loop(make, device)
        variants = {f"{make.__name__}, eager": eager, f"{make.__name__}, graph": graphs}
        times = race({name: steps_of(loop, steps) for name, loop in variants.items()}, rounds)
        results += [*(times.time(name, per=steps) for name in variants), times.ratio(*variants)]
    return results
