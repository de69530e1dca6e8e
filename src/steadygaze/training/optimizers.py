"""Settings of training, and the optimizer: Adam (AMSGrad) for all players.

Learning rate, decay, batch size and AMSGrad follow Jain & Wallace 2019 (arXiv:1902.10186).  Differs from them:
validation macro-F1 selects the epoch, not ROC-AUC.  Training stops after 3 epochs without improvement.  Gradients are
clipped at 5.  Word vectors have no decay.  Pairs train for 8 epochs, not 10, and share one embedding.

Small datasets train for more epochs: 150 texts and 8 epochs make only 40 steps, too few to learn.  If 8 epochs are
fewer than 300 steps (under 1,200 texts in batches of 32), the epochs increase to 300 steps, and patience in proportion.
An explicit number of epochs is never changed.

Epochs no better than guessing do not count against patience.  A constant or random guess has a macro-F1 of at most 1/C.

An epoch is degenerate if its attention is collapsed or its label constant.  The epoch is selected among the others, if
one of them is better than guessing, also with `select = last`; training continues while the best of them improves.

One Adam serves all players.  It keeps separate moments for every parameter and skips those without a gradient, so that
each player's group updates exactly as with its own optimizer.

The type of a module determines its optimization:

    embedding, scorer        no weight decay
    the rest of a model      weight decay
    modules.                 no weight decay: a technique's auxiliary networks
    encoder                  `encoder_learning_rate`; 5e-5 by default for a transformer

A player's learning rate applies to all of its parameters, except those of transformers.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

import torch
from torch import nn

from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.models.attention_layers import SCORES
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.techniques.technique import Player, Stage

EPOCHS = 8
"""Default number of epochs."""
STEPS = 300
"""Minimum number of steps by default; small datasets train for more epochs."""


@settings
class Training:
    """Settings of training; defaults follow Jain & Wallace 2019."""

    epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Maximum number of epochs; default 8, or enough for 300 steps on small datasets."""
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    """Texts per step."""
    learning_rate: Annotated[float, Field(gt=0, le=10), SearchRange(1e-4, 1e-2, log=True)] = 1e-3
    """Learning rate of Adam."""
    encoder_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Learning rate of the encoder; default `learning_rate`, or 5e-5 for a transformer."""
    weight_decay: Annotated[float, Field(ge=0, le=1), SearchRange(1e-6, 1e-2, log=True)] = 1e-5
    """L2 penalty on the model, except its word vectors (rare words would vanish) and its scorer."""
    amsgrad: bool = True
    """Use AMSGrad, which keeps the maximum of the second moments."""
    clip: Annotated[float, Field(gt=0)] = 5.0
    """Maximum norm of the gradient."""
    schedule: Literal["constant", "linear"] = "constant"
    """Constant learning rate, or linear decay to zero over a stage."""
    select: Literal["best", "last"] = "best"
    """Select the epoch with the best validation macro-F1, or the last; `last` trains all epochs."""
    patience: Annotated[int, Field(ge=1)] = 3
    """Epochs without a better validation macro-F1 before training stops; epochs at guessing level do not count."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    """Mixed precision, on a GPU."""
    cuda_graphs: bool = True
    """On a GPU, train in CUDA graphs, and several models as one program."""

    def longest(self, steps: int) -> int:
        """Return the maximum number of epochs, with `steps` steps each."""
        return self.epochs or max(EPOCHS, -(-STEPS // steps))

    def patient(self, steps: int) -> int:
        """Return the patience, scaled in proportion if a small dataset trains for more epochs."""
        return self.patience if self.epochs else -(-self.patience * self.longest(steps) // EPOCHS)


TRANSFORMER_RATE = 5e-5
WITHOUT_DECAY = (nn.Embedding, *SCORES.values())
"""Modules without weight decay."""


def named_parameters(model: nn.Module, modules: Mapping[str, nn.Module]) -> dict[str, nn.Parameter]:
    """Return every parameter by its name in `Stage.trains` and `Player.trains`."""
    parameters = {f"model.{name}": parameter for name, parameter in model.named_parameters()}
    for key, module in modules.items():
        parameters |= {f"modules.{key}.{name}": parameter for name, parameter in module.named_parameters()}
    return parameters


def matching_parameters(parameters: Mapping[str, nn.Parameter], prefixes: Iterable[str]) -> dict[str, nn.Parameter]:
    """Return the trainable parameters under one of the prefixes."""
    prefixes = tuple(prefixes)
    return {name: value for name, value in parameters.items() if name.startswith(prefixes) and value.requires_grad}


def player_parameters(
    parameters: Mapping[str, nn.Parameter], stage: Stage, players: Sequence[Player]
) -> dict[str, list[nn.Parameter]]:
    """Return the parameters of each player, none if the stage freezes them; freeze all other parameters."""
    in_stage = matching_parameters(parameters, stage.trains)
    groups = {player.name: matching_parameters(in_stage, player.trains) for player in players}
    owner: dict[str, str] = {}
    for player in players:
        if not any(name.startswith(player.trains) for name in parameters):
            raise ValueError(f"player {player.name!r} has no parameters: nothing matches {player.trains}")
        for name in groups[player.name]:
            if owner.setdefault(name, player.name) != player.name:
                raise ValueError(
                    f"players {owner[name]!r} and {player.name!r} both train {name}: remove it from one of them"
                )
    for name, parameter in parameters.items():
        parameter.requires_grad_(name in owner)
    return {name: list(group.values()) for name, group in groups.items()}


def make_optimizer(
    model: nn.Module, modules: Mapping[str, nn.Module], players: Sequence[Player], training: Training
) -> torch.optim.Adam:
    """Return Adam over all trainable parameters, in groups of one player, learning rate and decay."""
    networks, named_params = [model, *modules.values()], named_parameters(model, modules)
    default_rates = dict.fromkeys(_inside(networks, Encoder), training.encoder_learning_rate or training.learning_rate)
    fixed_rates = dict.fromkeys(_inside(networks, Transformer), training.encoder_learning_rate or TRANSFORMER_RATE)
    decaying = set(model.parameters()) - _inside([model], *WITHOUT_DECAY)
    groups: dict[tuple[str, float, float], list[nn.Parameter]] = {}
    for player in players:
        for parameter in matching_parameters(named_params, player.trains).values():
            default_rate = (
                default_rates.get(parameter, training.learning_rate)
                if player.learning_rate is None
                else player.learning_rate
            )
            rate = fixed_rates.get(parameter, default_rate)
            key = player.name, rate, training.weight_decay if parameter in decaying else 0.0
            groups.setdefault(key, []).append(parameter)
    parameters = [
        {"params": members, "player": player, "lr": rate, "rate": rate, "weight_decay": decay}
        for (player, rate, decay), members in groups.items()
    ]
    return torch.optim.Adam(parameters, amsgrad=training.amsgrad, fused=True)


def set_rates(adam: torch.optim.Optimizer, schedule: str, progress: float) -> None:
    """Set the learning rates after this share of the stage's steps."""
    if schedule == "linear":
        for group in adam.param_groups:
            group["lr"] = group["rate"] * (1 - progress)


def _inside(networks: Iterable[nn.Module], *kinds: type[nn.Module]) -> set[nn.Parameter]:
    """Return the parameters of all submodules of these types."""
    parts = (part for network in networks for part in network.modules() if isinstance(part, kinds))
    return {parameter for part in parts for parameter in part.parameters()}
