"""Fit a selector: the stages of its mitigation in order; the best epoch of the last stage is kept.

Afterwards a new mask probe is trained on final masks of exactly k units.  The probe that was trained along has seen
relaxed masks of earlier selectors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.optim.swa_utils import AveragedModel

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey, derive_seed, forked_generators
from steadygaze.core.types import Terms
from steadygaze.explainers.learned.independent_reader import ReaderFit, uniform_subsets
from steadygaze.explainers.learned.mitigations import MITIGATIONS
from steadygaze.explainers.learned.selector import InputSplit, SelectorConfig, SelectorStep, selector_steps
from steadygaze.models import k_subset
from steadygaze.models.inference import inference
from steadygaze.models.probe_classifier import ProbeClassifier, fit_probe
from steadygaze.techniques.technique import Player, Stage
from steadygaze.training.optimizers import matching_parameters
from steadygaze.training.progress import Watcher

MOST = 20_000
"""Most masks in the training of a probe."""
AT_ONCE = 256
"""Inputs per forward pass."""


def fit_mask_probe(how: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, seed: int) -> ProbeClassifier:
    """Train a probe that predicts the label from the selected units."""
    old: ProbeClassifier = nets["judge"]  # type: ignore[assignment]
    rows = np.random.default_rng(seed).permutation(len(inputs))[:MOST]
    masks, labels = [], []
    with inference(nets):
        for round_ in selector_steps(how, nets, inputs, np.array_split(rows, -(-len(rows) // AT_ONCE))):
            mask = round_.chosen()
            masks.append(pad(mask, (0, old.places - mask.shape[1])).bool())
            labels.append(round_.views.probs.argmax(-1))
    return fit_probe(torch.cat(masks), torch.cat(labels), inputs.probs.shape[1], seed)


Tensors = tuple[Tensor, ...] | list[Tensor]
DECAY, EPSILON = 0.9, 1e-7
"""RMSprop of Keras, as in the L2X paper: decay and epsilon."""


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

    def execute(self) -> nn.ModuleDict:
        """The networks in evaluation mode, after the epoch with the highest validation fidelity."""
        mitigation = MITIGATIONS[self.config.technique]
        stages = mitigation.stages(self.config)
        self.watcher.start(len(stages), sum(stage.epochs or 1 for stage in stages), self._steps)
        try:
            with forked_generators():
                torch.manual_seed(derive_seed(self.seed))
                nets = self.make().to(self.device)
                for number, stage in enumerate(stages):
                    self._stage(nets, number, stage, last=number + 1 == len(stages))
                nets["judge"] = fit_mask_probe(self.config, nets, self.train, self.seed)
                self.watcher.say(f"training the independent reader on {self.config.k} random units of each input")
                nets["reader"] = self._reader().execute()
        finally:
            self.watcher.stop()
        return nets.eval().requires_grad_(False)

    def _stage(self, nets: nn.ModuleDict, number: int, stage: Stage, last: bool) -> None:
        mitigation, prior = MITIGATIONS[self.config.technique], self._prior
        parameters = _trained_parameters(nets, stage, mitigation.players(self.config))
        optimizer = _optimizer(self.config, [p for part in parameters.values() for p in part])
        average = _averaged(nets, self.config.weight_averaging)
        best: tuple[float, dict[str, Tensor], dict[str, Any]] = (-1.0, {}, {})
        chance = RandomKey(derive_seed(self.seed, number))
        step = 0
        for epoch in range(stage.epochs or 1):
            nets.train()
            sums: dict[str, Tensor] = {}
            for rows in self.train.shuffled(self.config.batch_size, (self.seed, number, epoch)):
                round_ = SelectorStep(self.config, nets, self.train.views(rows), chance.child(step), prior)
                terms = mitigation.terms(round_, stage.name)
                _step(optimizer, parameters, mitigation.players(self.config), terms)
                if average is not None:
                    average.update_parameters(nets)
                step += 1
                for name, values in terms.items():
                    sums[name] = sums.get(name, 0.0) + values.detach().sum()
                self.watcher.step(stage.name, epoch, terms)
            kept: Any = nets if average is None else average.module
            score = agreement(self.config, kept, self.validation, last)
            record: dict[str, Any] = {
                "stage": stage.name,
                "epoch": epoch + 1,
                "terms": _means(sums, len(self.train)),
                "fidelity": score,
            }
            self.history.append(record)
            self.watcher.epoch(record)
            if score > best[0] or not last or stage.select == "last":
                best = score, {name: value.detach().clone() for name, value in kept.state_dict().items()}, record
        nets.load_state_dict(best[1])
        best[2]["kept"] = True

    def _reader(self) -> ReaderFit:
        """A reader with the approximator's architecture."""
        splits = self.train, self.validation
        draw = uniform_subsets(self.config.k)
        return ReaderFit(lambda: self.make()["approximator"], draw, *splits, self.device, self.seed)

    @property
    def _prior(self) -> Tensor:
        return self.config.target(self.train.probs).float().mean(0).clamp_min(1e-6).to(self.device)

    @property
    def _steps(self) -> int:
        return -(-len(self.train) // self.config.batch_size)


def agreement(how: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, chosen_by_selector: bool = True) -> float:
    """Share of inputs whose predicted label the approximator recovers from exactly k units."""
    hits, chance = 0, RandomKey(0)
    with inference(nets):
        for round_ in selector_steps(how, nets, inputs, inputs.once(how.batch_size * 8)):
            if chosen_by_selector:
                mask = round_.chosen()
            else:
                mask = k_subset.random_k_subset(round_.views.able, how.k, chance, round_.views.rows)
            hits += int((round_.approximate(mask).argmax(-1) == round_.views.probs.argmax(-1)).sum())
    return hits / max(1, len(inputs))


def _trained_parameters(
    nets: nn.ModuleDict, stage: Stage, players: tuple[Player, ...]
) -> dict[str, list[nn.Parameter]]:
    """Parameters that each player trains in this stage; all others are frozen."""
    nets.requires_grad_(True)
    named = dict(nets.named_parameters())
    trained = matching_parameters(named, stage.trains)
    for name, parameter in named.items():
        parameter.requires_grad_(name in trained)
    return {player.name: list(matching_parameters(trained, player.trains).values()) for player in players}


def _optimizer(how: SelectorConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    if how.optimizer == "rmsprop":
        return torch.optim.RMSprop(parameters, how.learning_rate, alpha=DECAY, eps=EPSILON, foreach=True)
    return torch.optim.Adam(parameters, how.learning_rate, betas=how.betas, foreach=True)


def _averaged(nets: nn.ModuleDict, decay: float) -> AveragedModel | None:
    """Exponential moving average of the weights; None: no averaging.

    The decay is at most (1 + n) / (10 + n) after n steps, so that the initial weights are forgotten soon.
    """

    def update(averages: Tensors, weights: Tensors, many: Tensor | int) -> None:
        current_decay = min(decay, (1 + float(many)) / (10 + float(many)))
        torch._foreach_lerp_(averages, weights, 1 - current_decay)

    return AveragedModel(nets, multi_avg_fn=update) if decay else None


def _step(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, list[nn.Parameter]],
    players: tuple[Player, ...],
    terms: Terms,
) -> None:
    """Update each player by its own terms, with all gradients at the same weights."""
    optimizer.zero_grad(set_to_none=True)
    own = {player.name: [terms[name] for name in player.terms or terms if name in terms] for player in players}
    active = [name for name, player_terms in own.items() if player_terms and parameters[name]]
    for name in active:
        total = torch.stack(own[name]).sum(0).mean()
        torch.autograd.backward(total, inputs=parameters[name], retain_graph=name != active[-1])
    optimizer.step()


def _means(sums: Mapping[str, Tensor], count: int) -> dict[str, float]:
    means = {name: float(value) / count for name, value in sums.items()}
    if any(value != value for value in means.values()):
        raise UserError("training diverged: the loss is NaN; use a smaller learning_rate")
    return means
