"""Who moves which parameters, and how fast: Adam (AMSGrad).

One Adam serves all players: it keeps separate moments for every parameter and passes over those without a gradient, so
players in groups of their own move exactly as with an optimiser each.

Weight decay acts on encoder and decoder, not on embeddings and not on attention.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import nn

from steadygaze.encode.transformer import Transformer
from steadygaze.model import Classifier
from steadygaze.objective.technique import Player, Stage
from steadygaze.train.settings import Training

TRANSFORMER_RATE = 5e-5


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
    named: Mapping[str, nn.Parameter], players: Sequence[Player], model: Classifier, training: Training
) -> torch.optim.Adam:
    """Adam over all that moves, in groups of one player, step size and decay."""
    embeddings = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    vectors = {id(parameter) for module in embeddings for parameter in module.parameters()}
    groups: dict[tuple[str, float, float], list[nn.Parameter]] = {}
    for player in players:
        for name, parameter in chosen(named, player.trains).items():
            decays = name.startswith(("model.encoder.", "model.decoder.")) and id(parameter) not in vectors
            key = player.name, _rate(player, name, model, training), training.weight_decay if decays else 0.0
            groups.setdefault(key, []).append(parameter)
    parameters = [
        {"params": members, "player": player, "lr": rate, "rate": rate, "weight_decay": decay}
        for (player, rate, decay), members in groups.items()
    ]
    return torch.optim.Adam(parameters, amsgrad=training.amsgrad, fused=True)


def set_rates(adam: torch.optim.Optimizer, training: Training, progress: float) -> None:
    """The step sizes after this share of the stage's steps."""
    if training.schedule == "linear":
        for group in adam.param_groups:
            group["lr"] = group["rate"] * (1 - progress)


def _rate(player: Player, name: str, model: Classifier, training: Training) -> float:
    """The player's own step size wins; else the encoder's, where it has one; else the run's."""
    if player.learning_rate is not None:
        return player.learning_rate
    if not name.startswith("model.encoder."):
        return training.learning_rate
    usual = TRANSFORMER_RATE if isinstance(model.encoder, Transformer) else training.learning_rate
    return training.encoder_learning_rate or usual
