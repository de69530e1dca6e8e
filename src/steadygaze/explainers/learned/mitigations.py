"""Mitigations of label leakage through the mask: which network learns from which masks, in which order.

Plain: selector and approximator learn together, and the label can leak.

Mask-neutral weighting: an input weighs less, the better its label can be predicted from its mask.
Bai et al. 2021 (arXiv:2006.05656), §4.2; the weights are those of core/maths/label_leakage.py.  P(y|m) is the
prediction of the mask probe, which is trained along.  Differences from the paper: padding cannot be selected unless
`variant = released` (§5.2.4).  The last epoch is kept.  Each class has its own weight, since the targets are
probabilities.  The paper does not specify the probe, clipping, or whose loss is weighted: here it is the prediction
loss of both networks.

If the mask determines the label, weighting does not help for hard labels: all weights are equal.  For probabilities
w_c p_c = P(c), and the mask is uninformative, unless `clip` truncates the weights of a confident black box.

Random pretraining: the approximator is trained on random masks first.  Bai et al. 2021 (arXiv:2006.05656), §4.1:

    1   approximator on k units drawn uniformly, independent of the input   E(Y | x ⊙ m), without leakage through m
    2   approximator frozen; the selector is trained                        argmin_m L(E(Y | x ⊙ m), y)

The paper does not specify the distribution of the masks; uniform is ours.

Random query (ours): the approximator is trained on masks for the prediction of another input, which cannot leak ŷ:

    1   selector and approximator minimize   CE(p, q(x ⊙ m'))     m' = select(x, ŷ of another)
    2   the approximator is frozen; the selector minimizes   CE(p, q(x ⊙ m))     m = select(x, ŷ)

This reduces leakage but does not exclude it: a selector that infers the label from the input can still leak it in the
first stage, as L2X can without ŷ.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from torch import Tensor

from steadygaze.core.maths import k_subset, label_leakage
from steadygaze.core.types import Terms
from steadygaze.explainers.learned.l2x import SelectorConfig, SelectorStep
from steadygaze.techniques.technique import Player, Stage

PROBE_PLAYER = Player("probe", trains=("probe.",), terms=("mask",))
"""Always trained, so that label leakage through the mask is measured; it affects no other network."""


class Mitigation(ABC):
    def stages(self, config: SelectorConfig) -> tuple[Stage, ...]:
        return (Stage("selecting", trains=("selector.", "approximator.", "opponent.", "probe."), epochs=config.epochs),)

    def players(self, config: SelectorConfig, stage: str) -> tuple[Player, ...]:
        """Selector and approximator share the prediction loss; an opponent has its own loss."""
        if not config.opposes:
            penalized = type(config).selection_cost is not SelectorConfig.selection_cost
            terms = ("prediction", "brevity") if penalized else ("prediction",)
            return Player("selector", trains=("selector.", "approximator."), terms=terms), PROBE_PLAYER
        return (
            Player("selector", trains=("selector.",), terms=("prediction", "infidelity")),
            Player("approximator", trains=("approximator.",), terms=("prediction",)),
            Player("opponent", trains=("opponent.",), terms=("opponent",)),
            PROBE_PLAYER,
        )

    @abstractmethod
    def terms(self, step: SelectorStep, stage: str) -> Terms:
        """Per-input terms (B,), by name."""


class NoMitigation(Mitigation):
    def terms(self, step: SelectorStep, stage: str) -> Terms:
        scores = step.scores()
        mask = step.mask(scores)
        return {**step.loss(mask, scores), **step.config.opponent_loss(step, mask)}


class MaskNeutral(Mitigation):
    def stages(self, config: SelectorConfig) -> tuple[Stage, ...]:
        # The epoch with the best fidelity would be the one with the most leakage, before the weights have an effect.
        return tuple(replace(stage, select="last") for stage in super().stages(config))

    def terms(self, step: SelectorStep, stage: str) -> Terms:
        scores = step.scores()
        mask = step.mask(scores)
        target, clip = step.config.target(step.views.probs), step.config.clip
        weight = label_leakage.mask_neutral_weights(step.prior, step.probe_log_probs(mask), target, 1 / clip, clip)
        return step.loss(mask, scores, weight)


def _pretrained(config: SelectorConfig, name: str, trains: tuple[str, ...]) -> tuple[Stage, ...]:
    """A first stage, after which the approximator is frozen."""
    first = Stage(name, trains=trains, epochs=config.pretraining_epochs, select="last")
    return first, Stage("selecting", trains=("selector.", "probe."), epochs=config.epochs)


RANDOM = "random masks"


class RandomPretraining(Mitigation):
    def stages(self, config: SelectorConfig) -> tuple[Stage, ...]:
        return _pretrained(config, RANDOM, ("approximator.",))

    def players(self, config: SelectorConfig, stage: str) -> tuple[Player, ...]:
        approximator = Player("approximator", trains=("approximator.",), terms=("prediction",))
        return (approximator,) if stage == RANDOM else super().players(config, stage)

    def terms(self, step: SelectorStep, stage: str) -> Terms:
        if stage == RANDOM:
            views = step.views
            mask = k_subset.random_k_subset(views.selectable, step.config.k, step.key, views.rows)
            return {"prediction": step.config.fidelity(step.approximate(mask), step.config.target(views.probs))}
        scores = step.scores()
        return step.loss(step.mask(scores), scores)


SHUFFLED = "shuffled labels"


class RandomQuery(Mitigation):
    def stages(self, config: SelectorConfig) -> tuple[Stage, ...]:
        return _pretrained(config, SHUFFLED, ("selector.", "approximator.", "probe."))

    def terms(self, step: SelectorStep, stage: str) -> Terms:
        scores = step.scores(_shuffled_query(step) if stage == SHUFFLED else None)
        return step.loss(step.mask(scores), scores)


def _shuffled_query(step: SelectorStep) -> Tensor:
    """Predictions for another input of the batch; a single input gets the class frequencies.  (B,C)"""
    probs = step.views.probs
    if len(probs) == 1:
        return step.prior.to(probs.dtype).unsqueeze(0)
    order = step.key.child(2).uniform(step.views.rows, 1).squeeze(-1).argsort()
    return torch.empty_like(probs).index_copy(0, order, probs[order.roll(1)])  # cyclic shift: no input keeps its own


MITIGATIONS: dict[str, Mitigation] = {
    "none": NoMitigation(),
    "random-pretraining": RandomPretraining(),
    "mask-neutral": MaskNeutral(),
    "random-query": RandomQuery(),
}
