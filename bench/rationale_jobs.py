"""One job of bench/rationales.py: train a rationalizer on prepared reviews, and measure its selection."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.ragged import TokenArray
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.inference import Model, forwards
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.properties.measures.plausibility_measures import token_f1, token_precision, token_recall
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.rationalizing import RationalizingTechnique
from steadygaze.techniques.technique import Stage
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun
from steadygaze.training.training_state import TrainingState
from studies.jobs import load_arrays

SPLITS = ("train", "validation", "test")
ARCHITECTURE_SETTINGS = ("hidden", "score", "dropout")
Measure = Callable[[Model, dict[str, Data], int], dict[str, Any]]
"""Model, splits, seed -> fields of the record."""
TOKEN_SCORES = {"p": token_precision, "r": token_recall, "f1": token_f1}


@dataclass(frozen=True)
class Reviews:
    data: dict[str, Data]
    truth: dict[str, NDArray[np.int64]]
    """Split -> number of the sentence about the aspect, from 0."""
    vectors: Tensor
    roles: Tensor


class LastEpochRun(TrainingRun):
    """A run that returns the selected epoch, and also keeps the weights of the last one."""

    last_weights: dict[str, Tensor]

    def _loop(self, number: int, stage: Stage, state: TrainingState, among_others: bool = False) -> TechniqueLoop:
        loop = super()._loop(number, stage, state, among_others)
        if stage.model == RESULT:
            loop.selected_epoch = partial(self._keep_last, state, loop.selected_epoch)  # which loads the selected epoch
        return loop

    def _keep_last(self, state: TrainingState, select: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        self.last_weights = {name: value.to("cpu", copy=True) for name, value in state.model.state_dict().items()}
        return select()


class NoWarnings(SilentWatcher):
    def warn(self, message: str | Warning) -> None:
        """Print no warning of a selection of few words, which is intended."""


def read_reviews(file: Path, aspect: str, bias: str | None, max_texts: int | None = None) -> Reviews:
    """The reviews of a prepared file with labels of one aspect; `bias`: the setting whose token precedes each text."""
    arrays = load_arrays(file)
    data, truth = {}, {}
    for split in SPLITS:
        starts, ids = arrays[f"{split}/starts"], arrays[f"{split}/ids"].astype(np.int32)
        if bias is not None:
            ids, starts = insert_first(
                ids, starts, arrays["tokens"][arrays[f"{split}/{aspect}/{bias}"]].astype(np.int32)
            )
        rows = slice(0, max_texts if split == "train" else None)
        label = arrays[f"{split}/{aspect}/label"].astype(np.int64)[rows]
        truth[split] = arrays[f"{split}/{aspect}/truth"].astype(np.int64)[rows]
        data[split] = Data(token_array(ids, starts).select(np.arange(len(label))), None, label)
    vectors = torch.from_numpy(arrays["vectors"].astype(np.float32))
    return Reviews(data, truth, vectors, torch.from_numpy(arrays["roles"]))


def token_array(ids: NDArray[np.int32], starts: NDArray[np.int64]) -> TokenArray:
    """Texts that begin and end with a special token."""
    words = np.ones(len(ids), np.bool_)
    words[starts[:-1]] = words[starts[1:] - 1] = False
    return TokenArray(ids, words, starts, np.zeros(len(starts) - 1, np.bool_))


def insert_first(
    ids: NDArray[np.int32], starts: NDArray[np.int64], tokens: NDArray[np.int32]
) -> tuple[NDArray, NDArray]:
    """Insert one token into each text, after its special token."""
    return np.insert(ids, starts[:-1] + 1, tokens), starts + np.arange(len(starts))


def build_model(technique: RationalizingTechnique, shape: Architecture, reviews: Reviews) -> Model:
    roles, vectors = reviews.roles, reviews.vectors
    return technique.build(
        lambda: word_encoder("bigru", shape, len(roles), False, vectors), shape, 2, False, lambda: roles
    )


def train(
    reviews: Reviews, technique: RationalizingTechnique, shape: Architecture, training: Training, seed: int, device: str
):
    """The run, and the model of the selected epoch."""
    with accelerator(device, "no") as accelerate:
        job = TrainingJob(reviews.data["train"], reviews.data["validation"], training, accelerate, NoWarnings())
        run = LastEpochRun(technique, lambda: build_model(technique, shape, reviews), job, seed)
        return run, run.execute().to(accelerate.device)


def measure_selection(model: Rationalizer, data: Data, truth: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy; P, R and F1 over tokens against the sentence about the aspect; X1: the first sentence is selected."""
    parts: list[dict[str, Tensor]] = []
    for rows, batch, output in forwards(model, data, 512):
        numbers = model.sentences(batch)
        evidence = numbers == torch.from_numpy(truth[rows]).to(numbers.device).unsqueeze(-1)
        scores = {name: score(output.selected, evidence, batch.mask) for name, score in TOKEN_SCORES.items()}
        first = (output.selected & (numbers == 0)).any(-1)
        parts.append({"accuracy": output.logits.argmax(-1) == batch.gold, **scores, "x1": first})
    return {name: float(torch.cat([part[name].double() for part in parts]).mean()) for name in parts[0]}


def train_and_measure(
    reviews: Reviews,
    technique_settings: tuple[str, dict[str, Any]],
    training: dict[str, Any],
    seed: int,
    device: str,
    measure: Measure | None = None,
) -> dict[str, Any]:
    """The record of a run at the selected and at the last epoch; `measure` adds fields at the selected one."""
    name, settings = technique_settings
    technique: Any = TECHNIQUES[name](**settings)
    shape = Architecture(
        dimension=reviews.vectors.shape[1], train_vectors=False, **{key: training[key] for key in ARCHITECTURE_SETTINGS}
    )
    epochs = training["epochs"]
    options = Training(epochs=epochs, batch_size=training["batch_size"], weight_decay=0.0, patience=epochs)
    run, model = train(reviews, technique, shape, options, seed, device)
    history = [(epoch["stage"], epoch["accuracy"]) for epoch in run.history]
    record: dict[str, Any] = {"kept": run.best_epoch["epoch"], "history": history}
    for when in ("chosen", "last"):
        if when == "last":
            model.load_state_dict(run.last_weights)
        record[when] = {
            split: measure_selection(model, reviews.data[split], reviews.truth[split]) for split in SPLITS[1:]
        }
        if when == "chosen" and measure is not None:
            record |= measure(model, reviews.data, seed)
    return record
