"""Statistics over texts and seeds: means, bootstrap intervals, differences and sign-flip tests.

    v[s,i]       one number for the model of seed s and for text i; NaN if it does not apply
    mean         1/S Σ_s mean_i v[s,i]
    interval     two-level bootstrap: S seeds are drawn with replacement, and N texts, the same ones for every seed; the
                 middle 95 % of the means of such draws.  With one seed texts alone are drawn, with one text seeds alone
    difference   v − v′, seed by seed and text by text, with the same draws for both; its interval is stretched: what a
                 draw of seeds adds to the mean of all seeds is taken times t(S−1) / z · √(S / (S−1)), as Student's t
                 does for few of them (×9 for 2 seeds, 2.7 for 3, 1.6 for 5, 1.2 for 10)
    p            sign flips: d_i = mean over seeds of v[s,i] − v′[s,i];  how often Σ ±d_i, each sign by a coin, is as
                 far from 0 as Σ d_i is.  All 2^N coins where there are few, else RESAMPLES of them and the one observed
    Holm         the k-th smallest of m values of p times (m − k + 1), never below the one before it, at most 1

The p is about texts: whether these models would differ on other texts of the same kind.  That holds at any number of
seeds, where a test over seeds would need six of them to reach 0.05 at all (2 / 2^6).  It is not about training again:
the interval of the difference is about both.  A difference counts (`comparison_table.py`) if the corrected p is
significant *and* the interval excludes 0.  Simulated with techniques that do not differ, 300 texts, seeds
that move the mean by a tenth of what texts differ by, at 5 %: p alone calls 45 % of 3-seed comparisons different, a
plain bootstrap interval 16 %, the stretched one 2 %; over 2 to 10 seeds and larger effects of the seed it stays under
6 %.  With one seed the difference is between two models only.

Owen 2007, "The pigeonhole bootstrap" (arXiv:0712.1111), for two ways of drawing at once; Fisher 1935 for sign flips;
Holm 1979.  Departs from Owen: the stretching, which is ours.  Tested by tests/study/test_statistics.py.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]
DRAWS = 2_000
"""Resamples of a bootstrap."""
RESAMPLES = 9_999
"""Resamples of a sign-flip test: the smallest p is 1 / 10,000."""
EXACT = 13
"""Texts for which all patterns of signs are tried: 2^13 is less than RESAMPLES."""
LEVEL = 0.95
_AT_ONCE = 2_000_000  # numbers per chunk: 16 MB for every N
_ROUNDING = 1e-12  # of Σ|d|: sums that are equal on paper count as equal


def seed_means(values: Values) -> Values:
    """The mean of every seed over its texts; NaN if it has none.  (S,N) -> (S,)"""
    known = np.isfinite(values)
    count = known.sum(-1)
    total = np.where(known, values, 0.0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def mean(values: Values) -> float:
    """(S,N) -> one number"""
    return float(seed_means(values).mean())


def intervals(
    values: Values, *, stretch: bool = False, seed: int = 0, level: float = LEVEL, draws: int = DRAWS
) -> list[tuple[float, float] | None]:
    """Confidence intervals of the means, with the same draws; None: nothing to resample.  (M,S,N)"""
    random = np.random.default_rng(seed)
    times = seed_stretch(values.shape[1], level) if stretch else 1.0
    means = np.concatenate([_drawn(values, random, some, times) for some in _portions(draws, values.shape[2])])
    several = values.shape[1] * values.shape[2] > 1
    return [_middle(means[:, i], level) if several else None for i in range(len(values))]


def seed_stretch(seeds: int, level: float = LEVEL) -> float:
    """How much further than a draw of so few seeds goes another seed may be."""
    if seeds < 2:
        return 1.0
    tail = (1 + level) / 2
    return float(stats.t.ppf(tail, seeds - 1) / stats.norm.ppf(tail) * np.sqrt(seeds / (seeds - 1)))


def by_model(pairs: Mapping[tuple[int, int], Values], models: int) -> Values:
    """What each model adds to the mean over all pairs of models, by leaving it out.  {(s,s′): (N,)} -> (S,N)

        θ = mean over pairs;   row s = S·θ − (S−1)·θ without the pairs of s       (Tukey's pseudo-values)

    The mean of the rows is θ, and they spread as models do; with two models there is one pair, and one row.
    """
    every = np.stack(list(pairs.values()))
    if models < 3:
        return every
    without = [np.stack([one for pair, one in pairs.items() if s not in pair]).mean(0) for s in range(models)]
    rows: Values = models * every.mean(0) - (models - 1) * np.stack(without)
    return rows


def across_seeds(differences: Values) -> Values:
    """The mean of every text over the seeds that have it.  (S,N) -> (N,)"""
    return seed_means(differences.T)


def sign_flips(differences: Values, *, seed: int = 0, resamples: int = RESAMPLES) -> Values:
    """The sign-flip p of each row; NaN if it has no values.  (M,N) -> (M,)"""
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
    """Holm-corrected p-values; NaN values are not counted.

    >>> holm([0.01, 0.04, 0.03, 0.005])
    [0.03, 0.06, 0.06, 0.02]
    """
    corrected = np.array(p, dtype=np.float64)
    order = np.argsort(corrected, kind="stable")[: int(np.isfinite(corrected).sum())]  # NaN comes last
    stretched = corrected[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(stretched), 1.0)
    return [float(value) for value in corrected]


def _middle(means: Values, level: float) -> tuple[float, float] | None:
    finite = means[np.isfinite(means)]  # a draw of few texts may contain only NaN
    if not len(finite):
        return None
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _drawn(values: Values, random: np.random.Generator, some: int, times: float) -> Values:
    """Means of `some` draws, with the effect of the seeds multiplied by `times`.  (M,S,N) -> (some,M)"""
    many, seeds, texts = values.shape
    flat = values.reshape(many * seeds, texts)
    known = np.isfinite(flat)
    lots = random.integers(texts, size=(some, texts)) + texts * np.arange(some)[:, None]
    often = np.bincount(lots.ravel(), minlength=some * texts).reshape(some, texts).astype(np.float64)
    total, count = often @ np.where(known, flat, 0.0).T, often @ known.T.astype(np.float64)  # (some,M·S)
    means = np.where(count > 0, total / np.maximum(count, 1.0), np.nan).reshape(some, many, seeds)
    chosen = random.integers(seeds, size=(some, 1, seeds))
    every, some_of_them = means.mean(-1), np.take_along_axis(means, chosen, axis=2).mean(-1)
    found: Values = every + times * (some_of_them - every)
    return found


def _every(texts: int) -> Values:
    """All patterns of signs.  -> (2^N,N)"""
    bits = (np.arange(2**texts)[:, None] >> np.arange(texts)) & 1
    return 2 * bits.astype(np.float64) - 1


def _portions(total: int, width: int) -> Iterator[int]:
    step = max(1, _AT_ONCE // max(width, 1))
    for done in range(0, total, step):
        yield min(step, total - done)
