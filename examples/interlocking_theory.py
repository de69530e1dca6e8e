"""The losses of selection, attention and A2R for texts of two sentences, computed without sampling.

Yu et al. 2021 (A2R, https://arxiv.org/abs/2110.13880), §3.2-3.5 and 4.3, Fig. 2.  A text has two sentences of one word
each.  p(x₁, x₂, y) is known, and x₁ is more informative about y.  π₁ is the probability that x₁ is selected, and the
weight that attention gives it.

    joint    (K,K,2)          p(x₁, x₂, y) over K words and two classes; x₁ and x₂ are from the same vocabulary
    inputs   (K,K,K or 2K)    one-hot words, weighted π₁ and 1 − π₁.  They are concatenated if the predictor is
                              *conditioned* on the index of its sentence; otherwise they are added
    logits = inputs · weights

Losses are cross-entropies in nats, each with the best predictors for π.  They are exact, except for the numerical
search of `minimize_loss`.

    selection   L_r*(π) = min_θ E[ℓ(y, f(x_M; θ))],  M ~ π        = H(y | the selected word)
    attention   L_a*(π) = min_w E[ℓ(y, σ(π₁ w₁[x₁] + π₂ w₂[x₂]))]     |w| ≤ the largest log-odds of a single sentence
    A2R         L_a(π, w) + λ E[JS(f(x_M; θ) ‖ σ(…))],  each predictor optimal for the fixed other one

Theorem 1: L_r* is concave, for all predictors, also if π depends on x.  The loss is an expectation over M ~ π, so L_r*
is a minimum of linear functions.  Concavity alone does not interlock.  A predictor that is conditioned on the index of
its sentence makes L_r*(π₁) linear, with its minimum at the better sentence.  A predictor that is not conditioned
applies to x₁ what it learned from x₂, and the worse corner becomes a local minimum.  `toy` is such a case: the same
word is positive in x₁ and negative in x₂.

Theorem 2: L_a* is convex in α if L_a(α, w) is μ-strongly convex in α, its regret is at most (l/2) ‖α − α'‖², and μ ≥ l
(`assumptions`).  These conditions are sufficient, not necessary.  If attention distinguishes the sentences, L_a* is
convex in any case, because the pairs (α, αw) within the bound are a convex set.  If it does not (conditioned=False),
both the conditions and convexity fail for `toy`.

Both curves meet at the ends, where one sentence has all the weight.  Between them ℓ is convex in the logit, so
L_a* ≤ L_r*.  The hard predictor of A2R is not conditioned, its soft predictor is.  The curve of A2R is above L_a*.  In
`toy` it is below L_r* up to λ = 5.  At λ = 20 it is above: the predictors agree on uninformative predictions.  The
generator of A2R receives the gradient of JS through the soft predictor alone (§4.2).  Up to λ = 1 it ends where
attention alone ends, at 0.60, from both corners: the better sentence is more probable.  From λ = 3 it stays on the side
where it started: with λ = 5, at 0.28 from the worse corner.

Departs from the paper: w is bounded, because L_a* without a bound is constant with a jump at each end.  μ is computed
over the predictors that are optimal for some α, because w = 0 has no curvature.  Each π₁ is a constant, except in
`selection`.
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
    """p(x₁, x₂, y): the probabilities that a sentence agrees with y; word 1 is positive in x₁, negative in x₂."""
    first_joint, second_joint = (
        np.array([[right, 1 - right], [1 - right, right]]) for right in (first, 1 - second)
    )  # (y,word)
    return np.asarray(np.einsum("yi,yj->ijy", first_joint, second_joint) / 2)


def one_hot_inputs(share: float, conditioned: bool, words: int) -> Array:
    first_word, second_word = (np.broadcast_to(x, (words,) * 3) for x in (np.eye(words)[:, None], np.eye(words)[None]))
    return (
        np.concatenate([share * first_word, (1 - share) * second_word], axis=-1)
        if conditioned
        else share * first_word + (1 - share) * second_word
    )


def input_slope(conditioned: bool, words: int) -> Array:
    """The derivative of `one_hot_inputs` with respect to π₁."""
    return one_hot_inputs(1.0, conditioned, words) - one_hot_inputs(0.0, conditioned, words)


def loss(joint: Array, logits: Array) -> float:
    """Cross-entropy."""
    return float((joint[..., 1] * np.logaddexp(0, -logits) + joint[..., 0] * np.logaddexp(0, logits)).sum())


def logit_gradient(joint: Array, logits: Array) -> Array:
    """The gradient of the loss with respect to the logits.  -> (K,K)"""
    return np.asarray(joint.sum(-1) * expit(logits) - joint[..., 1])


def loss_and_gradient(joint: Array, inputs: Array, weights: Array) -> tuple[float, Array]:
    """The loss, and its gradient with respect to the weights."""
    logits = inputs @ weights
    return loss(joint, logits), np.einsum("ij,ijk->k", logit_gradient(joint, logits), inputs)


def weight_gradient(slope: Array, p: Array, inputs: Array) -> Array:
    """The gradient with respect to the weights, from the gradient with respect to the probabilities."""
    return np.asarray(np.einsum("ij,ijk->k", slope * p * (1 - p), inputs))


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
    """The largest absolute log-odds of y, given a single sentence."""
    return float(max(np.abs(odds(joint.sum(axis))).max() for axis in (0, 1)))


def minimize_loss(loss_of: Callable[[Array], tuple[float, Array]], start: Array, limit: float) -> Array:
    """The weights that minimize a smooth loss, each within ±limit."""
    box = [(-limit, limit)] * len(start)
    optimum = minimize(loss_of, start, jac=True, method="L-BFGS-B", bounds=box, options={"ftol": 1e-16, "gtol": 1e-11})
    return np.asarray(optimum.x)


def _entropy(p: Array) -> Array:
    return -np.asarray(xlogy(p, p) + xlogy(1 - p, 1 - p))


EDGE = 1e-6
"""The smallest distance of π₁ to 0 and 1 in a search: at 0 and 1 the weights of one sentence have no effect."""
SMALLEST_STEP = 1e-4
"""A generator with smaller steps has converged."""


class Equilibrium(NamedTuple):
    """Optimal predictors at one π₁."""

    loss: float
    """The loss of the generator."""
    slope: float
    """The derivative of that loss with respect to π₁, for fixed predictors."""
    soft: Array
    """w of the attention predictor."""


class Assumptions(NamedTuple):
    """The constants of Theorem 2, which applies if strong ≥ regret."""

    strong: float
    """μ"""
    regret: float
    """l"""


def selection(joint: Array, policy: ArrayLike, conditioned: bool = False) -> Array:
    """L_r*(π): policy is π₁, one number, or one for each pair of words.  (K,K,2), (…,K,K) or (…,1,1) or () -> (…,)"""
    first = np.asarray(policy, float)[..., None] * joint
    inputs = first.sum(-2), (joint - first).sum(-3)  # (…,K,2) each: the selected word, and y
    pairs = np.concatenate(inputs, axis=-2) if conditioned else inputs[0] + inputs[1]
    every = pairs.sum(-1)
    return np.asarray(xlogy(every, every).sum(-1) - xlogy(pairs, pairs).sum((-1, -2)))


def selection_slope(joint: Array, share: float) -> float:
    """The derivative of the generator's loss: that of x₁ minus that of x₂, for a predictor that is not conditioned."""
    theta = odds(share * joint.sum(1) + (1 - share) * joint.sum(0))
    first_loss, second_loss = (loss(joint, one_hot_inputs(end, False, len(theta)) @ theta) for end in (1.0, 0.0))
    return first_loss - second_loss


def attention(joint: Array, share: float, conditioned: bool = True) -> Equilibrium:
    """L_a*(π₁)."""
    words = len(joint)
    inputs = one_hot_inputs(float(np.clip(share, EDGE, 1 - EDGE)), conditioned, words)
    soft = minimize_loss(lambda w: loss_and_gradient(joint, inputs, w), np.zeros(inputs.shape[-1]), bound(joint))
    logits = one_hot_inputs(share, conditioned, words) @ soft
    slope = logit_gradient(joint, logits) * (input_slope(conditioned, words) @ soft)
    return Equilibrium(loss(joint, logits), float(slope.sum()), soft)


def a2r(joint: Array, share: float, strength: float) -> Equilibrium:
    """Eq. 11 and 12, with optimal predictors.  `strength` is λ; 0 is attention alone.

    Both predictors are optimal at the minimum of L_r + L_a + λ JS, which has the gradients of both equations.
    """
    words, inner = len(joint), float(np.clip(share, EDGE, 1 - EDGE))
    hard = odds(inner * joint.sum(1) + (1 - inner) * joint.sum(0))
    start = np.concatenate([hard, attention(joint, inner).soft])
    weights = minimize_loss(_Pair(joint, inner, strength).total, start, bound(joint))
    return Equilibrium(*_Pair(joint, share, strength).generator(weights[:words], weights[words:]), weights[words:])


def assumptions(joint: Array, shares: Sequence[float], conditioned: bool = True) -> Assumptions:
    """μ and l of Theorem 2 over a grid of α₁, where ‖α − α'‖² = 2 (α₁ − α₁')²."""
    optima = {share: attention(joint, share, conditioned) for share in shares}
    strong, regret = [], []
    for share, best in optima.items():
        for other, rest in optima.items():
            logits = one_hot_inputs(share, conditioned, len(joint)) @ rest.soft
            p, change = expit(logits), input_slope(conditioned, len(joint)) @ rest.soft
            strong.append(float((joint.sum(-1) * p * (1 - p) * change**2).sum()) / 2)
            if other != share:
                regret.append((loss(joint, logits) - best.loss) / (share - other) ** 2)
    return Assumptions(min(strong), max(regret))


def descend(slope: Callable[[float], float], start: float, rate: float = 0.1, steps: int = 150) -> list[float]:
    """The path of gradient descent on π₁ from `start`, within [0, 1], until it converges."""
    path = [start]
    while len(path) <= steps and (len(path) == 1 or abs(path[-1] - path[-2]) > SMALLEST_STEP):
        path.append(float(np.clip(path[-1] - rate * slope(path[-1]), 0.0, 1.0)))
    return path


@dataclass(frozen=True)
class _Pair:
    """A hard predictor, which reads one word, and a soft predictor, which reads the text through attention."""

    joint: Array
    share: float
    strength: float

    def total(self, both: Array) -> tuple[float, Array]:
        """L_r + L_a + λ JS, and its gradient with respect to the weights of both."""
        text, here = self.joint.sum(-1), one_hot_inputs(self.share, True, len(self.joint))
        hard, soft = np.split(both, [len(self.joint)])
        whole, soft_slope = loss_and_gradient(self.joint, here, soft)
        q, hard_slope = expit(here @ soft), np.zeros(len(hard))
        for probability, inputs in self._masks():
            p = expit(inputs @ hard)
            own, own_slope = loss_and_gradient(self.joint, inputs, hard)
            whole += probability * (own + self.strength * float((text * js(p, q)).sum()))
            hard_slope += probability * (own_slope + self.strength * weight_gradient(text * js_slope(p, q), p, inputs))
            soft_slope += probability * self.strength * weight_gradient(text * js_slope(q, p), q, here)
        return whole, np.concatenate([hard_slope, soft_slope])

    def generator(self, hard: Array, soft: Array) -> tuple[float, float]:
        """L_a + λ JS, and its derivative with respect to the attention weight π₁, for fixed draws."""
        text, logits = self.joint.sum(-1), one_hot_inputs(self.share, True, len(self.joint)) @ soft
        q, change = expit(logits), input_slope(True, len(self.joint)) @ soft
        whole, slope = loss(self.joint, logits), float((logit_gradient(self.joint, logits) * change).sum())
        for probability, inputs in self._masks():
            p = expit(inputs @ hard)
            whole += self.strength * probability * float((text * js(p, q)).sum())
            slope += self.strength * probability * float((text * js_slope(q, p) * q * (1 - q) * change).sum())
        return whole, slope

    def _masks(self) -> tuple[tuple[float, Array], ...]:
        """The probability that each sentence is selected, and the inputs of the predictor in that case."""
        words = len(self.joint)
        return (self.share, one_hot_inputs(1.0, False, words)), (1 - self.share, one_hot_inputs(0.0, False, words))
