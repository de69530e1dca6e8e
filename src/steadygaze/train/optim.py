"""Who moves which parameters, and how fast: Adam (AMSGrad), one optimiser per player.

Weight decay acts on encoder and decoder, not on embeddings and not on attention.
"""

from collections.abc import Iterable, Mapping

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


def hold(named: Mapping[str, nn.Parameter], stage: Stage, players: Iterable[Player]) -> list[nn.Parameter]:
    """Freeze, for one stage, what it does not train or what no player moves; returns what was frozen."""
    moving = chosen(chosen(named, stage.trains), [prefix for player in players for prefix in player.trains])
    held = [parameter for name, parameter in named.items() if parameter.requires_grad and name not in moving]
    for parameter in held:
        parameter.requires_grad_(False)
    return held


def optimiser(
    player: Player, named: Mapping[str, nn.Parameter], model: Classifier, training: Training
) -> torch.optim.Adam:
    """Adam over the player's parameters."""
    rate = player.learning_rate or training.learning_rate
    slow = TRANSFORMER_RATE if isinstance(model.encoder, Transformer) else rate
    slow = training.encoder_learning_rate or slow
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in chosen(named, player.trains).items():
        decay = training.weight_decay if _decays(name) else 0.0
        groups.setdefault((slow if name.startswith("model.encoder.") else rate, decay), []).append(parameter)
    if not groups:
        raise ValueError(f"player {player.name!r} has no parameters to move: nothing matches {player.trains}")
    parameters = [{"params": members, "lr": lr, "weight_decay": decay} for (lr, decay), members in groups.items()]
    return torch.optim.Adam(parameters, amsgrad=training.amsgrad, fused=True)


def schedule(adam: torch.optim.Optimizer, training: Training, steps: int) -> torch.optim.lr_scheduler.LambdaLR:
    """The factor on the step size after so many of the stage's steps."""
    linear = training.schedule == "linear"
    return torch.optim.lr_scheduler.LambdaLR(adam, lambda step: max(0.0, 1 - step / steps) if linear else 1.0)


def _decays(name: str) -> bool:
    return name.startswith(("model.encoder.", "model.decoder.")) and "embedding" not in name
