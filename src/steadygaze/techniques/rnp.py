"""RNP: a generator selects, a predictor reads what is selected, and both want the label to be guessed right.

Lei, Barzilay & Jaakkola, "Rationalizing Neural Predictions", EMNLP 2016 (arXiv:1606.04155); Eq. 4 of Yu et al. 2021
(arXiv:2110.13880), whose baseline it is here.

    predictor    minimises  ℓ(y, f(M ⊙ x))           M drawn from q: techniques/rationalizing.py
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
noise was added, by gumbel); there penalties have nothing to do.  Through a transformer, which leaves unselected tokens
out, these two hear of selected ones alone; a recurrent encoder reads zeros, and says what more would do.

Without a share all tokens of a text cost `sparsity`, and to guess between two classes costs tanh ln 2 = .6: at its
usual 1 nothing is selected at all.  0.1 to 0.3 is worth a try.

Departs from Lei et al.: as in Yu et al.'s reimplementation sentences are selected by default, states are pooled by
their maximum, the reward is −tanh ℓ, there is a baseline, and evaluation draws nothing.  Pinned by
tests/objective/test_rnp.py.
"""

from typing import Annotated, Literal

from torch import Tensor

from steadygaze.core.maths import masked
from steadygaze.core.maths.windows import best_windows, exact_windows
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import (
    IdleModules,
    RewardBaselineTechnique,
    SampledSelection,
    straight_through,
    task_loss,
)
from steadygaze.techniques.technique import LossContext, Player


@settings
class Rnp(RewardBaselineTechnique):
    """A generator selects a rationale, a predictor reads it alone (Lei et al. 2016)."""

    estimator: Literal["reinforce", "straight-through", "gumbel"] = "reinforce"
    """How the generator learns through a selection that is drawn."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Of gumbel: the lower, the nearer to what was drawn, and the noisier."""

    def loss(self, model: Rationalizer, batch: Batch, given: LossContext) -> Terms:
        looked = model.generate(batch)
        drawn = self.drawn(looked, batch, given)
        if self.estimator != "reinforce":
            selection = looked.spread(self._through(looked, batch, drawn))
            penalties = self.penalties(selection, batch.mask) if self.has_free_size else {}
            return {"task": task_loss(model.read(batch, selection), batch), **penalties}
        selection = looked.spread(drawn.units).to(looked.scores.dtype)
        task, penalties = task_loss(model.read(batch, selection), batch), self.penalties(selection, batch.mask)
        cost = (task.tanh() + sum(penalties.values())).detach()
        return {"task": task, **penalties, "cost": cost, "policy": (cost - self.baseline) * drawn.key}

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(self.granularity, self.granularity == "token", self.share, self.spans)

    def players(self) -> tuple[Player, ...]:
        if self.estimator == "reinforce":
            return self.two_players(("task",), ("policy",))
        return self.two_players(("task",), ("task", "sparsity", "continuity") if self.has_free_size else ("task",))

    def idle_modules(self) -> list[IdleModules]:
        taken = self.granularity == "token" and not self.has_free_size and self.estimator != "reinforce"
        beside = f"granularity=token, share={self.share} and estimator={self.estimator}"
        return [
            *super().idle_modules(),
            (self.estimator != "gumbel", f"estimator={self.estimator}", ("temperature",)),
            (taken, beside, ("sparsity", "continuity")),
            (taken and self.estimator == "straight-through", beside, ("exploration",)),
        ]

    def _through(self, looked: GeneratorOutput, batch: Batch, drawn: SampledSelection) -> Tensor:
        """What is selected, with a gradient that is not quite its own.  (B,U)"""
        soft, odds = looked.probability, looked.scores
        if self.estimator == "gumbel":
            odds = drawn.noisy / self.temperature
            soft = masked.softmax(odds, looked.real) if self.granularity == "sentence" else odds.sigmoid()
        if self.granularity == "sentence" or self.share is None:
            return straight_through(drawn.units, soft)
        return straight_through(best_windows(exact_windows(odds).sigmoid(), batch.mask, self.share, self.spans), soft)
