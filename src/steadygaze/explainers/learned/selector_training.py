"""How far the mask alone tells the label, once selecting is over.

By a judge taught afresh on masks as explanations have them, exactly k units each: the one who learnt beside the
selector saw soft masks, and a selector that has moved on since.

Fitting: the stages of a remedy, one after the other; of the last the best epoch is kept.
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
"""Masks that a judge learns from."""
AT_ONCE = 256
"""Inputs read at once."""


def fit_mask_probe(how: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, seed: int) -> ProbeClassifier:
    """Taught by which units the selector takes."""
    old: ProbeClassifier = nets["judge"]  # type: ignore[assignment]
    some = np.random.default_rng(seed).permutation(len(inputs))[:MOST]
    masks, labels = [], []
    with inference(nets):
        for round_ in selector_steps(how, nets, inputs, np.array_split(some, -(-len(some) // AT_ONCE))):
            mask = round_.chosen()
            masks.append(pad(mask, (0, old.places - mask.shape[1])).bool())
            labels.append(round_.views.probs.argmax(-1))
    return fit_probe(torch.cat(masks), torch.cat(labels), inputs.probs.shape[1], seed)


Tensors = tuple[Tensor, ...] | list[Tensor]
FORGETS, SMALL = 0.9, 1e-7
"""Keras' RMSprop, which L2X was trained with."""


@dataclass
class SelectorFit:
    config: SelectorConfig
    make: Callable[[], nn.ModuleDict]
    """Draws fresh networks from torch's own generator, which is seeded before the call."""
    train: InputSplit
    validation: InputSplit
    watcher: Watcher
    device: torch.device
    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    """A record per epoch; of each stage one says that its weights were kept."""

    def execute(self) -> nn.ModuleDict:
        """The networks, in evaluation mode, as they were after the epoch in which guesses from validation inputs were
        right most often.
        """
        remedy = MITIGATIONS[self.config.technique]
        stages = remedy.stages(self.config)
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
        remedy, prior = MITIGATIONS[self.config.technique], self._prior
        moving = _moving(nets, stage, remedy.players(self.config))
        steps = _optimiser(self.config, [p for part in moving.values() for p in part])
        mean = _averaged(nets, self.config.weight_averaging)
        best: tuple[float, dict[str, Tensor], dict[str, Any]] = (-1.0, {}, {})
        chance = RandomKey(derive_seed(self.seed, number))
        step = 0
        for epoch in range(stage.epochs or 1):
            nets.train()
            sums: dict[str, Tensor] = {}
            for rows in self.train.shuffled(self.config.batch_size, (self.seed, number, epoch)):
                round_ = SelectorStep(self.config, nets, self.train.views(rows), chance.child(step), prior)
                terms = remedy.terms(round_, stage.name)
                _step(steps, moving, remedy.players(self.config), terms)
                if mean is not None:
                    mean.update_parameters(nets)
                step += 1
                for name, values in terms.items():
                    sums[name] = sums.get(name, 0.0) + values.detach().sum()
                self.watcher.step(stage.name, epoch, terms)
            kept: Any = nets if mean is None else mean.module
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
        """Of the approximator's architecture."""
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
    """How often the approximator, given exactly k units, guesses the black box's label."""
    right, chance = 0, RandomKey(0)
    with inference(nets):
        for round_ in selector_steps(how, nets, inputs, inputs.once(how.batch_size * 8)):
            if chosen_by_selector:
                mask = round_.chosen()
            else:
                mask = k_subset.random_k_subset(round_.views.able, how.k, chance, round_.views.rows)
            right += int((round_.approximate(mask).argmax(-1) == round_.views.probs.argmax(-1)).sum())
    return right / max(1, len(inputs))


def _moving(nets: nn.ModuleDict, stage: Stage, players: tuple[Player, ...]) -> dict[str, list[nn.Parameter]]:
    """What each player moves in this stage; nobody moves the rest."""
    nets.requires_grad_(True)
    named = dict(nets.named_parameters())
    moving = matching_parameters(named, stage.trains)
    for name, parameter in named.items():
        parameter.requires_grad_(name in moving)
    return {player.name: list(matching_parameters(moving, player.trains).values()) for player in players}


def _optimiser(how: SelectorConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    if how.optimizer == "rmsprop":
        return torch.optim.RMSprop(parameters, how.learning_rate, alpha=FORGETS, eps=SMALL, foreach=True)
    return torch.optim.Adam(parameters, how.learning_rate, betas=how.betas, foreach=True)


def _averaged(nets: nn.ModuleDict, old: float) -> AveragedModel | None:
    """The running average of the weights; None where none is wanted.

    It forgets faster in the beginning, (1 + n) / (10 + n) being old, so that what was drawn at the start is soon gone.
    """

    def mixed(kept: Tensors, new: Tensors, many: Tensor | int) -> None:
        stays = min(old, (1 + float(many)) / (10 + float(many)))
        torch._foreach_lerp_(kept, new, 1 - stays)

    return AveragedModel(nets, multi_avg_fn=mixed) if old else None


def _step(
    optimiser: torch.optim.Optimizer,
    moving: Mapping[str, list[nn.Parameter]],
    players: tuple[Player, ...],
    terms: Terms,
) -> None:
    """Each player by its own terms, all at the same point."""
    optimiser.zero_grad(set_to_none=True)
    own = {player.name: [terms[name] for name in player.terms or terms if name in terms] for player in players}
    active = [name for name, those in own.items() if those and moving[name]]
    for name in active:
        total = torch.stack(own[name]).sum(0).mean()
        torch.autograd.backward(total, inputs=moving[name], retain_graph=name != active[-1])
    optimiser.step()


def _means(sums: Mapping[str, Tensor], count: int) -> dict[str, float]:
    means = {name: float(value) / count for name, value in sums.items()}
    if any(value != value for value in means.values()):
        raise UserError("the loss is not a number any more: a smaller learning_rate is needed")
    return means
