"""What many texts and a few seeds say together: means, intervals, differences, and what chance alone would do.

    v[s,i]       one number for the model of seed s and for text i; NaN where the question makes no sense of the text
    mean         1/S Σ_s mean_i v[s,i]
    interval     two-level bootstrap: S seeds are drawn with replacement, and N texts, the same ones for every seed; the
                 middle 95 % of the means of such draws.  With one seed texts alone are drawn, with one text seeds alone
    difference   v − v′, seed by seed and text by text: the same draws for both, and an interval as of any other v
    p            sign flips: d_i = mean over seeds of v[s,i] − v′[s,i];  how often Σ ±d_i, each sign by a coin, is as
                 far from 0 as Σ d_i is.  All 2^N coins where there are few, else RESAMPLES of them and the one observed
    Holm         the k-th smallest of m values of p times (m − k + 1), never below the one before it, at most 1

The p is about texts: whether these models would differ on other texts of the same kind.  That holds at any number of
seeds, where a test over seeds would need six of them to reach 0.05 at all (2 / 2^6).  It is not about retraining: two
batches of the same technique can differ beyond doubt on these texts.  Seeds are in the interval, roughly: few of them
make it too narrow.  So a difference counts (`table.py`) when p says it is no accident of the texts *and* the interval,
over texts and seeds, leaves out 0.

Owen 2007, "The pigeonhole bootstrap" (arXiv:0712.1111), for two ways of drawing at once; Fisher 1935 for sign flips;
Holm 1979.  Departs from Owen: nothing known.  Pinned by tests/compare/test_statistics.py.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
DRAWS = 2_000
"""Of a bootstrap."""
RESAMPLES = 9_999
"""Of a test by sign flips: the smallest p it can find is 1 / 10,000."""
EXACT = 13
"""Texts up to which every pattern of signs is tried: 2^13 is less than RESAMPLES."""
LEVEL = 0.95
_AT_ONCE = 2_000_000  # numbers drawn at a time: 16 MB whatever N is
_ROUNDING = 1e-12  # of Σ|d|: sums that are equal on paper count as equal


def each(values: Values) -> Values:
    """The mean of every seed over its texts; NaN where it has none.  (S,N) -> (S,)"""
    known = np.isfinite(values)
    count = known.sum(-1)
    total = np.where(known, values, 0.0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def mean(values: Values) -> float:
    """(S,N) -> one number"""
    return float(each(values).mean())


def intervals(
    values: Values, *, seed: int = 0, level: float = LEVEL, draws: int = DRAWS
) -> list[tuple[float, float] | None]:
    """Where each mean lies with confidence `level`, all by the same draws; None: nothing to draw from.  (M,S,N)"""
    random = np.random.default_rng(seed)
    means = np.concatenate([_drawn(values, random, some) for some in _portions(draws, values.shape[2])])
    several = values.shape[1] * values.shape[2] > 1
    return [_middle(means[:, i], level) if several else None for i in range(len(values))]


def across_seeds(differences: Values) -> Values:
    """The mean of every text over the seeds that have it.  (S,N) -> (N,)"""
    return each(differences.T)


def sign_flips(differences: Values, *, seed: int = 0, resamples: int = RESAMPLES) -> Values:
    """p of each row: that its mean is as far from 0 by chance alone; NaN where it has no number.  (M,N) -> (M,)"""
    known = np.where(np.isfinite(differences), differences, 0.0)
    observed = np.abs(known.sum(-1)) - _ROUNDING * np.abs(known).sum(-1)  # (M,)
    texts = differences.shape[1]
    if texts <= EXACT:
        beyond, of = np.abs(_every(texts) @ known.T) >= observed, 2**texts
        p = beyond.sum(0) / of
    else:
        random = np.random.default_rng(seed)
        count = np.zeros(len(known))
        for some in _portions(resamples, texts):
            signs = 2.0 * random.integers(2, size=(some, texts), dtype=np.int8) - 1
            count += (np.abs(signs @ known.T) >= observed).sum(0)
        p = (count + 1) / (resamples + 1)
    return np.where(np.isfinite(differences).any(-1), p, np.nan)


def holm(p: Sequence[float]) -> list[float]:
    """Each p as if the others had not been looked at; NaN was no comparison, and is not counted.

    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    """
    corrected = np.array(p, dtype=np.float64)
    order = np.argsort(corrected, kind="stable")[: int(np.isfinite(corrected).sum())]  # NaN comes last
    stretched = corrected[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(stretched), 1.0)
    return [float(one) for one in corrected]


def _middle(means: Values, level: float) -> tuple[float, float] | None:
    found = means[np.isfinite(means)]  # few texts, most of them NaN: a draw may hold no number
    if not len(found):
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _drawn(values: Values, random: np.random.Generator, some: int) -> Values:
    """The means of so many draws.  (M,S,N) -> (some,M)"""
    many, seeds, texts = values.shape
    flat = values.reshape(many * seeds, texts)
    known = np.isfinite(flat)
    lots = random.integers(texts, size=(some, texts)) + texts * np.arange(some)[:, None]
    often = np.bincount(lots.ravel(), minlength=some * texts).reshape(some, texts).astype(np.float64)
    total, count = often @ np.where(known, flat, 0.0).T, often @ known.T.astype(np.float64)  # (some,M·S)
    means = np.where(count > 0, total / np.maximum(count, 1.0), np.nan).reshape(some, many, seeds)
    chosen = random.integers(seeds, size=(some, 1, seeds))
    drawn: Values = np.take_along_axis(means, chosen, axis=2).mean(-1)
    return drawn


def _every(texts: int) -> Values:
    """All patterns of signs.  -> (2^N,N)"""
    bits = (np.arange(2**texts)[:, None] >> np.arange(texts)) & 1
    return 2 * bits.astype(np.float64) - 1


def _portions(total: int, width: int) -> Iterator[int]:
    step = max(1, _AT_ONCE // max(width, 1))
    for done in range(0, total, step):
        yield min(step, total - done)
