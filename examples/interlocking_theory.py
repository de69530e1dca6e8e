"""A text of two sentences of one word each, p(x₁, x₂, y) known: what predictors see of it, and how well they read it.

    joint   (K,K,2)         p(x₁, x₂, y) over K words and two classes; x₁ and x₂ draw from the same words
    shown   (K,K,K or 2K)   what is seen of each text: words as one-hot vectors, weighted π₁ and 1 − π₁; added up, or
                            side by side where the predictor is *told* which sentence is which
    logit = shown · weights

For `maths.interlocking`; everything is exact but for the search of `least`.

Why a model that selects its rationales may lock on to the worse sentence: two sentences, computed and not drawn.

Yu et al. 2021 (A2R), §3.2-3.5 and 4.3, Fig. 2.  A text is two sentences of one word each, p(x₁, x₂, y) is known, and x₁
says more about y.  π₁ is the chance that x₁ is selected, and the weight that attention gives it.  Cross-entropies in
nats, each with the best predictors there are for π:

    selection   L_r*(π) = min_θ E[ℓ(y, f(x_M; θ))],  M ~ π        = H(y | what is shown)
    attention   L_a*(π) = min_w E[ℓ(y, σ(π₁ w₁[x₁] + π₂ w₂[x₂]))]     |w| ≤ the largest log-odds of a single sentence
    A2R         L_a(π, w) + λ E[JS(f(x_M; θ) ‖ σ(…))],  each predictor at rest while the other holds still

Theorem 1: L_r* is concave.  Any predictors do, and π may depend on x: what is drawn enters the loss as a mean over π,
so L_r* is a minimum of straight lines.  Concave alone does not lock.  A predictor that is *told* which sentence it sees
makes L_r*(π₁) one straight line down to the better sentence; one that is not told (a pool over whatever was selected)
reads x₁ by what x₂ taught it, and the worse corner becomes a minimum.  `toy` is such a case: the same word that praises
in x₁ blames in x₂.

Theorem 2: L_a* is convex in α if L_a(α, w) is μ-strongly convex in α, its regret is at most (l/2) ‖α − α'‖², and μ ≥ l
(`assumptions`).  They are enough, not needed: where attention tells the sentences apart, L_a* is convex anyway, because
the pairs (α, αw) that the bound allows are a convex set.  Where it does not (told=False), neither they nor convexity
hold for `toy`.

Both curves meet at the ends, where one sentence has all; between them ℓ is convex in the logit, so L_a* ≤ L_r*.  A2R's
hard predictor is not told, its soft one is.  Its curve lies above L_a*, and in `toy` below L_r* up to λ = 5; at 20 it
is above, the predictors agreeing by saying little.  Its generator hears JS through the soft predictor alone, what is
drawn being given (§4.2).  So up to λ = 1 it ends where attention alone ends, at 0.60, from whichever corner: the better
sentence is the likelier one.  From 3 on it stays on the side it came from: with 5, at 0.28 from the worse corner.

Departs from the paper: the bound on w, without which L_a* is flat with a jump at each end; μ is asked of the predictors
that are best for some α, not of all (w = 0 has no curvature).  Each π₁ is a constant, except in `selection`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, xlogy

Array = NDArray[np.float64]


def toy(first: float = 0.85, second: float = 0.8) -> Array:
    """p(x₁, x₂, y): each sentence tells y with the chance given, but word 1 speaks for y in x₁, against it in x₂."""
    first_joint, second_joint = (
        np.array([[right, 1 - right], [1 - right, right]]) for right in (first, 1 - second)
    )  # (y,word)
    return np.asarray(np.einsum("yi,yj->ijy", first_joint, second_joint) / 2)


def shown(share: float, told: bool, words: int) -> Array:
    first_word, second_word = (np.broadcast_to(x, (words,) * 3) for x in (np.eye(words)[:, None], np.eye(words)[None]))
    return (
        np.concatenate([share * first_word, (1 - share) * second_word], axis=-1)
        if told
        else share * first_word + (1 - share) * second_word
    )


def turn(told: bool, words: int) -> Array:
    """How `shown` changes with π₁."""
    return shown(1.0, told, words) - shown(0.0, told, words)


def loss(joint: Array, logits: Array) -> float:
    """Cross-entropy."""
    return float((joint[..., 1] * np.logaddexp(0, -logits) + joint[..., 0] * np.logaddexp(0, logits)).sum())


def error(joint: Array, logits: Array) -> Array:
    """How the loss changes with each logit.  -> (K,K)"""
    return np.asarray(joint.sum(-1) * expit(logits) - joint[..., 1])


def read(joint: Array, seen: Array, weights: Array) -> tuple[float, Array]:
    """The loss, and how it changes with the weights."""
    logits = seen @ weights
    return loss(joint, logits), np.einsum("ij,ijk->k", error(joint, logits), seen)


def back(slope: Array, p: Array, seen: Array) -> Array:
    """From a slope in probabilities to one in weights."""
    return np.asarray(np.einsum("ij,ijk->k", slope * p * (1 - p), seen))


def js(p: Array, q: Array) -> Array:
    """Jensen-Shannon of (1 − p, p) and (1 − q, q), in [0, ln 2]."""
    return _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2


def js_slope(p: Array, q: Array) -> Array:
    """∂ js / ∂p = ½ (logit p − logit m),  m = ½ (p + q)."""
    return np.asarray(logit(p) - logit((p + q) / 2)) / 2


def odds(counts: Array) -> Array:
    """The log-odds of y, given the word.  (K,2) -> (K,)"""
    return np.asarray(np.log(counts[:, 1] / counts[:, 0]))


def bound(joint: Array) -> float:
    """The largest log-odds that a single sentence gives."""
    return float(max(np.abs(odds(joint.sum(axis))).max() for axis in (0, 1)))


def least(of: Callable[[Array], tuple[float, Array]], start: Array, within: float) -> Array:
    """Where a smooth loss is least, no weight being beyond ±within."""
    box = [(-within, within)] * len(start)
    optimum = minimize(of, start, jac=True, method="L-BFGS-B", bounds=box, options={"ftol": 1e-16, "gtol": 1e-11})
    return np.asarray(optimum.x)


def _entropy(p: Array) -> Array:
    return -np.asarray(xlogy(p, p) + xlogy(1 - p, 1 - p))


EDGE = 1e-6
"""How near the ends predictors are sought: at an end itself the weights of the sentence without weight are any."""
STILL = 1e-4
"""A step under which a generator is said to stand."""


class Rest(NamedTuple):
    """Predictors that gain nothing by moving, at one π₁."""

    loss: float
    """What the generator would make small."""
    slope: float
    """How its loss changes with π₁ while the predictors hold still: what drives it."""
    soft: Array
    """w of the attention predictor."""


class Assumptions(NamedTuple):
    """Theorem 2 speaks where strong ≥ regret."""

    strong: float
    """μ"""
    regret: float
    """l"""


def selection(joint: Array, policy: ArrayLike, told: bool = False) -> Array:
    """L_r*(π): policy is π₁, one number, or one for each pair of words.  (K,K,2), (…,K,K) or (…,1,1) or () -> (…,)"""
    first = np.asarray(policy, float)[..., None] * joint
    seen = first.sum(-2), (joint - first).sum(-3)  # (…,K,2) each: which word is shown, with y
    pairs = np.concatenate(seen, axis=-2) if told else seen[0] + seen[1]
    every = pairs.sum(-1)
    return np.asarray(xlogy(every, every).sum(-1) - xlogy(pairs, pairs).sum((-1, -2)))


def selection_slope(joint: Array, share: float) -> float:
    """What drives a generator that selects: how much worse x₁ is read than x₂, by a predictor that is not told."""
    theta = odds(share * joint.sum(1) + (1 - share) * joint.sum(0))
    first_loss, second_loss = (loss(joint, shown(end, False, len(theta)) @ theta) for end in (1.0, 0.0))
    return first_loss - second_loss


def attention(joint: Array, share: float, told: bool = True) -> Rest:
    """L_a*(π₁)."""
    words = len(joint)
    seen = shown(float(np.clip(share, EDGE, 1 - EDGE)), told, words)
    soft = least(lambda w: read(joint, seen, w), np.zeros(seen.shape[-1]), bound(joint))
    logits = shown(share, told, words) @ soft
    return Rest(loss(joint, logits), float((error(joint, logits) * (turn(told, words) @ soft)).sum()), soft)


def a2r(joint: Array, share: float, strength: float) -> Rest:
    """Eq. 11 and 12, both predictors at rest; strength is λ, and 0 is attention alone.

    Neither can gain by moving where L_r + L_a + λ JS is least: each hears of it what its own equation says.
    """
    words, inner = len(joint), float(np.clip(share, EDGE, 1 - EDGE))
    hard = odds(inner * joint.sum(1) + (1 - inner) * joint.sum(0))
    start = np.concatenate([hard, attention(joint, inner).soft])
    weights = least(_Pair(joint, inner, strength).total, start, bound(joint))
    return Rest(*_Pair(joint, share, strength).generator(weights[:words], weights[words:]), weights[words:])


def assumptions(joint: Array, shares: Sequence[float], told: bool = True) -> Assumptions:
    """μ and l of Theorem 2 over a grid of α₁, where ‖α − α'‖² = 2 (α₁ − α₁')²."""
    optima = {share: attention(joint, share, told) for share in shares}
    strong, regret = [], []
    for share, best in optima.items():
        for other, rest in optima.items():
            logits = shown(share, told, len(joint)) @ rest.soft
            p, moved = expit(logits), turn(told, len(joint)) @ rest.soft
            strong.append(float((joint.sum(-1) * p * (1 - p) * moved**2).sum()) / 2)
            if other != share:
                regret.append((loss(joint, logits) - best.loss) / (share - other) ** 2)
    return Assumptions(min(strong), max(regret))


def descend(slope: Callable[[float], float], start: float, rate: float = 0.1, steps: int = 150) -> list[float]:
    """Where a generator goes that follows its slope from `start`, within [0, 1], until it stands."""
    path = [start]
    while len(path) <= steps and (len(path) == 1 or abs(path[-1] - path[-2]) > STILL):
        path.append(float(np.clip(path[-1] - rate * slope(path[-1]), 0.0, 1.0)))
    return path


@dataclass(frozen=True)
class _Pair:
    """A hard predictor that is shown one word, and a soft one that sees the text through attention."""

    joint: Array
    share: float
    strength: float

    def total(self, both: Array) -> tuple[float, Array]:
        """L_r + L_a + λ JS, and how it changes with the weights of both."""
        text, here = self.joint.sum(-1), shown(self.share, True, len(self.joint))
        hard, soft = np.split(both, [len(self.joint)])
        whole, soft_slope = read(self.joint, here, soft)
        q, hard_slope = expit(here @ soft), np.zeros(len(hard))
        for chance, seen in self._masks():
            p = expit(seen @ hard)
            own, own_slope = read(self.joint, seen, hard)
            whole += chance * (own + self.strength * float((text * js(p, q)).sum()))
            hard_slope += chance * (own_slope + self.strength * back(text * js_slope(p, q), p, seen))
            soft_slope += chance * self.strength * back(text * js_slope(q, p), q, here)
        return whole, np.concatenate([hard_slope, soft_slope])

    def generator(self, hard: Array, soft: Array) -> tuple[float, float]:
        """L_a + λ JS, and how it changes with π₁ as a weight; what is drawn is given."""
        text, logits = self.joint.sum(-1), shown(self.share, True, len(self.joint)) @ soft
        q, moved = expit(logits), turn(True, len(self.joint)) @ soft
        whole, slope = loss(self.joint, logits), float((error(self.joint, logits) * moved).sum())
        for chance, seen in self._masks():
            p = expit(seen @ hard)
            whole += self.strength * chance * float((text * js(p, q)).sum())
            slope += self.strength * chance * float((text * js_slope(q, p) * q * (1 - q) * moved).sum())
        return whole, slope

    def _masks(self) -> tuple[tuple[float, Array], ...]:
        """The chance of each sentence to be selected, and what is seen of the texts then."""
        words = len(self.joint)
        return (self.share, shown(1.0, False, words)), (1 - self.share, shown(0.0, False, words))
