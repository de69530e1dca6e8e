"""State of a training stage: everything that the next step depends on.

`pack` and `unpack` convert it to named tensors and JSON and back, so that a checkpoint needs no pickle.
"""

import dataclasses
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn

from steadygaze.core.random_key import RandomKey, generator_states, set_generator_states
from steadygaze.core.settings import build
from steadygaze.core.tensor_files import layout, layout_difference
from steadygaze.models.inference import Model
from steadygaze.techniques.technique import Technique
from steadygaze.training.training_loop import StageState

PLAIN = ("epoch", "step", "best_score", "best_loss", "best_is_sound", "best_epoch", "history")
"""Fields stored as JSON."""
RECORDED = frozenset({"stage", "epoch", "terms"})
"""Required keys of an epoch's record."""


@dataclass(kw_only=True)
class TrainingState(StageState):
    """State of a stage of a technique; `networks` are model and modules, wrapped for the device."""

    technique: Technique
    model: Model
    modules: nn.ModuleDict
    accelerated: AcceleratedOptimizer  # wraps `optimizer` for the device and the precision
    stream: tuple[int, ...]  # seed of the order of the batches, with the epoch
    key: RandomKey  # its child with the step's number is the key of that step
    schedule: str
    steps: int  # maximum over all epochs of the stage

    @property
    def progress(self) -> float:
        """Completed share of the steps."""
        return self.step / self.steps

    def weights(self) -> dict[str, Tensor]:
        """Return the weights of model and modules, by their names in `Stage.trains`."""
        return {
            **_prefixed("model.", self.model.state_dict()),
            **_prefixed("modules.", self.modules.state_dict()),
        }

    def load(self, weights: dict[str, Tensor]) -> None:
        self.model.load_state_dict(under("model.", weights))
        self.modules.load_state_dict(under("modules.", weights))

    def pack(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the tensors by name, and the rest as JSON values."""
        optimizer, scaler = self.optimizer.state_dict(), self.accelerated.scaler
        tensors = {
            **_prefixed("now/", self.weights()),
            **_prefixed("best/", self.best),
            **_prefixed("random/", generator_states()),
            **_prefixed(
                "optimizer/", {f"{i}/{name}": v for i, e in optimizer["state"].items() for name, v in e.items()}
            ),
        }
        plain = {
            "technique": dataclasses.asdict(self.technique),
            "groups": optimizer["param_groups"],
            "moments": sum(map(len, optimizer["state"].values())),
            "scaler": None if scaler is None else scaler.state_dict(),
            **{name: getattr(self, name) for name in PLAIN},
        }
        return tensors, plain

    def fault(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> str | None:
        """Return the first error in a packed state of the same stage; None if it is valid."""
        expected, now = layout(self.weights()), under("now/", tensors)
        best = under("best/", tensors) or now
        for part, right in ((now, expected), (best, expected), (under("random/", tensors), layout(generator_states()))):
            if (difference := layout_difference(layout(part), right)) is not None:
                return difference
        moments = under("optimizer/", tensors)
        if len(moments) != plain["moments"]:
            return f"expected {plain['moments']} tensors of the optimizer, found {len(moments)}"
        return self._moments_fault(moments) or self._plain_fault(plain)

    def _moments_fault(self, moments: dict[str, Tensor]) -> str | None:
        """Check that a moment has the shape of its parameter, and a count is a scalar."""
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        for name, value in moments.items():
            index, _, entry = name.partition("/")
            if not index.isdecimal() or int(index) >= len(parameters):
                return f"the optimizer's tensor {name!r:.60} does not belong to a parameter"
            shape = torch.Size() if entry == "step" else parameters[int(index)].shape
            if value.shape != shape or not value.is_floating_point():
                return f"the optimizer's tensor {name!r:.60} has shape {tuple(value.shape)}, expected {tuple(shape)}"
        return None

    def _plain_fault(self, plain: dict[str, Any]) -> str | None:
        if not isinstance(plain["best_is_sound"], bool):
            return f"best_is_sound is {plain['best_is_sound']!r:.60}"
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
            return "the optimizer's groups of parameters differ"
        return None

    def unpack(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Restore a packed state of the same stage."""
        self.technique = build(type(self.technique), plain["technique"])
        self.load(under("now/", tensors))
        self.best = under("best/", tensors)
        set_generator_states(under("random/", tensors))
        entries: dict[int, dict[str, Tensor]] = {}
        for name, value in under("optimizer/", tensors).items():
            index, _, entry = name.partition("/")
            entries.setdefault(int(index), {})[entry] = value
        self.optimizer.load_state_dict({"state": entries, "param_groups": plain["groups"]})
        if self.accelerated.scaler is not None:
            self.accelerated.scaler.load_state_dict(plain["scaler"])
        for name in PLAIN:
            setattr(self, name, plain[name])


def are_records(history: Any, least: int = 0, keys: Set[str] = frozenset()) -> bool:
    """Return True for a list of at least `least` records of epochs with these keys."""
    if not isinstance(history, list) or len(history) < least:
        return False
    return all(isinstance(record, dict) and keys <= record.keys() for record in history)


def _prefixed(prefix: str, values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value.detach().cpu().contiguous() for name, value in values.items()}


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
