"""RNP: a generator selects, a predictor reads what is selected, and both want the label to be guessed right.

Lei, Barzilay & Jaakkola, "Rationalizing Neural Predictions", EMNLP 2016 (arXiv:1606.04155); Eq. 4 of Yu et al. 2021
(arXiv:2110.13880), whose baseline it is here.

    predictor    minimises  ℓ(y, f(M ⊙ x))           M drawn from q: objective/rationalising.py
    generator    minimises  the expectation of a cost over M, by one of three estimates of its gradient

    estimator           pulls at
    reinforce           (c − b) · ln q(M),   c = tanh ℓ + penalties
    straight-through    ℓ + penalties through π, as if π were what was drawn                    biased
    gumbel              ℓ + penalties through softmax((ln q + Gumbel noise) / `temperature`)    biased

b is the mean cost of the last 200 batches: it knows nothing of M, and so takes nothing but variance.  `reinforce` is
unbiased for E_q[c], the cost of a selection as it is drawn, exploration included.  Of one sentence, only (1 − ε) π of q
is the generator's: that gradient is 1 − ε times the one of E_π[c], and exploration turns it nowhere else.

Where single tokens are selected, each has a coin of its own.  `reinforce` tosses them; evaluation takes the best
`spans` windows of `share` by their chances.  The other two select just so in training too where there is a share (after
noise was added, by gumbel); there penalties have nothing to do.

Departs from Lei et al.: as in Yu et al.'s reimplementation sentences are selected by default, states are pooled by
their maximum, the reward is −tanh ℓ, there is a baseline, and evaluation draws nothing.  Pinned by
tests/objective/test_rnp.py.
"""

import dataclasses
from typing import Annotated, Literal, Self

from torch import Tensor

from steadygaze.config import Field, settings
from steadygaze.maths import masked
from steadygaze.maths.windows import best
from steadygaze.objective.rationalising import Drawn, Rationalising, draw, lost, passed, toss
from steadygaze.objective.technique import Given, Player
from steadygaze.rationaliser import Looked, Rationaliser, Way
from steadygaze.types import Batch, Terms

KEPT = 200
"""Batches whose mean cost is the baseline."""


@settings
class Rnp(Rationalising):
    """A generator selects a rationale, a predictor reads it alone (Lei et al. 2016)."""

    estimator: Literal["reinforce", "straight-through", "gumbel"] = "reinforce"
    """How the generator learns through a selection that is drawn."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Of gumbel: the lower, the nearer to what was drawn, and the noisier."""
    costs: tuple[float, ...] = ()
    """The mean costs of the last batches, which the run fills in: there is nothing to set."""

    def loss(self, model: Rationaliser, batch: Batch, given: Given) -> Terms:
        looked = model.look(batch)
        drawn = self._drawn(looked, batch, given)
        if self.estimator != "reinforce":
            selection = looked.spread(self._through(looked, batch, drawn))
            coined = self.granularity == "token" and self.share is None
            return {
                "task": lost(model.read(batch, selection), batch),
                **(self.penalties(selection, batch.mask) if coined else {}),
            }
        selection = looked.spread(drawn.units).to(looked.scores.dtype)
        terms = {"task": lost(model.read(batch, selection), batch), **self.penalties(selection, batch.mask)}
        return {**terms, "policy": (cost(terms) - self.baseline) * drawn.chance}

    def way(self) -> Way:
        return Way(self.granularity, self.granularity == "token", self.share, self.spans)

    def players(self) -> tuple[Player, ...]:
        if self.estimator == "reinforce":
            return self.two(("task",), ("policy",))
        coined = self.granularity == "token" and self.share is None
        return self.two(("task",), ("task", "sparsity", "continuity") if coined else ("task",))

    def next(self, terms: Terms) -> Self:
        if self.estimator != "reinforce":
            return self
        return dataclasses.replace(self, costs=(*self.costs, float(cost(terms).mean()))[-KEPT:])

    @property
    def baseline(self) -> float:
        """b; 0 before anything was drawn."""
        return sum(self.costs) / max(1, len(self.costs))

    def _drawn(self, looked: Looked, batch: Batch, given: Given) -> Drawn:
        if self.granularity == "sentence":
            return draw(looked, batch, given.chance, self.exploration)
        return toss(looked, batch, given.chance, self.exploration, self.share)

    def _through(self, looked: Looked, batch: Batch, drawn: Drawn) -> Tensor:
        """What is selected, with a gradient that is not quite its own.  (B,U)"""
        noisy = drawn.noisy / self.temperature
        soft = looked.probability
        if self.estimator == "gumbel":
            soft = masked.softmax(noisy, looked.real) if self.granularity == "sentence" else noisy.sigmoid()
        if self.granularity == "sentence" or self.share is None:
            return passed(drawn.units, soft)
        return passed(best(soft, batch.mask, self.share, self.spans), soft)


def cost(terms: Terms) -> Tensor:
    """What a selection cost, as numbers: nobody learns through it.  (B,)"""
    extra = [terms[name] for name in ("sparsity", "continuity") if name in terms]
    return (terms["task"].tanh() + sum(extra)).detach()
