"""Bounds of randomized smoothing over independent substitutions of words.

The words X_1 … X_T of a rewrite are drawn independently, X_t uniformly from a finite set P_t.  Q_t are the sets of
another text.  For every function h of the words with values in [0, 1]:

    | E_P h − E_Q h |  ≤  TV(P, Q)  ≤  1 − Π_t (1 − TV_t)          TV_t = 1 − |P_t ∩ Q_t| / max(|P_t|, |Q_t|)

Proof.  A uniform distribution has the mass min(1/|P_t|, 1/|Q_t|) on each shared word, so TV_t is as stated.  A maximal
coupling of each position agrees with probability 1 − TV_t.  Independent couplings agree everywhere with probability
Π_t (1 − TV_t), and two variables that agree with probability s have a total variation of at most 1 − s.

Samples bound probabilities under P exactly (Clopper & Pearson 1934).
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Floats = NDArray[np.float64]


def uniform_total_variation(first: Collection[object], second: Collection[object]) -> float:
    """The total variation of the uniform distributions over two sets.

    >>> uniform_total_variation({1, 2}, {2, 3, 4, 5})
    0.75
    """
    return 1 - len(set(first) & set(second)) / max(len(first), len(second))


def product_total_variation(distances: Floats, changes: int | None = None, free: Floats | None = None) -> float:
    """Upper bound of the total variation if at most `changes` positions differ; None: all.  (T,) -> ()

    `free`: distances of at most `distances` by which every position may differ, without counting as a change.

    >>> product_total_variation(np.array([0.5, 0.0, 0.2]), 1), product_total_variation(np.array([0.5, 0.0, 0.2]))
    (0.5, 0.6)
    """
    base = 1 - (np.zeros_like(distances) if free is None else free)
    ratios = np.divide(1 - distances, base, out=np.ones_like(base), where=base > 0)
    return float(1 - np.prod(base) * np.prod(np.sort(ratios)[:changes]))


def binomial_bounds(counts: NDArray[np.integer], n: int, error: float) -> tuple[Floats, Floats]:
    """Lower and upper bounds of the probabilities of events that occurred `counts` times in n trials.  (C,) -> (C,)

    All of them hold at once with probability 1 − `error` (Bonferroni).
    """
    k, delta = np.asarray(counts, np.float64), error / (2 * len(counts))
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, delta), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - delta), 1.0)
    return low, high


def is_separated(low: Floats, high: Floats, chosen: NDArray[np.bool_], shift: float) -> bool:
    """True if each chosen probability exceeds all others after shifts of at most `shift` each.  (T,) -> bool"""
    if chosen.all() or not chosen.any():
        return True
    return bool(low[chosen].min() - high[~chosen].max() > 2 * shift)
