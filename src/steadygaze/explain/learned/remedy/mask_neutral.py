"""Mask-neutral weighting: inputs count less the better their label can be told from their mask.

Bai et al. 2021 (arXiv:2006.05656), §4.2; the weights are those of maths/neutral.py, P(y|m) is the judge's, which learns
beside the others.

Departs from the paper: nothing known.  It is silent on the judge, on clipping, and on who is weighted: here all who
learn from the guess.  Where the mask decides the label the weights are all the same, and nothing is mended.
"""

from steadygaze.explain.learned.remedy.remedy import Remedy, both
from steadygaze.explain.learned.selecting import Round, Selecting
from steadygaze.maths import neutral
from steadygaze.objective.technique import Player
from steadygaze.types import Terms


class MaskNeutral(Remedy):
    def players(self, how: Selecting) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: Round, stage: str) -> Terms:
        scores = round_.scores()
        mask = round_.mask(scores)
        weight = neutral.weights(round_.prior, round_.told_by(mask), round_.how.target(round_.views.probs))
        return round_.lost(mask, scores, weight)
