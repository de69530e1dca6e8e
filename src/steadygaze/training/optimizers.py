"""How training runs, whatever the technique.

Departs from Jain & Wallace 2019 (arXiv:1902.10186), whose step size, decay, batches and AMSGrad these are: the epoch is
chosen by macro-F1 on validation data, where they take ROC-AUC; training stops after 3 epochs without a better one;
gradients are clipped at 5; word vectors do not decay; pairs too are read 8 times, where they read them 10 times; one
embedding serves both towers of a pair.

Few texts make few steps: 150 texts read 8 times are 40, after which nothing is learnt yet.  So where 8 epochs are fewer
than 300 steps (under 1,200 texts in batches of 32) the texts are read as often as makes 300, and patience grows in the
same proportion.  Whoever says how many epochs there are to be gets as many.

An epoch no better than guessing does not count against patience: what has not begun cannot have ended.  Guesses that
do not look at the text, whatever share each label gets, have a macro-F1 of 1/C or less.

Who moves which parameters, and how fast: Adam (AMSGrad).

One Adam serves all players: it keeps separate moments for every parameter and passes over those without a gradient, so
players in groups of their own move exactly as with an optimiser each.

What a parameter is part of says how it moves, wherever in a model that part stands:

    embedding, scorer        no weight decay
    the rest of a model      weight decay
    modules.                 none: a technique's own networks
    encoder                  `encoder_learning_rate`; by default 5e-5 in a transformer

A player's own step size holds for all that it moves, but for transformers: those learn at their own whoever moves them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

import torch
from torch import nn

from steadygaze.core.settings import Field, settings
from steadygaze.models.attention_layers import SCORES
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.techniques.technique import Player, Stage

EPOCHS = 8
"""Times the texts are read where nobody says how often."""
STEPS = 300
"""Fewer steps than this are too few to learn anything: more epochs are run then."""


@settings
class Training:
    """How training runs; defaults after Jain & Wallace 2019."""

    epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Times the training texts are read at most; by default 8, and with few texts as often as makes 300 steps."""
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    """Texts in a step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-3
    """Step size of Adam."""
    encoder_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Step size for the encoder; by default `learning_rate`, or 5e-5 for a transformer."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 1e-5
    """L2 on all of a model but its word vectors (rare words would vanish) and its scorer."""
    amsgrad: bool = True
    """The variant of Adam that never forgets a large gradient."""
    clip: Annotated[float, Field(gt=0)] = 5.0
    """Longest gradient; a longer one is shortened to it."""
    schedule: Literal["constant", "linear"] = "constant"
    """Whether the step size stays or falls linearly to zero over a stage."""
    patience: Annotated[int, Field(ge=1)] = 3
    """Epochs without a better validation macro-F1 before training stops; those no better than guessing do not count."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    """Mixed precision, on a GPU."""

    def longest(self, steps: int) -> int:
        """Epochs at most, of so many steps each."""
        return self.epochs or max(EPOCHS, -(-STEPS // steps))

    def patient(self, steps: int) -> int:
        """`patience`, and where more epochs than usual are read for want of steps, in proportion."""
        return self.patience if self.epochs else -(-self.patience * self.longest(steps) // EPOCHS)


TRANSFORMER_RATE = 5e-5
SPARED = (nn.Embedding, *SCORES.values())
"""Without weight decay."""


def named_parameters(model: nn.Module, modules: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    """Every parameter by the name that `Stage.trains` and `Player.trains` speak of."""
    named = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
    for key, module in modules.items():
        named |= {f"modules.{key}.{name}": parameter for name, parameter in module.named_parameters()}
    return named


def matching_parameters(named: Mapping[str, nn.Parameter], prefixes: Iterable[str]) -> dict[str, nn.Parameter]:
    """Those that stand under one of the prefixes and may move."""
    prefixes = tuple(prefixes)
    return {name: value for name, value in named.items() if name.startswith(prefixes) and value.requires_grad}


def freeze_parameters(named: Mapping[str, nn.Parameter], stage: Stage, players: Iterable[Player]) -> None:
    """Freeze what the stage does not train or no player moves."""
    moving = matching_parameters(
        matching_parameters(named, stage.trains), [prefix for player in players for prefix in player.trains]
    )
    for name, parameter in named.items():
        parameter.requires_grad_(name in moving)


def parameter_groups(
    named: Mapping[str, nn.Parameter], players: Sequence[Player]
) -> dict[str, dict[str, nn.Parameter]]:
    """What each player moves; nothing, where the stage has frozen all of it."""
    found = {player.name: matching_parameters(named, player.trains) for player in players}
    owner: dict[str, str] = {}
    for player in players:
        if not any(name.startswith(player.trains) for name in named):
            raise ValueError(f"player {player.name!r} has no parameters to move: nothing matches {player.trains}")
        for name in found[player.name]:
            if owner.setdefault(name, player.name) != player.name:
                raise ValueError(f"players {owner[name]!r} and {player.name!r} both move {name}; one must leave it")
    return found


def make_optimizer(
    model: nn.Module, modules: Mapping[str, nn.Module], players: Sequence[Player], training: Training
) -> torch.optim.Adam:
    """Adam over all that moves, in groups of one player, step size and decay."""
    networks, named = [model, *modules.values()], named_parameters(model, modules)
    usual = dict.fromkeys(_inside(networks, Encoder), training.encoder_learning_rate or training.learning_rate)
    fixed = dict.fromkeys(_inside(networks, Transformer), training.encoder_learning_rate or TRANSFORMER_RATE)
    decaying = set(model.parameters()) - _inside([model], *SPARED)
    groups: dict[tuple[str, float, float], list[nn.Parameter]] = {}
    for player in players:
        for parameter in matching_parameters(named, player.trains).values():
            own = usual.get(parameter, training.learning_rate) if player.learning_rate is None else player.learning_rate
            rate = fixed.get(parameter, own)
            key = player.name, rate, training.weight_decay if parameter in decaying else 0.0
            groups.setdefault(key, []).append(parameter)
    parameters = [
        {"params": members, "player": player, "lr": rate, "rate": rate, "weight_decay": decay}
        for (player, rate, decay), members in groups.items()
    ]
    return torch.optim.Adam(parameters, amsgrad=training.amsgrad, fused=True)


def set_rates(adam: torch.optim.Optimizer, schedule: str, progress: float) -> None:
    """The step sizes after this share of the stage's steps."""
    if schedule == "linear":
        for group in adam.param_groups:
            group["lr"] = group["rate"] * (1 - progress)


def _inside(networks: Iterable[nn.Module], *kinds: type[nn.Module]) -> set[nn.Parameter]:
    """The parameters of every part of these kinds."""
    parts = (part for network in networks for part in network.modules() if isinstance(part, kinds))
    return {parameter for part in parts for parameter in part.parameters()}
