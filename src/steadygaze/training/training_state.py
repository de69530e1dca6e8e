"""Where a stage of training stands: all that the next step depends on, and nothing else.

`pack` and `unpack` turn it into named tensors and JSON and back, so a checkpoint needs no pickle.
"""

import dataclasses
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import torch
from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn

from steadygaze.core.random_key import RandomKey, generator_states, set_generator_states
from steadygaze.core.settings import build
from steadygaze.core.tensor_files import layout, layout_difference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.technique import Technique

PLAIN = ("epoch", "step", "best_score", "best_loss", "best_epoch", "history")
"""What is written as it is."""
RECORDED = frozenset({"stage", "epoch", "terms"})
"""What every record of an epoch has."""


@dataclass
class TrainingState:
    technique: Technique
    model: Model
    modules: nn.ModuleDict
    objective: nn.Module  # model and modules, as the device wants them wrapped
    parameters_by_player: dict[str, list[nn.Parameter]]  # by player
    optimizer: AcceleratedOptimizer
    stream: tuple[int, ...]  # what the order of the batches is derived from, beside the epoch
    key: RandomKey  # what is drawn in a step is drawn from its child of that number
    schedule: str
    steps: int  # at most, over all epochs of the stage
    epoch: int = 0  # finished epochs
    step: int = 0  # finished steps
    best_score: float = -1.0
    best_loss: float = 0.0
    best_epoch: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)  # `weights` at the best epoch, on the CPU
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def progress(self) -> float:
        """Share of the steps already taken."""
        return self.step / self.steps

    def weights(self) -> dict[str, Tensor]:
        """Of model and modules, by the names that `Stage.trains` speaks of."""
        return {
            **_prefixed("model.", self.model.state_dict()),
            **_prefixed("modules.", self.modules.state_dict()),
        }

    def load(self, weights: dict[str, Tensor]) -> None:
        self.model.load_state_dict(under("model.", weights))
        self.modules.load_state_dict(under("modules.", weights))

    def keep_if_best(self, score: float, loss: float) -> None:
        """Of equal scores the smaller loss: where texts are easy a model guesses right long before it is sure."""
        if (score, -loss) > (self.best_score, -self.best_loss):
            self.best_score, self.best_loss, self.best_epoch = score, loss, self.epoch
            self.best = {name: value.to("cpu", copy=True) for name, value in self.weights().items()}

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors by name, and what JSON can hold."""
        optimiser, scaler = self.optimizer.state_dict(), self.optimizer.scaler
        tensors = {
            **_prefixed("now/", self.weights()),
            **_prefixed("best/", self.best),
            **_prefixed("random/", generator_states()),
            **_prefixed(
                "optimiser/", {f"{i}/{name}": v for i, e in optimiser["state"].items() for name, v in e.items()}
            ),
        }
        plain = {
            "technique": dataclasses.asdict(self.technique),
            "groups": optimiser["param_groups"],
            "moments": sum(map(len, optimiser["state"].values())),
            "scaler": None if scaler is None else scaler.state_dict(),
            **{name: getattr(self, name) for name in PLAIN},
        }
        return tensors, plain

    def fault(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> str | None:
        """What is wrong with what `pack` is said to have made of a state like this one; None where nothing is."""
        wanted, now = layout(self.weights()), under("now/", tensors)
        best = under("best/", tensors) or now
        for part, right in ((now, wanted), (best, wanted), (under("random/", tensors), layout(generator_states()))):
            if (difference := layout_difference(layout(part), right)) is not None:
                return difference
        found = under("optimiser/", tensors)
        if len(found) != plain["moments"]:
            return f"{plain['moments']} tensors of the optimizer were saved, and {len(found)} are there"
        return self._moments_fault(found) or self._plain_fault(plain)

    def _moments_fault(self, found: dict[str, Tensor]) -> str | None:
        """A moment has the shape of its parameter; a count is a scalar."""
        parameters = [one for group in self.optimizer.param_groups for one in group["params"]]
        for name, value in found.items():
            index, _, entry = name.partition("/")
            if not index.isdecimal() or int(index) >= len(parameters):
                return f"the optimizer's tensor {name!r:.60} belongs to no parameter"
            shape = torch.Size() if entry == "step" else parameters[int(index)].shape
            if value.shape != shape or not value.is_floating_point():
                return f"the optimizer's tensor {name!r:.60} has shape {tuple(value.shape)}, expected {tuple(shape)}"
        return None

    def _plain_fault(self, plain: dict[str, Any]) -> str | None:
        kinds = {"epoch": int, "step": int, "best_score": float, "best_loss": float, "best_epoch": int, "history": list}
        for name, kind in kinds.items():
            if not isinstance(plain[name], kind) or isinstance(plain[name], bool):
                return f"{name} is {plain[name]!r:.60}"
        if not isinstance(plain["technique"], dict):
            return "the settings of its technique are invalid"
        if not 0 <= plain["best_epoch"] <= plain["epoch"] or not are_records(
            plain["history"], plain["epoch"], RECORDED
        ):
            return "its history of epochs is invalid"
        right = self.optimizer.state_dict()["param_groups"]
        groups = plain["groups"] if isinstance(plain["groups"], list) else []
        shapes = [[group.keys(), group["params"]] for group in right]
        if [[group.keys(), group.get("params")] if isinstance(group, dict) else None for group in groups] != shapes:
            return "the optimizer's groups of parameters are others"
        return None

    def unpack(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """The other way round, into a state made for the same stage."""
        self.technique = build(type(self.technique), plain["technique"])
        self.load(under("now/", tensors))
        self.best = under("best/", tensors)
        set_generator_states(under("random/", tensors))
        entries: dict[int, dict[str, Tensor]] = {}
        for name, value in under("optimiser/", tensors).items():
            index, _, entry = name.partition("/")
            entries.setdefault(int(index), {})[entry] = value
        self.optimizer.load_state_dict({"state": entries, "param_groups": plain["groups"]})
        if self.optimizer.scaler is not None:
            self.optimizer.scaler.load_state_dict(plain["scaler"])
        for name in PLAIN:
            setattr(self, name, plain[name])


def are_records(history: Any, least: int = 0, keys: Set[str] = frozenset()) -> bool:
    """Whether this is a list of at least so many records of epochs, which have these keys."""
    if not isinstance(history, list) or len(history) < least:
        return False
    return all(isinstance(one, dict) and keys <= one.keys() for one in history)


def _prefixed(prefix: str, values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value.detach().cpu().contiguous() for name, value in values.items()}


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose name begins so, without that beginning."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
