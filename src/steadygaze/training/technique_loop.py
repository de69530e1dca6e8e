"""The training loop of techniques: their losses and players, validation and early stopping."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.core.maths.collapse import Collapse, detect_collapse, detect_sentence_collapse, selected_share
from steadygaze.core.maths.macro_f1 import confusion_counts, macro_f1_of
from steadygaze.core.ragged import RaggedTensor, segment_ids
from steadygaze.core.random_key import generator_states
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import Data, collate, shuffled
from steadygaze.models import inference
from steadygaze.models.inference import Model, selects
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques.technique import LossContext, Player, Stage, Technique, check_terms
from steadygaze.training import optimizers
from steadygaze.training.optimizers import EPOCHS, Training
from steadygaze.training.progress import TrainingDiverged, Watcher
from steadygaze.training.teacher_cache import TargetCache
from steadygaze.training.training_loop import Rows, StageLoop
from steadygaze.training.training_state import TrainingState

MAX_TEXTS, MAX_TOKENS = 2048, 1024
"""Number of validation texts, and of tokens of each, for the detection of collapsed attention."""


@dataclass(frozen=True)
class TrainingJob:
    """Data and settings that all stages of a run share."""

    train: Data
    validation: Data
    training: Training
    accelerator: Accelerator
    watcher: Watcher
    synonyms: Synonyms | None = None
    stacks: bool | None = None
    """True if several models are trained as one program, and one model in a CUDA graph; None: as the settings say."""

    @property
    def uses_stacks(self) -> bool:
        if self.stacks is not None:
            return self.stacks
        return self.training.cuda_graphs and self.accelerator.device.type == "cuda"


class Objective(nn.Module):
    """A technique's loss as a module, which mixed precision and several devices can wrap."""

    def __init__(self, model: nn.Module, modules: nn.Module) -> None:
        super().__init__()
        self.model, self.auxiliary = model, modules

    def forward(self, technique: Technique, batch: Batch, context: LossContext) -> Terms:
        return check_terms(technique.loss(self.model, batch, context), technique, len(batch))


class TechniqueLoop(StageLoop):
    """Trains a model with a technique."""

    state: TrainingState

    def __init__(
        self,
        job: TrainingJob,
        stage: Stage,
        state: TrainingState,
        context: LossContext,
        targets: TargetCache,
        reference: Tensor | None = None,
    ) -> None:
        """`reference`: mean attention of the reference models (N,T)."""
        super().__init__(stage, state, job.watcher, len(job.train), state.technique.players())
        self.job, self.context, self.targets, self.reference = job, context, targets, reference
        self.generators = generator_states()  # of this loop's dropout: other loops are prepared before it is trained
        self.finishes_model = True
        """False if a later stage continues with the same model: then any epoch can be selected."""
        self.guess = 1 / len(np.unique(job.train.label))  # type: ignore[arg-type]  # a split to train on has labels
        """Highest macro-F1 of a guess that does not depend on the text."""
        self.divergence: TrainingDiverged | None = None
        self.on_divergence: Callable[[TrainingDiverged], None] | None = None

    def diverge(self, error: TrainingDiverged) -> None:
        """Keep the error, which ends the training of this model."""
        self.divergence = error.with_traceback(None)  # a traceback keeps the tensors of its frames
        if self.on_divergence is not None:
            self.on_divergence(error)

    @property
    def longest(self) -> int:
        return longest(self.job, self.stage)

    def start_epoch(self) -> None:
        training_mode(self.state.networks, self.state.model, self.state.modules)
        tables = self.state.technique.on_epoch_start(self.state.model, self.context.synonyms)
        self.context = replace(self.context, epoch_tables=tables)

    def batches(self) -> list[Rows]:
        """Return the batches of the current epoch.

        In a stack, a step has batches of about the same length for all models.  Their order depends on the epoch alone,
        also for one model, so that a model does not depend on the others.
        """
        epoch = self.state.step // steps(self.job)
        order_seed = (epoch,) if self.job.uses_stacks else None
        return shuffled(self.job.train, self.job.training.batch_size, (*self.state.stream, epoch), order_seed)

    def train_step(self, rows: Rows) -> Terms:
        state = self.state
        batch = collate(self.job.train, rows).to(self.job.accelerator.device)
        context = replace(
            self.context,
            progress=state.progress,
            key=state.key.child(state.step),
            cached_targets=self.targets.get(batch),
        )
        terms: Terms = state.networks(state.technique, batch, context)
        self.update(terms, batch.weight)
        return terms

    def backward(self, loss: Tensor, **only: Any) -> None:
        self.job.accelerator.backward(loss, **only)

    def apply_gradients(self, active: list[Player]) -> None:
        state = self.state
        self.job.accelerator.unscale_gradients(state.accelerated)
        for player in active:
            nn.utils.clip_grad_norm_(state.parameters_by_player[player.name], self.job.training.clip)
        optimizers.set_rates(state.optimizer, state.schedule, state.progress)
        # The wrapper looks up a package on disk in every call: 0.2 ms.
        (state.optimizer if state.accelerated.scaler is None else state.accelerated).step()

    def train_batch(self, rows: Rows) -> Terms:
        terms = super().train_batch(rows)
        self.state.technique = self.state.technique.after_step(terms)
        return terms

    def validate(self) -> dict[str, Any]:
        scores = validation_scores(self.job, self.state.technique.evaluated(self.state.model), self.reference)
        score = float(self.state.epoch) if self.stage.select == "last" else scores["macro-f1"]
        self.state.keep_if_best(score, scores["loss"], self._is_sound(scores))
        return scores

    @property
    def selects_last(self) -> bool:
        """Return True if the last epoch is selected; not if it is degenerate and an earlier one is sound."""
        degenerate = self.finishes_model and is_degenerate(self.state.history[-1])
        return self.stage.select == "last" and not (degenerate and self.state.best_is_sound)

    def _is_sound(self, record: Mapping[str, Any]) -> bool:
        """Return True unless a sound epoch is preferable; one no better than a guess is not."""
        return not self.finishes_model or (not is_degenerate(record) and record["macro-f1"] > self.guess)

    def is_over(self) -> bool:
        """Return True after the last epoch, or without improvement; epochs at guessing level do not count.

        An improvement is a higher macro-F1 than that of all epochs, or of all sound epochs.
        """
        job, stage, state = self.job, self.stage, self.state
        if state.epoch >= self.longest:
            return True
        patience = job.training.patient(steps(job)) if stage.epochs is None else job.training.patience
        records = state.history[len(state.history) - state.epoch :]
        scores = [record["macro-f1"] for record in records]
        ranks = [(self._is_sound(record), record["macro-f1"]) for record in records]
        # A lower loss alone is not an improvement.
        first = max(values.index(max(values)) for values in (scores, ranks)) + 1 if records else 0
        epochs_without_improvement = sum(score > self.guess for score in scores[first:])
        return stage.select != "last" and epochs_without_improvement >= patience


def is_degenerate(record: Mapping[str, Any]) -> bool:
    """Return True if the weights of an epoch do not depend on the text, or neither does its label."""
    return record.get("constant_label") is not None or bool(record.get("attention", {}).get("collapsed"))


def validation_scores(job: TrainingJob, model: Model, reference: Tensor | None) -> dict[str, Any]:
    """Return the validation scores, a constant predicted label, and the collapse of attention."""
    label = np.asarray(job.validation.label)
    read = inference.split_outputs(model, job.validation, widest=MAX_TOKENS)
    predicted = read.logits.argmax(-1).numpy()
    macro = macro_f1_of(confusion_counts(label, predicted, read.logits.shape[-1]))
    anchor = None if reference is None else reference[:MAX_TEXTS]
    collapse = collapse_of(model, read, anchor)
    attention = {**asdict(collapse), "collapsed": collapse.collapsed, "reason": collapse.reason}
    return {
        "macro-f1": float(macro),
        "accuracy": float((predicted == label).mean()),
        "loss": float(cross_entropy(read.logits.double(), torch.from_numpy(label))),
        "constant_label": constant_label(predicted, label),
        "attention": {name: None if value != value else value for name, value in attention.items()},  # JSON has no NaN
    }


def collapse_of(model: Model, read: inference.SplitOutputs, reference: Tensor | None) -> Collapse:
    """Detect collapsed weights; by sentence for a model that selects sentences."""
    weights, mask, ids = (tensor[:MAX_TEXTS] for tensor in (read.weights, read.mask, read.ids))
    if not selects(model) or model.selection_config.granularity == "token":
        collapse = detect_collapse(weights, mask, reference, ids=ids)
        has_free_size = selects(model) and model.selection_config.share is None
        return replace(collapse, selected=selected_share(weights, mask)) if has_free_size else collapse
    nonempty = mask.any(-1)
    sentences = None if read.sentences is None else read.sentences[:MAX_TEXTS]
    numbers = segment_ids(ids, mask, model.roles.cpu(), sentences)
    return detect_sentence_collapse(
        RaggedTensor(weights[mask].double(), mask.sum(-1)[nonempty]), numbers[mask], ids[mask]
    )


def constant_label(predicted: NDArray[np.int64], label: NDArray[np.int64] | None) -> int | None:
    """Return the class that every text is assigned although there are several classes; else None."""
    distinguished = np.ptp(predicted) > 0 or label is None or np.ptp(label) == 0
    return None if distinguished else int(predicted[0])


def attention_of(models: Mapping[str, Model], data: Data) -> Tensor | None:
    """Return the mean attention of the reference models; None without any.  (N,T)"""
    total: Tensor | None = None
    for model in models.values():
        weights = inference.split_outputs(model, data, widest=MAX_TOKENS).weights
        total = weights if total is None else total + weights
    return None if total is None else total / len(models)


def training_mode(whole: nn.Module, *networks: nn.Module) -> None:
    """Set trained parts of the networks to training mode and frozen parts to evaluation mode, without dropout."""
    whole.train()
    for part in (part for network in networks for part in network.children()):
        trained = [parameter.requires_grad for parameter in part.parameters()]
        part.train(any(trained) or not trained)  # parts without parameters: training mode


def steps(job: TrainingJob) -> int:
    """Return the number of steps of one epoch."""
    return -(-len(job.train) // job.training.batch_size)


def longest(job: TrainingJob, stage: Stage) -> int:
    """Return the maximum number of epochs."""
    return stage.epochs or max(1, round(stage.share * job.training.longest(steps(job))))


def report_longer_training(job: TrainingJob) -> None:
    """Report a larger number of epochs on a small dataset."""
    steps_per_epoch, max_epochs = steps(job), job.training.longest(steps(job))
    if job.training.epochs is None and max_epochs > EPOCHS:
        size = f"{len(job.train):,} texts are {steps_per_epoch} step{'s' * (steps_per_epoch > 1)} per epoch"
        job.watcher.say(
            f"{size}: training runs up to {max_epochs} epochs instead of {EPOCHS} (set --epochs to change this)"
        )
