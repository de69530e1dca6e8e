"""3PLAYER: a second predictor reads the complement of the rationale, and the generator minimizes its accuracy.

Yu, Chang, Zhang & Jaakkola, "Rethinking Cooperative Rationalization: Introspective Extraction and Complement Control",
EMNLP 2019 (arXiv:1910.13294), §3.

Equation
--------
    predictor      minimizes  ℓ(y, f(M ⊙ x))                 head `hard`
    complement     minimizes  ℓ(y, f_c((1 − M) ⊙ x))         head `rest`
    generator      minimizes  (c − b) · ln q(M)              M sampled from q: techniques/rationalizing.py

    c  =  − `right` · A  −  `lead` · (A − A_c)  +  penalties           A, A_c: 1 if a prediction is correct, else 0

b is the mean cost of the last 200 batches.  A selection has no advantage if the complement also predicts the label.
It is meant to prevent label leakage through the mask: the complement would still contain the informative words.  One
sentence has no penalties, and its complement is all other sentences, or empty in a text of one sentence.

Cost
----
As `rnp`, with a second pass of the predictor over the complement.

When to use
-----------
If the words outside the rationale must not predict the label.

Departs from the paper
----------------------
As in the released code, the generator's reward depends on accuracy, not on the loss.  The defaults of `right`, `lead`
and `exploration` are those of the released code.  It targets 8 tokens in 4 pieces and also penalizes fewer pieces;
here the target is a share, with at most `spans` pieces.  Both predictors share one encoder.  Evaluation selects the
best windows of `share` by probability (None: probability above one half, as there). The introspective generator, which
is conditioned on a predicted label, is not included.

Tested by tests/techniques/test_three_player.py.
"""

from typing import Annotated

from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.rationalizer import Granularity, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import RewardBaselineTechnique
from steadygaze.techniques.technique import LossContext, Player, task_loss


@settings
class ThreePlayer(RewardBaselineTechnique):
    """A second predictor reads the complement, which must not predict the label (Yu et al. 2019)."""

    granularity: Granularity = "token"
    """Unit of selection: single tokens, or one sentence."""
    right: Annotated[float, Field(ge=0)] = 0.1
    """Weight of the predictor's accuracy."""
    lead: Annotated[float, Field(ge=0)] = 1.2
    """Weight of the predictor's lead in accuracy over the complement."""
    exploration: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """ε: probability in training of a selection that ignores the generator."""

    def loss(self, model: Rationalizer, batch: Batch, context: LossContext) -> Terms:
        output = model.generate(batch)
        sample = self.drawn(output, batch, context)
        selection = output.spread(sample.units)
        logits, complement_logits = model.read(batch, selection), model.read(batch, batch.mask & ~selection, "rest")
        penalties = self.penalties(selection.to(output.scores.dtype), batch.mask)
        correct, complement_correct = _correct(logits, batch), _correct(complement_logits, batch)
        cost = sum(penalties.values(), -self.right * correct - self.lead * (correct - complement_correct))
        policy = (cost - self.baseline) * sample.log_prob
        return {
            "task": task_loss(logits, batch),
            "rest": task_loss(complement_logits, batch),
            **penalties,
            "cost": cost,
            "policy": policy,
        }

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(self.granularity, self.granularity == "token", self.share, self.spans, ("hard", "rest"))

    def players(self) -> tuple[Player, ...]:
        return self.two_players(("task", "rest"), ("policy",))


def _correct(logits: Tensor, batch: Batch) -> Tensor:
    """Return A, without a gradient.  (B,C) -> (B,)"""
    return (logits.argmax(-1) == batch.gold).to(logits.dtype)
