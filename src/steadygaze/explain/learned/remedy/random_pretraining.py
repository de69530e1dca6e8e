"""Random attention pretraining: the approximator learns what words mean before anybody selects any.

Bai et al. 2021 (arXiv:2006.05656), §4.1:

    1   approximator on k units drawn evenly, whatever the input says       E(Y | x ⊙ m), without a code in m
    2   frozen; the selector alone learns                                   argmin_m L(E(Y | x ⊙ m), y)

Departs from the paper: nothing known; it names no law for the masks, and evenly is ours.
"""

from steadygaze.attend import k_subset
from steadygaze.explain.learned.remedy.remedy import Remedy, both
from steadygaze.explain.learned.selecting import Round, Selecting
from steadygaze.objective.technique import Player, Stage
from steadygaze.types import Terms

RANDOM = "random masks"


class RandomPretraining(Remedy):
    def stages(self, how: Selecting) -> tuple[Stage, ...]:
        return (
            Stage(RANDOM, trains=("approximator.",), epochs=how.pretraining_epochs),
            Stage("selecting", trains=("selector.", "judge."), epochs=how.epochs),
        )

    def players(self, how: Selecting) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: Round, stage: str) -> Terms:
        if stage == RANDOM:
            views = round_.views
            drawn = k_subset.at_random(views.able, round_.how.k, round_.chance, views.rows)
            return {"prediction": round_.how.fidelity(round_.guess(drawn), round_.how.target(views.probs))}
        scores = round_.scores()
        return round_.lost(round_.mask(scores), scores)
