"""Pairs of synonyms with different class frequencies: likely antonyms, or words that define a class.

For two words, n_c and m_c are the numbers of training texts of class c with the first and with the second word.  If the
words mean the same, n_c is hypergeometric given n = Σ n_c, m = Σ m_c and n_c + m_c.  This is Fisher's exact test of the
class against all others.  The p-value of a pair is

    p = min(1, 2 K min_c min(P[X ≤ n_c], P[X ≥ n_c]))         two sides, and K tests by Bonferroni's correction

with K = C for C > 2 classes, and K = 1 for two classes, whose tests are the same.

A pair is suspicious if two conditions are met.  It is rejected at a nominal false discovery rate of 5 % (Benjamini and
Hochberg 1995, https://doi.org/10.1111/j.2517-6161.1995.tb02031.x).  The total variation distance of the class shares is
at least 0.2, because in a large corpus every difference is significant.  Pairs of the table are tested if they can have
p ≤ 0.05 given n, m and the sums n_c + m_c.  This selection does not depend on the outcome (Tarone 1990,
https://doi.org/10.2307/2531456).  The rate is nominal because pairs share words and texts, so that their p-values are
dependent: the actual rate is not guaranteed.

Words in few texts cannot be rejected: the check does not replace a good table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadygaze.data.word_tokenizer import document_frequency

FALSE_DISCOVERY_RATE = 0.05
"""Nominal rate: the tests are dependent."""
LEAST_DISTANCE = 0.2
"""Smallest total variation distance of the class shares of a suspicious pair."""

MOST_COMPARED = 100
"""Words of a group that are compared with each other: 4,950 pairs."""

Table = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class SuspiciousPair:
    """Two synonyms with significantly different class frequencies."""

    word: str
    synonym: str
    counts: tuple[tuple[int, ...], tuple[int, ...]]
    """Number of texts of each class with the word, and with the synonym."""
    p_value: float


@dataclass(frozen=True, slots=True)
class ClassFrequencies:
    """Number of texts of each class with each word."""

    classes: tuple[str, ...]
    counts: Mapping[str, tuple[int, ...]]

    @property
    def total(self) -> dict[str, int]:
        """Number of texts with each word."""
        return {word: sum(counts) for word, counts in self.counts.items()}


def class_frequencies(texts: Sequence[str], labels: Sequence[object]) -> ClassFrequencies:
    """Document frequency of each word, per class."""
    names = tuple(sorted(set(map(str, labels))))
    by_class = [
        document_frequency([text for text, label in zip(texts, labels, strict=True) if str(label) == name])
        for name in names
    ]
    words = dict.fromkeys(word for frequency in by_class for word in frequency)
    return ClassFrequencies(names, {word: tuple(frequency.get(word, 0) for frequency in by_class) for word in words})


def suspicious_pairs(table: Table, frequencies: ClassFrequencies) -> list[SuspiciousPair]:
    """The suspicious pairs of a table, the smallest p-value first."""
    from scipy.stats import false_discovery_control

    counts = frequencies.counts
    known = {(word, name) for word, row in table.items() for name in row if word in counts and name in counts}
    pairs = sorted({(min(pair), max(pair)) for pair in known if pair[0] != pair[1]})
    if not pairs or len(frequencies.classes) < 2:
        return []
    first = np.array([counts[a] for a, _ in pairs], np.int64)
    second = np.array([counts[b] for _, b in pairs], np.int64)
    testable = smallest_p_values(first, second) <= FALSE_DISCOVERY_RATE
    if not testable.any():
        return []
    pairs = [pair for pair, flag in zip(pairs, testable, strict=True) if flag]
    first, second = first[testable], second[testable]
    p_values = exact_p_values(first, second)
    shares = [values / values.sum(-1, keepdims=True) for values in (first, second)]
    distance = np.abs(shares[0] - shares[1]).sum(-1) / 2
    rejected = (false_discovery_control(p_values) <= FALSE_DISCOVERY_RATE) & (distance >= LEAST_DISTANCE)
    suspicious = [
        SuspiciousPair(a, b, (counts[a], counts[b]), float(p_values[row]))
        for row, (a, b) in enumerate(pairs)
        if rejected[row]
    ]
    return sorted(suspicious, key=lambda pair: (pair.p_value, pair.word, pair.synonym))


def suspicious_pairs_in_groups(groups: Iterable[Sequence[str]], frequencies: ClassFrequencies) -> list[SuspiciousPair]:
    """The suspicious pairs inside groups, the smallest p-value first.

    Each representative is compared with all words of its group, and the 100 most frequent words with each other.

    >>> frequencies = class_frequencies(["good film"] * 9 + ["bad film"] * 9, [1] * 9 + [0] * 9)
    >>> [(pair.word, pair.synonym) for pair in suspicious_pairs_in_groups([("tremendous", "good", "bad")], frequencies)]
    [('bad', 'good')]
    """
    total = frequencies.total
    table: dict[str, list[str]] = {}
    for group in groups:
        words = sorted((word for word in group if word in total), key=lambda word: -total[word])[:MOST_COMPARED]
        table |= {word: words[:position] for position, word in enumerate(words)}
        table[group[0]] = list(group[1:])
    return suspicious_pairs(table, frequencies)


def exact_p_values(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """P-values of equal class frequencies.  (N,C), (N,C) -> (N,)

    >>> exact_p_values(np.array([[3, 0]]), np.array([[0, 3]])).round(3).tolist()  # 2 · 1/20
    [0.1]
    """
    from scipy.stats import hypergeom

    n, m = first.sum(-1, keepdims=True), second.sum(-1, keepdims=True)
    null = hypergeom(n + m, first + second, n)
    tail = np.minimum(null.cdf(first), null.sf(first - 1))
    return _corrected(tail)


def smallest_p_values(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
    """The smallest p-value of any counts with the same sums of rows and columns.  (N,C), (N,C) -> (N,)

    >>> smallest_p_values(np.array([[2, 1]]), np.array([[1, 2]])).round(3).tolist()  # of [3, 0] and [0, 3]
    [0.1]
    """
    from scipy.stats import hypergeom

    n, m, both = first.sum(-1, keepdims=True), second.sum(-1, keepdims=True), first + second
    null = hypergeom(n + m, both, n)
    return _corrected(np.minimum(null.pmf(np.maximum(0, both - m)), null.pmf(np.minimum(both, n))))


def _corrected(tails: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two sides and all different tests of the classes.  (N,C) -> (N,)"""
    tests = tails.shape[-1] if tails.shape[-1] > 2 else 1
    return np.asarray(np.minimum(1.0, 2 * tests * tails.min(-1)), np.float64)


def without_pairs(table: Table, pairs: Iterable[SuspiciousPair]) -> dict[str, list[str]]:
    """The table without these pairs, in both directions; words that keep no synonym are left out."""
    excluded = {pair for item in pairs for pair in ((item.word, item.synonym), (item.synonym, item.word))}
    rows = {word: [name for name in row if (word, name) not in excluded] for word, row in table.items()}
    return {word: row for word, row in rows.items() if row}
