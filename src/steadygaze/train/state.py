"""Where a stage of training stands: all that the next step depends on, and nothing else.

`pack` and `unpack` turn it into named tensors and JSON and back, so a checkpoint needs no pickle.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from accelerate.optimizer import AcceleratedOptimizer
from torch import Tensor, nn

from steadygaze.config import build
from steadygaze.maths.chance import Chance
from steadygaze.objective.technique import Technique
from steadygaze.reader import Reader
from steadygaze.train.seed import generator_states, set_generator_states

PLAIN = ("epoch", "step", "best_score", "best_loss", "best_epoch", "history")
"""What is written as it is."""


@dataclass
class State:
    technique: Technique
    model: Reader
    modules: nn.ModuleDict
    objective: nn.Module  # model and modules, as the device wants them wrapped
    moved: dict[str, list[nn.Parameter]]  # by player
    optimiser: AcceleratedOptimizer
    stream: tuple[int, ...]  # what the order of the batches is derived from, beside the epoch
    chance: Chance  # what is drawn in a step is drawn from its child of that number
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
        optimiser, scaler = self.optimiser.state_dict(), self.optimiser.scaler
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
            "scaler": None if scaler is None else scaler.state_dict(),
            **{name: getattr(self, name) for name in PLAIN},
        }
        return tensors, plain

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
        self.optimiser.load_state_dict({"state": entries, "param_groups": plain["groups"]})
        if self.optimiser.scaler is not None:
            self.optimiser.scaler.load_state_dict(plain["scaler"])
        for name in PLAIN:
            setattr(self, name, plain[name])


def _prefixed(prefix: str, values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}{name}": value.detach().cpu().contiguous() for name, value in values.items()}


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose name begins so, without that beginning."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
