"""Cross-validated ridge-penalized multinomial logistic regression, all folds at once.

    minimize over w   ½ Σ_c |w_c|² + C Σ_i s_i (−ln softmax(w x_i + b)_{y_i})        s_i: balances the classes

Böhning 1992 bounds the Hessian of every class by ½ Xᵀ S X + I, so that one inverse for each fold serves all steps;
Nesterov's momentum with restarts speeds them up.  The objective is that of scikit-learn's LogisticRegression with
class_weight="balanced"; for two classes with 2 C, since it has one weight vector for both.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
FOLDS = 5
"""Cross-validation folds."""
TOLERANCE = 1e-7
"""Largest change of a coefficient at the end."""
MOST_STEPS = 2_000
CONSTANT = 1e-10
"""Largest standard deviation, from rounding, of a feature that never varies."""


def balanced_folds(kind: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fold of each example, sorted by class: every fold has its share of each class.  (N,) -> (N,)"""
    return (np.arange(len(kind)) - np.searchsorted(kind, kind)) % FOLDS


def cross_validated(features: Values, kind: NDArray[np.int64], fold: NDArray[np.int64], *, strength: float) -> Values:
    """Probabilities of the classes of each example, from the examples of the other folds.  (N,F), (N,) -> (N,C)

    `strength`: C, the weight of the data.  Features are standardized by the training examples of each fold.
    """
    classes = int(kind.max()) + 1
    target = np.eye(classes)[kind]
    chosen = (np.arange(FOLDS)[:, None] != fold).astype(np.float64)  # (G,N) the training examples of each fold
    counts = chosen @ target
    shares = chosen.sum(1, keepdims=True) / np.maximum(counts, 1) / (counts > 0).sum(1, keepdims=True)
    weight = (strength * chosen * (np.where(counts > 0, shares, 0.0) @ target.T))[..., None]  # (G,N,1)
    share = chosen / chosen.sum(1, keepdims=True)
    centered = features - (share @ features)[:, None]  # (G,N,F)
    spread = np.sqrt((share[..., None] * centered**2).sum(1, keepdims=True))
    scaled = centered / np.where(spread > CONSTANT, spread, 1.0)
    x = np.concatenate([scaled, np.ones((*scaled.shape[:2], 1))], -1)  # (G,N,F+1)
    penalty = np.append(np.ones(features.shape[1]), 1e-9)[:, None]  # the intercept is free
    inverse = np.linalg.inv(0.5 * np.swapaxes(x, 1, 2) @ (weight * x) + np.diag(penalty[:, 0]))
    w = ahead = np.zeros((FOLDS, x.shape[-1], classes))
    momentum = 1.0
    for _ in range(MOST_STEPS):
        slope = np.swapaxes(x, 1, 2) @ (weight * (_softmax(x @ ahead) - target)) + penalty * ahead
        after = ahead - inverse @ slope
        change = after - w
        if np.abs(after - ahead).max() < TOLERANCE:
            w = after
            break
        if (slope * change).sum() > 0:  # the momentum points uphill
            ahead, momentum = after, 1.0
        else:
            following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
            ahead, momentum = after + (momentum - 1) / following * change, following
        w = after
    probabilities = _softmax(x @ w)
    return np.asarray(probabilities[fold, np.arange(len(kind))])


def _softmax(scores: Values) -> Values:
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(-1, keepdims=True))
