"""One job of bench/rationales.py: reviews from a cut file, a rationalizer trained on them, and what it selects."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.audit.measures.plausibility_measures import token_f1, token_precision, token_recall
from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.inference import Model, forwards
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rationalizing import RationalizingTechnique
from steadygaze.techniques.technique import Stage
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun
from steadygaze.training.training_state import TrainingState

SPLITS = ("train", "validation", "test")
SHAPE = ("hidden", "score", "dropout")
Measure = Callable[[Model, dict[str, Data], int], dict[str, Any]]
"""Of a trained model, the splits and the seed."""
AGAINST = {"p": token_precision, "r": token_recall, "f1": token_f1}


@dataclass(frozen=True)
class Reviews:
    data: dict[str, Data]
    truth: dict[str, NDArray[np.int64]]
    """By split, which sentence is about the aspect, the first being 0."""
    vectors: Tensor
    roles: Tensor


class Kept(TrainingRun):
    """A run that keeps the last epoch beside the one it chooses."""

    last: dict[str, Tensor]

    def _loop(self, number: int, stage: Stage, state: TrainingState, among_others: bool = False) -> TechniqueLoop:
        loop = super()._loop(number, stage, state, among_others)
        if stage.model == RESULT:
            loop.selected_epoch = partial(self._keep_last, state, loop.selected_epoch)  # which loads the chosen epoch
        return loop

    def _keep_last(self, state: TrainingState, select: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self.last = {name: value.to("cpu", copy=True) for name, value in state.model.state_dict().items()}
        return select()


class Warnless(SilentWatcher):
    def warn(self, message: str | Warning) -> None:
        """That a selection lies on few words is meant."""


def read(file: Path, aspect: str, bias: str | None, most: int | None = None) -> Reviews:
    """The reviews of a cut file, labeled by one aspect; `bias`: with the token that agrees so often before each."""
    with np.load(file, allow_pickle=False) as opened:
        kept = {name: opened[name] for name in opened.files}
    data, truth = {}, {}
    for split in SPLITS:
        starts, ids = kept[f"{split}/starts"], kept[f"{split}/ids"].astype(np.int32)
        if bias is not None:
            ids, starts = led(ids, starts, kept["tokens"][kept[f"{split}/{aspect}/{bias}"]].astype(np.int32))
        rows = slice(0, most if split == "train" else None)
        label = kept[f"{split}/{aspect}/label"].astype(np.int64)[rows]
        truth[split] = kept[f"{split}/{aspect}/truth"].astype(np.int64)[rows]
        data[split] = Data(ragged(ids, starts).select(np.arange(len(label))), None, label)
    vectors = torch.from_numpy(kept["vectors"].astype(np.float32))
    return Reviews(data, truth, vectors, torch.from_numpy(kept["roles"]))


def ragged(ids: NDArray[np.int32], starts: NDArray[np.int64]) -> TokenArray:
    """Texts that begin and end with a special token."""
    words = np.ones(len(ids), np.bool_)
    words[starts[:-1]] = words[starts[1:] - 1] = False
    return TokenArray(ids, words, starts, np.zeros(len(starts) - 1, np.bool_))


def led(ids: NDArray[np.int32], starts: NDArray[np.int64], tokens: NDArray[np.int32]) -> tuple[NDArray, NDArray]:
    """Each text with a token of its own after its start."""
    return np.insert(ids, starts[:-1] + 1, tokens), starts + np.arange(len(starts))


def made(technique: RationalizingTechnique, shape: Architecture, reviews: Reviews) -> Model:
    roles, vectors = reviews.roles, reviews.vectors
    return technique.build(
        lambda: word_encoder("bigru", shape, len(roles), False, vectors), shape, 2, False, lambda: roles
    )


def trained(
    reviews: Reviews, technique: RationalizingTechnique, shape: Architecture, how: Training, seed: int, device: str
):
    """(the run, the model it chose)"""
    with accelerator(device, "no") as accelerate:
        work = TrainingJob(reviews.data["train"], reviews.data["validation"], how, accelerate, Warnless())
        run = Kept(technique, lambda: made(technique, shape, reviews), work, seed)
        return run, run.execute().to(accelerate.device)


def measured(model: Rationalizer, data: Data, truth: NDArray[np.int64]) -> dict[str, float]:
    """Means over texts: P, R and F1 over tokens against the sentence about the aspect; X1, whether the first is it."""
    parts: list[dict[str, Tensor]] = []
    for rows, batch, output in forwards(model, data, 512):
        numbers = model.sentences(batch)
        right = numbers == torch.from_numpy(truth[rows]).to(numbers.device).unsqueeze(-1)
        scores = {name: score(output.selected, right, batch.mask) for name, score in AGAINST.items()}
        first = (output.selected & (numbers == 0)).any(-1)
        parts.append({"accuracy": output.logits.argmax(-1) == batch.gold, **scores, "x1": first})
    return {name: float(torch.cat([part[name].double() for part in parts]).mean()) for name in parts[0]}


def train_and_measure(
    reviews: Reviews,
    named: tuple[str, dict[str, Any]],
    run: dict[str, Any],
    seed: int,
    device: str,
    measure: Measure | None = None,
) -> dict[str, Any]:
    """A record: at the chosen epoch and at the last; `measure` adds to it at the chosen one."""
    name, settings = named
    technique: Any = TECHNIQUES[name](**settings)
    shape = Architecture(dimension=reviews.vectors.shape[1], train_vectors=False, **{key: run[key] for key in SHAPE})
    how = Training(epochs=run["epochs"], batch_size=run["batch_size"], weight_decay=0.0, patience=run["epochs"])
    ran, model = trained(reviews, technique, shape, how, seed, device)
    history = [(epoch["stage"], epoch["accuracy"]) for epoch in ran.history]
    record: dict[str, Any] = {"kept": ran.best_epoch["epoch"], "history": history}
    for when in ("chosen", "last"):
        if when == "last":
            model.load_state_dict(ran.last)
        scored = {split: measured(model, reviews.data[split], reviews.truth[split]) for split in SPLITS[1:]}
        record[when] = scored
        if when == "chosen" and measure is not None:
            record |= measure(model, reviews.data, seed)
    return record
