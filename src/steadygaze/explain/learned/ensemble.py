"""Fitting CXPlain: members one after the other, each to the worth of units of inputs drawn with replacement.

An input that is drawn twice counts twice; one that is not drawn is not read.  Of each member the epoch is kept whose
divergence from the worth of validation units is least.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.errors import UserError
from steadygaze.explain.learned.cxplain import CXPlain, members
from steadygaze.explain.learned.effects import Effects
from steadygaze.explain.learned.views import Inputs, Rows
from steadygaze.infer import inference
from steadygaze.maths import divergence
from steadygaze.train.progress import Watcher
from steadygaze.train.seed import derive, own_chance


@dataclass(frozen=True)
class Weighed:
    """Inputs, and what their units are worth."""

    inputs: Inputs
    effects: Effects

    def lost(self, how: CXPlain, net: nn.Module, rows: Rows) -> Tensor:
        """KL(Ω ‖ A) of these inputs.  (B,)"""
        views = self.inputs.views(rows)
        scores: Tensor = net(views)
        worth = self.effects.shares(rows, views.able, how.epsilon).to(scores.dtype)
        lowest = torch.finfo(scores.dtype).min  # not −∞, of which 0 times as much is not a number
        return divergence.kl_logits(worth, scores.masked_fill(~views.able, lowest))


@dataclass
class Ensemble:
    how: CXPlain
    make: Callable[[], nn.Module]
    """Draws a fresh network, views -> (B,D), from torch's own generator, which is seeded before the call."""
    train: Weighed
    validation: Weighed
    watcher: Watcher
    device: torch.device
    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def execute(self) -> nn.ModuleDict:
        """The members, in evaluation mode."""
        self.watcher.start(self.how.members, self.how.members * self.how.epochs, self._steps)
        try:
            with own_chance():
                torch.manual_seed(derive(self.seed))
                nets = members(self.how, self.make).to(self.device)
                for number, net in enumerate(nets.values()):
                    torch.manual_seed(derive(self.seed, number))
                    self._member(number, net)
            return nets.eval().requires_grad_(False)
        finally:
            self.watcher.stop()

    def _member(self, number: int, net: nn.Module) -> None:
        optimiser = torch.optim.Adam(net.parameters(), self.how.learning_rate, foreach=True)
        drawn, name = self._drawn(number), f"member {number + 1}"
        best, at, weights = float("inf"), 0, net.state_dict()
        for epoch in range(self.how.epochs):
            learnt = self._epoch(net, optimiser, drawn, (number, epoch))
            left = divergent(self.how, net, self.validation)
            record = {"stage": name, "epoch": epoch + 1, "terms": {"divergence": learnt}, "divergence": left}
            self.history.append(record)
            self.watcher.epoch(record)
            if left < best:
                best, at = left, epoch
                weights = {key: value.detach().clone() for key, value in net.state_dict().items()}
            if epoch - at >= self.how.patience:
                self.watcher.skip(self.how.epochs - epoch - 1)
                break
        net.load_state_dict(weights)

    def _epoch(
        self, net: nn.Module, optimiser: torch.optim.Optimizer, drawn: NDArray[np.int64], when: tuple[int, int]
    ) -> float:
        """The mean divergence on the way."""
        net.train()
        total = torch.zeros((), device=self.device)
        for rows in self.train.inputs.shuffled(self.how.batch_size, (self.seed, *when)):
            rows = rows[drawn[rows] > 0]
            if not len(rows):
                continue
            times = torch.from_numpy(drawn[rows]).to(self.device)
            lost = self.train.lost(self.how, net, rows)
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward((lost * times).sum() / times.sum())
            optimiser.step()
            total += (lost.detach() * times).sum()
            self.watcher.step(f"member {when[0] + 1}", when[1], {"divergence": lost.detach()})
        return _finite(float(total) / max(1, int(drawn.sum())))

    def _drawn(self, number: int) -> NDArray[np.int64]:
        """How often this member reads each input.  (N,)"""
        many = len(self.train.inputs)
        if self.how.members == 1:
            return np.ones(many, np.int64)
        chance = np.random.default_rng((self.seed, number))
        return np.bincount(chance.integers(many, size=many), minlength=many)

    @property
    def _steps(self) -> int:
        return -(-len(self.train.inputs) // self.how.batch_size)


def divergent(how: CXPlain, net: nn.Module, weighed: Weighed) -> float:
    """The mean of KL(Ω ‖ A) over a split, in nats."""
    with inference(net):
        parts = [weighed.lost(how, net, rows).double().sum() for rows in weighed.inputs.once(how.batch_size * 8)]
    return _finite(float(torch.stack(parts).sum()) / len(weighed.inputs))


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise UserError("the loss is not a number any more: a smaller learning_rate is needed")
    return value
