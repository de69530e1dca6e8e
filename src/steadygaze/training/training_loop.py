"""The training loop: what happens in an epoch, readable on one screen.

How long a stage lasts: as `settings` says, more epochs where texts are few, and fewer where nothing gets better.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.core.errors import UserError
from steadygaze.core.maths import segments
from steadygaze.core.maths.collapse import Collapse, detect_collapse, detect_sentence_collapse, selected_share
from steadygaze.core.maths.segments import RaggedWeights
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import Data, collate, shuffled
from steadygaze.models import inference
from steadygaze.models.model_protocol import Model
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.techniques.perturbations.word_substitution import Synonyms
from steadygaze.techniques.technique import LossContext, Player, Stage, Technique
from steadygaze.training import optimizers
from steadygaze.training.optimizers import EPOCHS, Training
from steadygaze.training.progress import Watcher
from steadygaze.training.teacher_cache import TargetCache
from steadygaze.training.training_state import TrainingState

MOST, WIDEST = 2048, 1024
"""Validation texts, and tokens of each, by which it is judged whether attention still says anything."""


@dataclass(frozen=True)
class TrainingJob:
    """What stays the same through all stages of a run."""

    train: Data
    validation: Data
    training: Training
    accelerator: Accelerator
    watcher: Watcher
    synonyms: Synonyms | None = None


class Objective(nn.Module):
    """A technique's loss as a module, so that mixed precision and several devices can wrap it."""

    def __init__(self, model: nn.Module, modules: nn.Module) -> None:
        super().__init__()
        self.model, self.auxiliary = model, modules

    def forward(self, technique: Technique, batch: Batch, given: LossContext) -> Terms:
        return technique.loss(self.model, batch, given)


def train_epoch(
    job: TrainingJob, stage: str, state: TrainingState, given: LossContext, memory: TargetCache
) -> dict[str, float]:
    """One pass over the training texts.  Returns the mean of each term, all texts alike: weights are for `total`."""
    sums: dict[str, Tensor] = {}
    training_mode(state)
    given = replace(given, epoch_tables=state.technique.on_epoch_start(state.model, given.synonyms))
    for rows in shuffled(job.train, job.training.batch_size, (*state.stream, state.epoch)):
        terms = train_batch(job, state, given, memory, rows)
        for name, values in terms.items():
            sums[name] = sums.get(name, 0.0) + values.detach().sum()
        job.watcher.step(stage, state.epoch, terms)
    return _means(sums, len(job.train), state.epoch)


def train_batch(
    job: TrainingJob, state: TrainingState, given: LossContext, memory: TargetCache, rows: NDArray[np.int64]
) -> Terms:
    """One step, on these texts."""
    batch = collate(job.train, rows).to(job.accelerator.device)
    chance = state.key.child(state.step)
    now = replace(given, progress=state.progress, key=chance, cached_targets=memory.get(batch))
    terms: Terms = state.objective(state.technique, batch, now)
    step(job, state, state.technique.players(), terms, batch)
    state.technique = state.technique.after_step(terms)
    state.step += 1
    return terms


def step(job: TrainingJob, state: TrainingState, players: Sequence[Player], terms: Terms, batch: Batch) -> None:
    """The gradient of every player whose turn it is, all taken at the same point; then they move together."""
    active = [
        player
        for player in players
        if state.parameters_by_player[player.name] and state.step % player.every == player.offset
    ]
    if not active:
        return
    adam = state.optimizer.optimizer  # the wrapper looks for a package on the disk in every call: 0.2 ms
    adam.zero_grad()
    for player in active:
        # Of a player's terms only its own parameters may hear.  A lone player's gradients are all its own.
        only = {"inputs": state.parameters_by_player[player.name], "retain_graph": player is not active[-1]}
        job.accelerator.backward(total(terms, batch, player), **(only if len(players) > 1 else {}))
    job.accelerator.unscale_gradients(state.optimizer)
    for player in active:
        nn.utils.clip_grad_norm_(state.parameters_by_player[player.name], job.training.clip)
    optimizers.set_rates(state.optimizer, state.schedule, state.progress)
    (adam if state.optimizer.scaler is None else state.optimizer).step()


def total(terms: Terms, batch: Batch, player: Player) -> Tensor:
    """The number a player minimises: the weighted mean over the batch of the sum of its terms."""
    names = terms if player.terms is None else player.terms
    values = torch.stack([terms[name] for name in names]).sum(0)
    return (values if batch.weight is None else values * batch.weight).mean()


def validate(job: TrainingJob, state: TrainingState, reference: Tensor | None) -> dict[str, Any]:
    """Macro-F1 and, of equals, the loss choose the epoch; a label all texts get; whether attention says anything."""
    label = job.validation.label
    read = inference.split_outputs(state.model, job.validation, widest=WIDEST)
    predicted = read.logits.argmax(-1).numpy()
    macro = f1_score(label, predicted, average="macro", zero_division=0.0)
    anchor = None if reference is None else reference[:MOST]
    found = collapse_of(state.model, read, anchor)
    seen = {**asdict(found), "collapsed": found.collapsed, "reason": found.reason}
    return {
        "macro-f1": float(macro),
        "accuracy": float(accuracy_score(label, predicted)),
        "loss": float(cross_entropy(read.logits.double(), torch.from_numpy(label))),
        "constant_label": constant_label(predicted, label),
        "attention": {name: None if value != value else value for name, value in seen.items()},  # JSON has no NaN
    }


def collapse_of(model: Model, read: inference.SplitOutputs, reference: Tensor | None) -> Collapse:
    """Whether what it shows says anything; of a model that selects sentences, sentence by sentence."""
    weights, mask, ids = (one[:MOST] for one in (read.weights, read.mask, read.ids))
    if not isinstance(model, Rationalizer) or model.selection_config.granularity == "token":
        found = detect_collapse(weights, mask, reference, ids=ids)
        free = isinstance(model, Rationalizer) and model.selection_config.share is None
        return replace(found, selected=selected_share(weights, mask)) if free else found
    worded = mask.any(-1)
    numbers = segments.segment_ids(ids, mask, model.ends.cpu())
    return detect_sentence_collapse(
        RaggedWeights(weights[mask].double(), mask.sum(-1)[worded]), numbers[mask], ids[mask]
    )


def constant_label(predicted: NDArray[np.int64], label: NDArray[np.int64] | None) -> int | None:
    """The class that every text is given, where there are several to be told apart; else None."""
    told_apart = np.ptp(predicted) > 0 or label is None or np.ptp(label) == 0
    return None if told_apart else int(predicted[0])


def attention_of(models: Mapping[str, Model], data: Data) -> Tensor | None:
    """The mean attention of finished models, against which a new one is held; None where there are none.  (N,T)"""
    total: Tensor | None = None
    for model in models.values():
        weights = inference.split_outputs(model, data, widest=WIDEST).weights
        total = weights if total is None else total + weights
    return None if total is None else total / len(models)


def training_mode(state: TrainingState) -> None:
    """Training mode for what moves; what is frozen is read as it will be read later, without dropout."""
    state.objective.train()
    for part in (*state.model.children(), *state.modules.children()):
        moves = [parameter.requires_grad for parameter in part.parameters()]
        part.train(any(moves) or not moves)  # a part without parameters (a sampling attention) follows the others


def _means(sums: dict[str, Tensor], count: int, epoch: int) -> dict[str, float]:
    means = {name: float(value) / count for name, value in sums.items()}
    for name, value in means.items():
        if not math.isfinite(value):
            raise UserError(
                f"training went astray in epoch {epoch + 1}: the {name} loss is {value}.  "
                "A smaller learning_rate usually helps: --set learning_rate=1e-4"
            )
    return means


def steps(job: TrainingJob) -> int:
    """Of one epoch."""
    return -(-len(job.train) // job.training.batch_size)


def longest(job: TrainingJob, stage: Stage) -> int:
    """Epochs at most."""
    return job.training.longest(steps(job)) if stage.epochs is None else stage.epochs


def stage_is_over(job: TrainingJob, stage: Stage, state: TrainingState) -> bool:
    """Whether a stage has run long enough, or in vain: epochs no better than guessing do not count as that."""
    if state.epoch >= longest(job, stage):
        return True
    patience = job.training.patient(steps(job)) if stage.epochs is None else job.training.patience
    guessing = 1 / len(np.unique(job.train.label))  # type: ignore[arg-type]  # a split to train on has labels
    of_this_stage = state.history[len(state.history) - state.epoch :]
    scores = [record["macro-f1"] for record in of_this_stage]
    first = scores.index(max(scores)) + 1 if scores else 0  # surer alone is not better
    waited = sum(score > guessing for score in scores[first:])
    return stage.select != "last" and waited >= patience


def report_longer_training(job: TrainingJob) -> None:
    """Where there are more epochs than usual because texts are few."""
    each, most = steps(job), job.training.longest(steps(job))
    if job.training.epochs is None and most > EPOCHS:
        few = f"{len(job.train):,} texts are {each} step{'s' * (each > 1)} an epoch"
        job.watcher.say(f"{few}: they are read up to {most} times, not {EPOCHS} (--epochs says how often)")
