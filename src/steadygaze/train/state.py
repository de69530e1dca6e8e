"""Where a stage of training stands: all that the next step depends on, and nothing else.

`pack` and `unpack` turn it into named tensors and JSON and back, so a checkpoint needs no pickle.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from steadygaze.config import build
from steadygaze.model import Classifier
from steadygaze.objective.technique import Technique
from steadygaze.train.seed import generator_states, set_generator_states


@dataclass
class State:
    technique: Technique
    model: Classifier
    modules: nn.ModuleDict
    objective: nn.Module  # model and modules, as the device wants them wrapped
    held: list[nn.Parameter]  # frozen for this stage only
    moved: dict[str, list[nn.Parameter]]  # by player
    optimisers: dict[str, torch.optim.Optimizer]
    schedules: dict[str, torch.optim.lr_scheduler.LambdaLR]
    random: torch.Generator
    stream: tuple[int, ...]  # what the order of the batches is derived from, beside the epoch
    epoch: int = 0  # finished epochs
    step: int = 0
    best_score: float = -1.0
    best_epoch: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)  # the model's weights at its best epoch, on the CPU
    history: list[dict[str, Any]] = field(default_factory=list)

    def keep_if_best(self, score: float) -> None:
        """A tie keeps the earlier epoch."""
        if score > self.best_score:
            self.best_score, self.best_epoch = score, self.epoch
            self.best = {name: value.detach().to("cpu", copy=True) for name, value in self.model.state_dict().items()}

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors by name, and what JSON can hold."""
        tensors = dict(_prefixed("model", self.model.state_dict()))
        tensors |= _prefixed("modules", self.modules.state_dict())
        tensors |= _prefixed("best", self.best)
        tensors |= _prefixed("random", generator_states(self.random))
        groups: dict[str, Any] = {}
        for player, optimiser in self.optimisers.items():
            values = optimiser.state_dict()
            groups[player] = values["param_groups"]
            for index, entries in values["state"].items():
                tensors |= _prefixed(f"optimiser/{player}/{index}", entries)
        plain = {
            "technique": dataclasses.asdict(self.technique),
            "groups": groups,
            "schedules": {player: schedule.last_epoch for player, schedule in self.schedules.items()},
            **{name: getattr(self, name) for name in ("epoch", "step", "best_score", "best_epoch", "history")},
        }
        return tensors, plain

    def unpack(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """The other way round, into a state made for the same stage."""
        self.technique = build(type(self.technique), plain["technique"])
        self.model.load_state_dict(_under("model", tensors))
        self.modules.load_state_dict(_under("modules", tensors))
        self.best = _under("best", tensors)
        for player, optimiser in self.optimisers.items():
            entries: dict[int, dict[str, Tensor]] = {}
            for name, value in _under(f"optimiser/{player}", tensors).items():
                index, _, entry = name.partition("/")
                entries.setdefault(int(index), {})[entry] = value
            optimiser.load_state_dict({"state": entries, "param_groups": plain["groups"][player]})
        for player, schedule in self.schedules.items():
            schedule.last_epoch = plain["schedules"][player]
        for name in ("epoch", "step", "best_score", "best_epoch", "history"):
            setattr(self, name, plain[name])
        set_generator_states(self.random, _under("random", tensors))


def _prefixed(prefix: str, values: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    return ((f"{prefix}/{name}", value.detach().cpu().contiguous()) for name, value in values.items())


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): value for name, value in tensors.items() if name.startswith(f"{prefix}/")}
