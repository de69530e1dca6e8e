"""RNP: a generator selects a rationale, a predictor reads it, and both minimize the prediction loss.

Lei, Barzilay & Jaakkola, "Rationalizing Neural Predictions", EMNLP 2016 (arXiv:1606.04155); Eq. 4 of Yu et al. 2021
(arXiv:2110.13880), who use it as their baseline.

Equation
--------
    predictor    minimizes  ℓ(y, f(M ⊙ x))           M sampled from q: techniques/rationalizing.py
    generator    minimizes  the expectation of a cost over M, with one of three gradient estimators

    estimator           minimizes
    reinforce           (c − b) · ln q(M),   c = tanh ℓ + penalties
    straight-through    ℓ + penalties through π, as if π were the sample                        biased
    gumbel              ℓ + penalties through softmax((ln q + Gumbel noise) / `temperature`)    biased

b is the mean cost of the last 200 batches.  It is independent of M, and therefore reduces only the variance.
`reinforce` is unbiased for E_q[c], the cost of a sampled selection, exploration included.  For one sentence, only
(1 − ε) π of q depends on the generator: the gradient is 1 − ε times that of E_π[c], in the same direction.

For single tokens, `reinforce` samples each token independently.  Evaluation selects the best `spans` windows of `share`
by probability.  With a share, the other two estimators select in the same way in training (gumbel: after adding noise),
and the penalties do not apply.  A transformer omits unselected tokens, so that these two receive a gradient for
selected tokens alone.  A recurrent encoder reads zeros instead, and provides a gradient for all tokens.

Without a share, selecting all tokens costs `sparsity`, and guessing between two classes costs tanh ln 2 = 0.6.  At the
default of 1, nothing is selected.  Try 0.1 to 0.3.

FR (Liu et al., "FR: Folded Rationalization with a Unified Encoder", NeurIPS 2022, arXiv:2209.08285) is
`shared_encoder`: generator and predictor share one encoder, so that neither adapts to the other's poor states alone.
All terms train all parameters at the learning rate of the run.  With `skewed`, the predictor is trained with
its encoder, which is here also that of the generator.  Unlike in RNP, only the generator's scoring layer stays fixed.

Cost
----
Two encoders, unless `shared_encoder` is set: the generator reads the text, the predictor the selection.

When to use
-----------
As the baseline of rationale extraction.  It can interlock: prefer `a2r`, or `fresh` with a transformer.

Departs from the paper
----------------------
From Lei et al., as Yu et al.'s reimplementation: sentences are selected by default, states are max-pooled, the reward
is −tanh ℓ, there is a baseline, and evaluation is deterministic.

From Liu et al. (FR): states are max-pooled, and the default estimator is REINFORCE; the paper has estimator=gumbel.
Selections are sampled with `exploration`, 0.2 by default, which all joint techniques here have.

Tested by tests/techniques/test_rnp.py.
"""

from typing import Annotated, Literal

from torch import Tensor

from steadygaze.core.maths import distributions
from steadygaze.core.maths.rationale_windows import best_windows, highest_precision
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.rationalizer import GeneratorOutput, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import (
    LEARNING_RATES,
    RewardBaselineTechnique,
    SampledSelection,
    UnusedSettings,
    straight_through,
)
from steadygaze.techniques.technique import LossContext, Player, task_loss


@settings
class Rnp(RewardBaselineTechnique):
    """A generator selects a rationale, a predictor reads it alone (Lei et al. 2016)."""

    estimator: Literal["reinforce", "straight-through", "gumbel"] = "reinforce"
    """Gradient estimator of the generator for sampled selections."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Temperature of gumbel; lower values are closer to the sample and noisier."""
    shared_encoder: bool = False
    """One encoder for generator and predictor (FR, Liu et al. 2022)."""

    def loss(self, model: Rationalizer, batch: Batch, context: LossContext) -> Terms:
        output = model.generate(batch)
        sample = self.drawn(output, batch, context)
        if self.estimator != "reinforce":
            selection = output.spread(self._through(output, batch, sample))
            penalties = self.penalties(selection, batch.mask) if self.has_free_size else {}
            return {"task": task_loss(model.read(batch, selection), batch), **penalties}
        selection = output.spread(sample.units).to(output.scores.dtype)
        task, penalties = task_loss(model.read(batch, selection), batch), self.penalties(selection, batch.mask)
        cost = (task.tanh() + sum(penalties.values())).detach()
        return {"task": task, **penalties, "cost": cost, "policy": (cost - self.baseline) * sample.log_prob}

    def selection_config(self) -> SelectionConfig:
        by_token, separate = self.granularity == "token", not self.shared_encoder
        return SelectionConfig(self.granularity, by_token, self.share, self.spans, separate_encoders=separate)

    def players(self) -> tuple[Player, ...]:
        generator: tuple[str, ...] = ("task", "sparsity", "continuity") if self.has_free_size else ("task",)
        if self.estimator == "reinforce":
            generator = ("policy",)
        if self.shared_encoder:
            return (Player(terms=tuple(dict.fromkeys(("task", *generator)))),)
        return self.two_players(("task",), generator)

    def unused_settings(self) -> list[UnusedSettings]:
        by_windows = self.granularity == "token" and not self.has_free_size and self.estimator != "reinforce"
        reason = f"granularity=token, share={self.share} and estimator={self.estimator}"
        return [
            *super().unused_settings(),
            (self.estimator != "gumbel", f"estimator={self.estimator}", ("temperature",)),
            (self.shared_encoder, "shared_encoder=True", LEARNING_RATES),
            (by_windows, reason, ("sparsity", "continuity")),
            (by_windows and self.estimator == "straight-through", reason, ("exploration",)),
        ]

    def _through(self, output: GeneratorOutput, batch: Batch, sample: SampledSelection) -> Tensor:
        """Return the selection with a straight-through gradient.  (B,U)"""
        soft, odds = output.probability, output.scores
        if self.estimator == "gumbel":
            odds = sample.noisy / self.temperature
            soft = distributions.softmax(odds, output.real) if self.granularity == "sentence" else odds.sigmoid()
        if self.granularity == "sentence" or self.share is None:
            return straight_through(sample.units, soft)
        return straight_through(
            best_windows(highest_precision(odds).sigmoid(), batch.mask, self.share, self.spans), soft
        )
