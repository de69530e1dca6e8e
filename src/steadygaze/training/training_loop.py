"""The training loop: epochs of steps, validation, early stopping and the weights of the best epoch.

A subclass of `StageLoop` defines the batches, the training step, and the validation scores:

    technique_loop.py                          text classifiers and rationalizers
    explainers/learned/selector_training.py    selectors (L2X, VIBI, AIL)
    explainers/learned/cxplain.py              members of CXPlain
    images/classifier_training.py              image classifiers

`fit_small_network` trains the mask probe and the independent reader.  They count steps, not epochs: they draw random
inputs or masks in every step, and a validation every few steps is their only sign of progress.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import forked_generators
from steadygaze.core.types import Terms
from steadygaze.techniques.technique import Player, Stage
from steadygaze.training.progress import TrainingDiverged, Watcher

Rows = NDArray[np.int64]


@dataclass(kw_only=True)
class StageState:
    """Networks, optimizer and progress of a stage."""

    networks: nn.Module  # validated and kept
    parameters_by_player: Mapping[str, list[nn.Parameter]]
    optimizer: Any
    epoch: int = 0  # finished epochs
    step: int = 0  # finished steps
    best_score: float = -math.inf
    best_loss: float = 0.0
    best_is_sound: bool = False
    best_epoch: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)  # `weights` at the best epoch, on the CPU
    history: list[dict[str, Any]] = field(default_factory=list)

    def weights(self) -> dict[str, Tensor]:
        return self.networks.state_dict()

    def load(self, weights: dict[str, Tensor]) -> None:
        self.networks.load_state_dict(weights)

    def keep_if_best(self, score: float, loss: float = 0.0, is_sound: bool = True) -> None:
        """Keep the weights if they are the best so far: sound before unsound, then the score, then the lower loss."""
        if (is_sound, score, -loss) > (self.best_is_sound, self.best_score, -self.best_loss):
            self.best_score, self.best_loss, self.best_epoch = score, loss, self.epoch
            self.best_is_sound = is_sound
            self.best = {name: value.to("cpu", copy=True) for name, value in self.weights().items()}


@dataclass
class StageLoop(ABC):
    """Trains one stage."""

    stage: Stage
    state: StageState
    watcher: Watcher
    inputs: int  # of an epoch of training
    players: tuple[Player, ...] = (Player(),)
    patience: int | None = None  # epochs without improvement; None: no limit
    save: Callable[[], None] | None = None  # saves a checkpoint, after every epoch

    @abstractmethod
    def batches(self) -> Iterable[Rows]:
        """Return the batches of the current epoch."""

    @abstractmethod
    def train_step(self, rows: Rows) -> Terms:
        """Compute the loss terms of these inputs, call `update`, and return the terms.  (B,) each"""

    def validate(self) -> dict[str, Any]:
        """Keep the weights if they are the best so far, and return the validation scores."""
        return {}

    def start_epoch(self) -> None:
        self.state.networks.train()

    @property
    def longest(self) -> int:
        """Maximum number of epochs."""
        return self.stage.epochs or 1

    @property
    def selects_last(self) -> bool:
        """Return True if the last epoch is selected, whatever its scores."""
        return self.stage.select == "last"

    def is_over(self) -> bool:
        impatient = self.patience is not None and self.state.epoch - self.state.best_epoch >= self.patience
        return impatient or self.state.epoch >= self.longest

    def execute(self) -> dict[str, Any]:
        """Train until the stage is over; load the weights of the selected epoch and return its record."""
        while not self.is_over():
            self.finish_epoch(self.train_epoch())
        self.state.optimizer.zero_grad()  # gradients of a graph are in its memory
        return self.selected_epoch()

    def finish_epoch(self, terms: dict[str, float]) -> None:
        """Validate, and save a checkpoint; `terms`: the mean of each term."""
        state = self.state
        record = {"stage": self.stage.name, "epoch": state.epoch, "terms": terms, **self.validate()}
        state.history.append(record)
        if self.save is not None:
            self.save()
        self.watcher.epoch(record)

    def selected_epoch(self) -> dict[str, Any]:
        """Load the weights of the selected epoch and return its record."""
        state = self.state
        self.watcher.skip(self.longest - state.epoch)
        if self.selects_last:
            return state.history[-1]
        state.load(state.best)
        return state.history[state.best_epoch - state.epoch - 1]  # the last record is the stage's last epoch

    def train_epoch(self) -> dict[str, float]:
        """Train one epoch; return the unweighted mean of each term."""
        sums: dict[str, Tensor] = {}
        self.start_epoch()
        for rows in self.batches():
            terms = self.train_batch(rows)
            for name, values in terms.items():
                sums[name] = sums.get(name, 0.0) + values.detach().sum()
            self.watcher.step(self.stage.name, self.state.epoch, terms)
        self.state.epoch += 1
        return {name: self.finite(name, float(value) / self.inputs) for name, value in sums.items()}

    def train_batch(self, rows: Rows) -> Terms:
        """Train one step on these inputs."""
        terms = self.train_step(rows)
        self.state.step += 1
        return terms

    def update(self, terms: Terms, weight: Tensor | None) -> None:
        """Compute the gradients of all active players at the same parameters, then update them together.

        `weight`: of each input; None: all are equal.  (B,)
        """
        groups, step = self.state.parameters_by_player, self.state.step
        active = [player for player in self.players if groups[player.name] and step % player.every == player.offset]
        if not active:
            return
        self.state.optimizer.zero_grad()
        for player in active:
            # A player's terms give a gradient to its own parameters only.  A single player has all parameters.
            only = {"inputs": groups[player.name], "retain_graph": player is not active[-1]}
            self.backward(self.total(terms, player, weight), **(only if len(self.players) > 1 else {}))
        self.apply_gradients(active)

    def backward(self, loss: Tensor, **only: Any) -> None:
        torch.autograd.backward(loss, **only)

    def apply_gradients(self, active: list[Player]) -> None:
        self.state.optimizer.step()

    @staticmethod
    def total(terms: Terms, player: Player, weight: Tensor | None) -> Tensor:
        """Return a player's objective: the weighted mean over the batch of the sum of its terms."""
        names = terms if player.terms is None else player.terms
        values = torch.stack([terms[name] for name in names]).sum(0)
        return (values if weight is None else values * weight).mean()

    def finite(self, name: str, value: float) -> float:
        """Return the value; raise if it is NaN or infinite."""
        if not math.isfinite(value):
            raise TrainingDiverged(
                f"training diverged: the {name} loss is {value} in epoch {self.state.epoch}.  "
                "Try a lower learning_rate."
            )
        return value


@contextmanager
def training_session(watcher: Watcher, stages: int, epochs: int, steps: int) -> Iterator[None]:
    """Show progress, and restore torch's generators after the block."""
    watcher.start(stages, epochs, steps)
    try:
        with forked_generators():
            yield
    finally:
        watcher.stop()


def fit_small_network(
    network: nn.Module,
    loss: Callable[..., Tensor],
    arguments: Callable[[int], tuple[Any, ...]],
    validate: Callable[[], float],
    *,
    steps: int,
    interval: int,
    patience: int,
    learning_rate: float,
    decay: bool = False,
    capture: Callable[[Callable[..., Tensor]], Callable[..., Tensor]] = lambda train: train,
) -> None:
    """Train with Adam, and load the weights with the lowest validation loss; the initial weights count too.

    `arguments`: step -> arguments of `loss`.  `interval`: steps between validations.  `patience`: validations without a
    lower loss.  `decay`: the learning rate decays linearly to 0; the step is then not captured.  `capture`: training
    step -> the same as CUDA graphs.  A loss that is not finite is an error.
    """
    parameters = list(network.parameters())
    on_gpu = parameters[0].is_cuda  # a graph needs the state on the device
    adam = torch.optim.Adam(parameters, learning_rate, foreach=True, capturable=on_gpu and not decay)

    def train(*inputs: Any) -> Tensor:
        network.train()
        adam.zero_grad()
        step_loss = loss(*inputs)
        torch.autograd.backward(step_loss)
        adam.step()
        return step_loss.detach()

    train_step = capture(train)
    lowest, best_step, best = math.inf, 0, network.state_dict()
    interval_loss: Tensor | float = 0.0  # read once per interval: a GPU waits for each reading
    for step in range(steps + 1):
        if step % interval == 0 or step == steps:
            _check_finite(network, "training", float(interval_loss), step)
            value, interval_loss = validate(), 0.0
            _check_finite(network, "validation", value, step)
            if value < lowest:
                lowest, best_step = value, step
                best = {name: weight.detach().clone() for name, weight in network.state_dict().items()}
            elif step - best_step >= patience * interval:
                break
        if step < steps:
            if decay:
                adam.param_groups[0]["lr"] = learning_rate * (1 - step / steps)
            interval_loss += train_step(*arguments(step))
    adam.zero_grad()  # gradients of a graph are in its memory
    network.load_state_dict(best)


def _check_finite(network: nn.Module, kind: str, value: float, step: int) -> None:
    if not math.isfinite(value):
        raise UserError(
            f"training diverged: the {kind} loss of {type(network).__name__} is {value} at step {step}.  "
            "Check that the predictions of the explained model are finite, or try another seed."
        )
