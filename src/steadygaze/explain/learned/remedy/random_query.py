"""Random query: the approximator learns from masks that somebody else's label asked for.

Ours.  A code needs two who know it.  The selector is told ŷ; the approximator only ever sees masks which it chose when
told the ŷ of another input, so that what it is told cannot be passed on:

    1   selector and approximator minimise   CE(p, q(x ⊙ m'))     m' = select(x, ŷ of another)
    2   the approximator is frozen; the selector minimises   CE(p, q(x ⊙ m))     m = select(x, ŷ)

It makes codes rarer and does not rule them out: a selector that works the label out of the input by itself can still
pass it on in the first stage, as L2X can that is told nothing.
"""

import torch
from torch import Tensor

from steadygaze.explain.learned.remedy.remedy import Remedy, both
from steadygaze.explain.learned.selecting import Round, Selecting
from steadygaze.objective.technique import Player, Stage
from steadygaze.types import Terms

SHUFFLED = "shuffled labels"


class RandomQuery(Remedy):
    def stages(self, how: Selecting) -> tuple[Stage, ...]:
        return (
            Stage(SHUFFLED, trains=("selector.", "approximator.", "judge."), epochs=how.pretraining_epochs),
            Stage("selecting", trains=("selector.", "judge."), epochs=how.epochs),
        )

    def players(self, how: Selecting) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: Round, stage: str) -> Terms:
        scores = round_.scores(_others(round_) if stage == SHUFFLED else None)
        return round_.lost(round_.mask(scores), scores)


def _others(round_: Round) -> Tensor:
    """What the black box says of another input of the batch; one that is alone is told how often each class is said.
    (B,C)
    """
    probs = round_.views.probs
    if len(probs) == 1:
        return round_.prior.to(probs.dtype).unsqueeze(0)
    order = round_.chance.child(2).uniform(round_.views.rows, 1).squeeze(-1).argsort()
    return torch.empty_like(probs).index_copy(0, order, probs[order.roll(1)])  # in a ring: nobody keeps its own
