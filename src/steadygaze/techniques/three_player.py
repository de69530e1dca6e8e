"""3PLAYER: a third player reads what was left out, and the generator is paid for leaving it nothing to go by.

Yu, Chang, Zhang & Jaakkola, "Rethinking Cooperative Rationalization: Introspective Extraction and Complement Control",
EMNLP 2019 (arXiv:1910.13294), §3.

    predictor      minimises  ℓ(y, f(M ⊙ x))                 head `hard`
    complement     minimises  ℓ(y, f_c((1 − M) ⊙ x))         head `rest`
    generator      minimises  (c − b) · ln q(M)              M drawn from q: techniques/rationalizing.py

    c  =  − `right` · A  −  `lead` · (A − A_c)  +  penalties           A, A_c: 1 where a predictor guesses right, else 0

b is the mean cost of the last 200 batches.  A selection which leaves words behind that tell the label gains nothing by
being right: predictor and generator can agree on no code, for the third player would read the label from the words
left over.  Where one sentence is selected there are no penalties, and the rest is all others; of a text of one
sentence, nothing.

Departs from the paper: as in the released code, whose `right` (0.1), `lead` (1.2) and `exploration` these are, the
generator hears of hits and not of losses.  There a fixed 8 tokens in 4 pieces are aimed at, and fewer pieces cost as
more do; here a share, and at most `spans`.  Both predictors share one encoder, and evaluation selects the best windows
of `share` by their chances (None: chances above one half, as there).  The introspective generator, which is told a
guess of the label, is left out.  Pinned by tests/objective/test_three_player.py.
"""

from typing import Annotated

from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.rationalizer import Granularity, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import RewardBaselineTechnique, task_loss
from steadygaze.techniques.technique import LossContext, Player


@settings
class ThreePlayer(RewardBaselineTechnique):
    """A second predictor reads what is left out, which is to tell it nothing (Yu et al. 2019)."""

    granularity: Granularity = "token"
    """What is selected: single tokens, or one sentence."""
    right: Annotated[float, Field(ge=0)] = 0.1
    """How much it counts that the selection tells the label."""
    lead: Annotated[float, Field(ge=0)] = 1.2
    """How much it counts that the rest does not tell it as well."""
    exploration: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """How often a selection is drawn in training that the generator has no say in."""

    def loss(self, model: Rationalizer, batch: Batch, given: LossContext) -> Terms:
        looked = model.generate(batch)
        drawn = self.drawn(looked, batch, given)
        selected = looked.spread(drawn.units)
        said, rest = model.read(batch, selected), model.read(batch, batch.mask & ~selected, "rest")
        penalties = self.penalties(selected.to(looked.scores.dtype), batch.mask)
        hit, found = _hit(said, batch), _hit(rest, batch)
        cost = sum(penalties.values(), -self.right * hit - self.lead * (hit - found))
        policy = (cost - self.baseline) * drawn.key
        return {
            "task": task_loss(said, batch),
            "rest": task_loss(rest, batch),
            **penalties,
            "cost": cost,
            "policy": policy,
        }

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(self.granularity, self.granularity == "token", self.share, self.spans, ("hard", "rest"))

    def players(self) -> tuple[Player, ...]:
        return self.two_players(("task", "rest"), ("policy",))


def _hit(logits: Tensor, batch: Batch) -> Tensor:
    """A: a number, through which nobody learns.  (B,C) -> (B,)"""
    return (logits.argmax(-1) == batch.gold).to(logits.dtype)
