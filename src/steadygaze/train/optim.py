"""Who moves which parameters, and how fast: Adam (AMSGrad).

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

import torch
from torch import nn

from steadygaze.encode.encoder import Encoder
from steadygaze.encode.transformer import Transformer
from steadygaze.objective.technique import Player, Stage
from steadygaze.score import SCORES
from steadygaze.train.settings import Training

TRANSFORMER_RATE = 5e-5
SPARED = (nn.Embedding, *SCORES.values())
"""Without weight decay."""


def named_parameters(model: nn.Module, modules: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    """Every parameter by the name that `Stage.trains` and `Player.trains` speak of."""
    named = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
    for key, module in modules.items():
        named |= {f"modules.{key}.{name}": parameter for name, parameter in module.named_parameters()}
    return named


def chosen(named: Mapping[str, nn.Parameter], prefixes: Iterable[str]) -> dict[str, nn.Parameter]:
    """Those that stand under one of the prefixes and may move."""
    prefixes = tuple(prefixes)
    return {name: value for name, value in named.items() if name.startswith(prefixes) and value.requires_grad}


def hold(named: Mapping[str, nn.Parameter], stage: Stage, players: Iterable[Player]) -> None:
    """Freeze what the stage does not train or no player moves."""
    moving = chosen(chosen(named, stage.trains), [prefix for player in players for prefix in player.trains])
    for name, parameter in named.items():
        parameter.requires_grad_(name in moving)


def parts(named: Mapping[str, nn.Parameter], players: Sequence[Player]) -> dict[str, dict[str, nn.Parameter]]:
    """What each player moves; nothing, where the stage has frozen all of it."""
    found = {player.name: chosen(named, player.trains) for player in players}
    owner: dict[str, str] = {}
    for player in players:
        if not any(name.startswith(player.trains) for name in named):
            raise ValueError(f"player {player.name!r} has no parameters to move: nothing matches {player.trains}")
        for name in found[player.name]:
            if owner.setdefault(name, player.name) != player.name:
                raise ValueError(f"players {owner[name]!r} and {player.name!r} both move {name}; one must leave it")
    return found


def optimiser(
    model: nn.Module, modules: Mapping[str, nn.Module], players: Sequence[Player], training: Training
) -> torch.optim.Adam:
    """Adam over all that moves, in groups of one player, step size and decay."""
    networks, named = [model, *modules.values()], named_parameters(model, modules)
    usual = dict.fromkeys(_inside(networks, Encoder), training.encoder_learning_rate or training.learning_rate)
    fixed = dict.fromkeys(_inside(networks, Transformer), training.encoder_learning_rate or TRANSFORMER_RATE)
    decaying = set(model.parameters()) - _inside([model], *SPARED)
    groups: dict[tuple[str, float, float], list[nn.Parameter]] = {}
    for player in players:
        for parameter in chosen(named, player.trains).values():
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
