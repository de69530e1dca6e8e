"""How the label is kept from travelling in the mask: one file each, one line each here.

What a remedy is: who learns from which masks, in which order.

None: selector and approximator learn together, and may agree on a code.

Mask-neutral weighting: inputs count less the better their label can be told from their mask.

Bai et al. 2021 (arXiv:2006.05656), §4.2; the weights are those of core/maths/label_leakage.py, P(y|m) is the judge's,
which learns
beside the others.

Departs from the paper: only words can be selected.  In the paper (§5.2.4) every text is padded in front to one
length and the padding can be selected too: `variant = released`.  The last epoch is kept, where other techniques keep
that of the best guesses; each class weighs for itself, since what is learnt are probabilities.  The paper is silent on
the judge, on clipping, and on who is weighted: here all who learn from the guess.

Where the mask decides the label nothing is mended: of certain labels all weights are the same.  Of probabilities they
are not (w_c p_c = P(c), and the code is worth nothing), unless `clip` cuts them off, as it does of a sure black box.

Random attention pretraining: the approximator learns what words mean before anybody selects any.

Bai et al. 2021 (arXiv:2006.05656), §4.1:

    1   approximator on k units drawn evenly, whatever the input says       E(Y | x ⊙ m), without a code in m
    2   frozen; the selector alone learns                                   argmin_m L(E(Y | x ⊙ m), y)

Departs from the paper: nothing known; it names no law for the masks, and evenly is ours.

Random query: the approximator learns from masks that somebody else's label asked for.

Ours.  A code needs two who know it.  The selector is told ŷ; the approximator only ever sees masks which it chose when
told the ŷ of another input, so that what it is told cannot be passed on:

    1   selector and approximator minimise   CE(p, q(x ⊙ m'))     m' = select(x, ŷ of another)
    2   the approximator is frozen; the selector minimises   CE(p, q(x ⊙ m))     m = select(x, ŷ)

It makes codes rarer and does not rule them out: a selector that works the label out of the input by itself can still
pass it on in the first stage, as L2X can that is told nothing.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from torch import Tensor

from steadygaze.core.maths import label_leakage
from steadygaze.core.types import Terms
from steadygaze.explainers.learned.ail import Ail
from steadygaze.explainers.learned.selector import Round, Selecting
from steadygaze.models import k_subset
from steadygaze.techniques.technique import Player, Stage

JUDGE = Player("judge", trains=("judge.",), terms=("mask",))
"""Always there, so that it is always known how far the mask gives the label away; nobody else hears it."""


class Remedy(ABC):
    def stages(self, how: Selecting) -> tuple[Stage, ...]:
        return (Stage("selecting", trains=("selector.", "approximator.", "opponent.", "judge."), epochs=how.epochs),)

    @abstractmethod
    def players(self, how: Selecting) -> tuple[Player, ...]: ...

    @abstractmethod
    def terms(self, round_: Round, stage: str) -> Terms:
        """Per-input terms (B,), by name."""


def both(how: Selecting) -> tuple[Player, ...]:
    """Selector and approximator learn from the same guess; an opponent, where there is one, from its own."""
    own = ("prediction",) if type(how).brevity is Selecting.brevity else ("prediction", "brevity")
    if not isinstance(how, Ail):
        return Player("selector", trains=("selector.", "approximator."), terms=own), JUDGE
    return (
        Player("selector", trains=("selector.",), terms=("prediction", "infidelity")),
        Player("approximator", trains=("approximator.",), terms=("prediction",)),
        Player("opponent", trains=("opponent.",), terms=("opponent",)),
        JUDGE,
    )


class Plain(Remedy):
    def players(self, how: Selecting) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: Round, stage: str) -> Terms:
        scores = round_.scores()
        mask = round_.mask(scores)
        terms = round_.lost(mask, scores)
        return {**terms, **round_.how.opposed(round_, mask)} if isinstance(round_.how, Ail) else terms


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
        weight = label_leakage.weights(round_.prior, round_.told_by(mask), target, 1 / clip, clip)
        return round_.lost(mask, scores, weight)


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


REMEDIES: dict[str, Remedy] = {
    "plain": Plain(),
    "random-pretraining": RandomPretraining(),
    "mask-neutral": MaskNeutral(),
    "random-query": RandomQuery(),
}
