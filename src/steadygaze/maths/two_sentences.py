"""A text of two sentences of one word each, p(x₁, x₂, y) known: what predictors see of it, and how well they read it.

    joint   (K,K,2)         p(x₁, x₂, y) over K words and two classes; x₁ and x₂ draw from the same words
    shown   (K,K,K or 2K)   what is seen of each text: words as one-hot vectors, weighted π₁ and 1 − π₁; added up, or
                            side by side where the predictor is *told* which sentence is which
    logit = shown · weights

For `maths.interlocking`; everything is exact but for the search of `least`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit, xlogy

Array = NDArray[np.float64]


def toy(first: float = 0.85, second: float = 0.8) -> Array:
    """p(x₁, x₂, y): each sentence tells y with the chance given, but word 1 speaks for y in x₁, against it in x₂."""
    one, two = (np.array([[right, 1 - right], [1 - right, right]]) for right in (first, 1 - second))  # (y,word)
    return np.asarray(np.einsum("yi,yj->ijy", one, two) / 2)


def shown(share: float, told: bool, words: int) -> Array:
    one, two = (np.broadcast_to(x, (words,) * 3) for x in (np.eye(words)[:, None], np.eye(words)[None]))
    return np.concatenate([share * one, (1 - share) * two], axis=-1) if told else share * one + (1 - share) * two


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
    found = minimize(of, start, jac=True, method="L-BFGS-B", bounds=box, options={"ftol": 1e-16, "gtol": 1e-11})
    return np.asarray(found.x)


def _entropy(p: Array) -> Array:
    return -np.asarray(xlogy(p, p) + xlogy(1 - p, 1 - p))
