"""Fit a selector: the stages of its mitigation in order; the best epoch of the last stage is kept.

Afterward a new mask probe is trained on final masks of exactly k units.  The probe that was trained along has seen
relaxed masks of earlier selectors.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss, pad

from steadygaze.core.maths import k_subset
from steadygaze.core.random_key import RandomKey, derive_seed
from steadygaze.core.types import Terms
from steadygaze.explainers.learned.independent_reader import ReaderFit, uniform_subsets
from steadygaze.explainers.learned.l2x import (
    BatchFunction,
    InputBatch,
    InputSplit,
    Rows,
    SelectorConfig,
    SelectorStep,
    selector_steps,
)
from steadygaze.explainers.learned.mitigations import MITIGATIONS, Mitigation
from steadygaze.models.inference import inference
from steadygaze.models.probe_classifier import ProbeClassifier
from steadygaze.techniques.technique import Stage
from steadygaze.training.cuda_graphs import CapturedFunction
from steadygaze.training.optimizers import player_parameters
from steadygaze.training.progress import Watcher
from steadygaze.training.training_loop import StageLoop, StageState, fit_small_network, training_session

MAX_PROBE_INPUTS = 20_000
"""Most masks in the training of a probe."""
AT_ONCE = 256
"""Inputs per forward pass, and masks per step of the probe."""
STEPS, INTERVAL, PATIENCE = 1000, 25, 8
"""Steps of the probe, steps between evaluations on held-out masks, and evaluations without improvement."""
LEARNING_RATE = 3e-3
"""Learning rate of the probe."""
HELD_OUT = 5
"""One in this many masks is held out for early stopping of the probe."""


def fit_mask_probe(config: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, seed: int) -> ProbeClassifier:
    """Train a probe that predicts the label from the selected units."""
    trained_probe: ProbeClassifier = nets["probe"]  # type: ignore[assignment]
    rows = np.random.default_rng(seed).permutation(len(inputs))[:MAX_PROBE_INPUTS]
    masks, labels = [], []
    with inference(nets):
        for step in selector_steps(config, nets, inputs, np.array_split(rows, -(-len(rows) // AT_ONCE))):
            mask = step.selection()
            masks.append(pad(mask, (0, trained_probe.places - mask.shape[1])).bool())
            labels.append(step.views.probs.argmax(-1))
    return fit_probe(torch.cat(masks), torch.cat(labels), inputs.probs.shape[1], seed)


def fit_probe(masks: Tensor, labels: Tensor, classes: int, seed: int) -> ProbeClassifier:
    """Fit a probe with early stopping on held-out masks; it starts at the class frequencies.  (N,D), (N,) long

    The rows are not those of `data.splits.hold_out`: the generator also draws the batches of the steps, and saved
    probes and their probe-loss depend on it.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(masks), generator=generator)
    held_out_size = max(1, len(masks) // HELD_OUT)
    train_rows, held_out = order[held_out_size:], order[:held_out_size]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        probe = ProbeClassifier(masks.shape[1], classes)
    shares = torch.bincount(labels[train_rows].cpu(), minlength=classes).float() + 1
    nn.init.zeros_(probe.last.weight)
    probe.last.bias.data = (shares / shares.sum()).log()
    probe.to(masks.device)

    def loss(rows: Tensor) -> Tensor:
        return nll_loss(probe(masks[rows]), labels[rows])

    def random_rows(_: int) -> tuple[Tensor]:
        return (train_rows[torch.randint(len(train_rows), (AT_ONCE,), generator=generator)],)

    @torch.no_grad()
    def held_out_loss() -> float:
        return float(loss(held_out))

    fit_small_network(
        probe,
        loss,
        random_rows,
        held_out_loss,
        steps=STEPS,
        interval=INTERVAL,
        patience=PATIENCE,
        learning_rate=LEARNING_RATE,
        capture=lambda train: CapturedFunction(train, masks.device),
    )
    return probe


DECAY, EPSILON = 0.9, 1e-7
"""RMSprop of Keras, as in the L2X paper: decay and epsilon."""


class SelectorLoop(StageLoop):
    """Trains the networks of a selector in one stage of its mitigation."""

    def __init__(self, fit: "SelectorFit", nets: nn.ModuleDict, number: int, stage: Stage) -> None:
        self.fit, self.nets, self.number = fit, nets, number
        players = fit.mitigation.players(fit.config, stage.name)
        parameters = player_parameters(dict(nets.train().requires_grad_(True).named_parameters()), stage, players)
        optimizer = _optimizer(fit.config, [parameter for group in parameters.values() for parameter in group])
        self.average = WeightAverage(nets, fit.config.weight_averaging) if fit.config.weight_averaging else None
        networks = nets if self.average is None else self.average.networks
        state = StageState(networks=networks, parameters_by_player=parameters, optimizer=optimizer, history=fit.history)
        super().__init__(stage, state, fit.watcher, len(fit.train), players)
        assert all(player.every == 1 for player in players), "a graph repeats the players of one step"
        self.train_views = BatchFunction(fit.train, fit.device, self._train_views, fit.watcher.detail)
        self.key = RandomKey(derive_seed(fit.seed, number))
        self.prior = fit.config.target(fit.train.probs).float().mean(0).clamp_min(1e-6).to(fit.device)

    def batches(self) -> Sequence[Rows]:
        seed = self.fit.seed, self.number, self.state.epoch
        return self.fit.train.shuffled(self.fit.config.batch_size, seed)

    def train_step(self, rows: Rows) -> Terms:
        terms: Terms = self.train_views(rows, self.key.child(self.state.step))
        if self.average is not None:
            self.average.update()
        return terms

    def execute(self) -> dict[str, Any]:
        record = super().execute()
        del self.train_views  # its graphs hold memory
        return record

    def _train_views(self, views: InputBatch, key: RandomKey) -> Terms:
        step = SelectorStep(self.fit.config, self.nets, views, key, self.prior)
        terms = self.fit.mitigation.terms(step, self.stage.name)
        self.update(terms, None)
        return {name: values.detach() for name, values in terms.items()}

    def validate(self) -> dict[str, Any]:
        nets: Any = self.state.networks
        selects = self.number + 1 == len(self.fit.stages)
        fidelity = agreement(self.fit.config, nets, self.fit.validation, selects)
        self.state.keep_if_best(fidelity)
        return {"fidelity": fidelity}


@dataclass
class SelectorFit:
    config: SelectorConfig
    make: Callable[[], nn.ModuleDict]
    """Creates untrained networks; torch's generator is seeded before the call."""
    train: InputSplit
    validation: InputSplit
    watcher: Watcher
    device: torch.device
    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    """One record per epoch; `kept` marks the epoch whose weights a stage keeps."""

    @property
    def mitigation(self) -> Mitigation:
        return MITIGATIONS[self.config.mitigation]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.mitigation.stages(self.config)

    def execute(self) -> nn.ModuleDict:
        """The networks in evaluation mode, after the epoch with the highest validation fidelity."""
        epochs, steps = sum(stage.epochs or 1 for stage in self.stages), -(-len(self.train) // self.config.batch_size)
        with training_session(self.watcher, len(self.stages), epochs, steps):
            torch.manual_seed(derive_seed(self.seed))
            nets: Any = self.make().to(self.device)
            for number, stage in enumerate(self.stages):
                loop = SelectorLoop(self, nets, number, stage)
                loop.execute()["kept"] = True
                nets = loop.state.networks
            nets["probe"] = fit_mask_probe(self.config, nets, self.train, self.seed)
            if "reader" in nets:
                self.watcher.say(f"training the independent reader on {self.config.k} random units of each input")
                nets["reader"] = self._reader().execute()
        trained: nn.ModuleDict = nets.eval().requires_grad_(False)
        return trained

    def _reader(self) -> ReaderFit:
        """A reader with the approximator's architecture."""
        splits = self.train, self.validation
        draw = uniform_subsets(self.config.k)
        return ReaderFit(lambda: self.make()["approximator"], draw, *splits, self.device, self.seed)


def agreement(
    config: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, chosen_by_selector: bool = True
) -> float:
    """Share of inputs whose predicted label the approximator recovers from exactly k units."""
    hits, key = 0, RandomKey(0)
    with inference(nets):
        for step in selector_steps(config, nets, inputs, inputs.once(config.batch_size * 8)):
            if chosen_by_selector:
                mask = step.selection()
            else:
                mask = k_subset.random_k_subset(step.views.selectable, config.k, key, step.views.rows)
            hits += int((step.approximate(mask).argmax(-1) == step.views.probs.argmax(-1)).sum())
    return hits / max(1, len(inputs))


def _optimizer(config: SelectorConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    on_gpu = parameters[0].is_cuda  # CUDA graphs need the state on the device
    options: dict[str, Any] = {"lr": config.learning_rate, "foreach": True, "capturable": on_gpu}
    if config.optimizer == "rmsprop":
        return torch.optim.RMSprop(parameters, alpha=DECAY, eps=EPSILON, **options)
    return torch.optim.Adam(parameters, betas=config.betas, **options)


class WeightAverage:
    """Exponential moving average of the weights, to be updated after each step.

    The decay is at most (1 + n) / (10 + n) after n + 1 steps, so that the initial weights are forgotten soon.
    """

    def __init__(self, nets: nn.ModuleDict, decay: float) -> None:
        self.networks, self.decay, self.steps = copy.deepcopy(nets), decay, 0
        self.averages: list[Tensor] = list(self.networks.parameters())
        self.weights: list[Tensor] = list(nets.parameters())

    @torch.no_grad()
    def update(self) -> None:
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps)) if self.steps else 0.0
        torch._foreach_lerp_(self.averages, self.weights, 1 - decay)
        self.steps += 1
