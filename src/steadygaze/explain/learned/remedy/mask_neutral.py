"""Mask-neutral weighting: inputs count less the better their label can be told from their mask.

Bai et al. 2021 (arXiv:2006.05656), §4.2; the weights are those of maths/neutral.py, P(y|m) is the judge's, which learns
beside the others.

Departs from the paper: only words can be selected.  In the paper (§5.2.4) every text is padded in front to one
length and the padding can be selected too: `variant = released`.  The last epoch is kept, where other techniques keep
that of the best guesses; each class weighs for itself, since what is learnt are probabilities.  The paper is silent on
the judge, on clipping, and on who is weighted: here all who learn from the guess.

Where the mask decides the label nothing is mended: of certain labels all weights are the same.  Of probabilities they
are not (w_c p_c = P(c), and the code is worth nothing), unless `clip` cuts them off, as it does of a sure black box.
"""

from dataclasses import replace

from steadygaze.explain.learned.remedy.remedy import Remedy, both
from steadygaze.explain.learned.selecting import Round, Selecting
from steadygaze.maths import neutral
from steadygaze.objective.technique import Player, Stage
from steadygaze.types import Terms


class MaskNeutral(Remedy):
    def stages(self, how: Selecting) -> tuple[Stage, ...]:
        # The epoch of the best guesses would be the one with the best code, from before the weights took hold.
        return tuple(replace(stage, select="last") for stage in super().stages(how))

    def players(self, how: Selecting) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: Round, stage: str) -> Terms:
        scores = round_.scores()
        mask = round_.mask(scores)
        target, clip = round_.how.target(round_.views.probs), round_.how.clip
        weight = neutral.weights(round_.prior, round_.told_by(mask), target, 1 / clip, clip)
        return round_.lost(mask, scores, weight)
