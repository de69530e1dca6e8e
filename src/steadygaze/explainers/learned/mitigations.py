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
from steadygaze.explainers.learned.selector import SelectorConfig, SelectorStep
from steadygaze.models import k_subset
from steadygaze.techniques.technique import Player, Stage

PROBE_PLAYER = Player("judge", trains=("judge.",), terms=("mask",))
"""Always there, so that it is always known how far the mask gives the label away; nobody else hears it."""


class Mitigation(ABC):
    def stages(self, how: SelectorConfig) -> tuple[Stage, ...]:
        return (Stage("selecting", trains=("selector.", "approximator.", "opponent.", "judge."), epochs=how.epochs),)

    @abstractmethod
    def players(self, how: SelectorConfig) -> tuple[Player, ...]: ...

    @abstractmethod
    def terms(self, round_: SelectorStep, stage: str) -> Terms:
        """Per-input terms (B,), by name."""


def both(how: SelectorConfig) -> tuple[Player, ...]:
    """Selector and approximator learn from the same guess; an opponent, where there is one, from its own."""
    own = ("prediction",) if type(how).selection_cost is SelectorConfig.selection_cost else ("prediction", "brevity")
    if not isinstance(how, Ail):
        return Player("selector", trains=("selector.", "approximator."), terms=own), PROBE_PLAYER
    return (
        Player("selector", trains=("selector.",), terms=("prediction", "infidelity")),
        Player("approximator", trains=("approximator.",), terms=("prediction",)),
        Player("opponent", trains=("opponent.",), terms=("opponent",)),
        PROBE_PLAYER,
    )


class NoMitigation(Mitigation):
    def players(self, how: SelectorConfig) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: SelectorStep, stage: str) -> Terms:
        scores = round_.scores()
        mask = round_.mask(scores)
        terms = round_.loss(mask, scores)
        return {**terms, **round_.config.opponent_loss(round_, mask)} if isinstance(round_.config, Ail) else terms


class MaskNeutral(Mitigation):
    def stages(self, how: SelectorConfig) -> tuple[Stage, ...]:
        # The epoch of the best guesses would be the one with the best code, from before the weights took hold.
        return tuple(replace(stage, select="last") for stage in super().stages(how))

    def players(self, how: SelectorConfig) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: SelectorStep, stage: str) -> Terms:
        scores = round_.scores()
        mask = round_.mask(scores)
        target, clip = round_.config.target(round_.views.probs), round_.config.clip
        weight = label_leakage.mask_neutral_weights(round_.prior, round_.probe_loss(mask), target, 1 / clip, clip)
        return round_.loss(mask, scores, weight)


RANDOM = "random masks"


class RandomPretraining(Mitigation):
    def stages(self, how: SelectorConfig) -> tuple[Stage, ...]:
        return (
            Stage(RANDOM, trains=("approximator.",), epochs=how.pretraining_epochs),
            Stage("selecting", trains=("selector.", "judge."), epochs=how.epochs),
        )

    def players(self, how: SelectorConfig) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: SelectorStep, stage: str) -> Terms:
        if stage == RANDOM:
            views = round_.views
            drawn = k_subset.random_k_subset(views.able, round_.config.k, round_.key, views.rows)
            return {"prediction": round_.config.fidelity(round_.approximate(drawn), round_.config.target(views.probs))}
        scores = round_.scores()
        return round_.loss(round_.mask(scores), scores)


SHUFFLED = "shuffled labels"


class RandomQuery(Mitigation):
    def stages(self, how: SelectorConfig) -> tuple[Stage, ...]:
        return (
            Stage(SHUFFLED, trains=("selector.", "approximator.", "judge."), epochs=how.pretraining_epochs),
            Stage("selecting", trains=("selector.", "judge."), epochs=how.epochs),
        )

    def players(self, how: SelectorConfig) -> tuple[Player, ...]:
        return both(how)

    def terms(self, round_: SelectorStep, stage: str) -> Terms:
        scores = round_.scores(_others(round_) if stage == SHUFFLED else None)
        return round_.loss(round_.mask(scores), scores)


def _others(round_: SelectorStep) -> Tensor:
    """What the black box says of another input of the batch; one that is alone is told how often each class is said.
    (B,C)
    """
    probs = round_.views.probs
    if len(probs) == 1:
        return round_.prior.to(probs.dtype).unsqueeze(0)
    order = round_.key.child(2).uniform(round_.views.rows, 1).squeeze(-1).argsort()
    return torch.empty_like(probs).index_copy(0, order, probs[order.roll(1)])  # in a ring: nobody keeps its own


MITIGATIONS: dict[str, Mitigation] = {
    "plain": NoMitigation(),
    "random-pretraining": RandomPretraining(),
    "mask-neutral": MaskNeutral(),
    "random-query": RandomQuery(),
}
