"""Synonym groups that do not lower macro-F1: merges are tested on validation texts, in batches.

A merge is a word and its representative, or the first word of its group that occurs in the texts.  The score of a set
of merges is the validation macro-F1 of a TF-IDF logistic regression, trained on texts in which each word of the set
counts as its representative.  A batch of merges is accepted if the score, together with the merges accepted so far, is
not below the score without groups.  Otherwise its halves are tested in turn, and a single merge is left out:

    accept(batch):  score(accepted + batch) ≥ score(∅)  →  accepted += batch
                    otherwise, if |batch| > 1           →  accept(first half), accept(second half)

The score of the accepted merges is optimistic: the same validation texts select them.

So groups that cost nothing take one evaluation, and each harmful merge about 2 log₂ n.  Batches have the most frequent
words first.  Merges of words that occur in no text are accepted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from steadygaze.data.label_vectors import INVERSE_PENALTY, word_counts
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.word_tokenizer import SPECIALS, build_word_tokenizer

LONGEST = 2**31 - 1
MOST_EVALUATIONS = 200
"""Evaluations, after which every batch that fails is left out as a whole."""


@dataclass(frozen=True, slots=True)
class LearnedGroups:
    """The groups that remain, and the score with and without them."""

    groups: SynonymGroups
    score: float
    """Validation macro-F1 with the groups.  It is optimistic: the same texts select the merges."""
    score_without: float
    evaluations: int
    merges: int
    """Number of tested merges."""
    rejected: tuple[tuple[str, str], ...]
    """Words that are left out, each with the word that it was tested with."""


def learn_groups(
    groups: SynonymGroups,
    train: tuple[Sequence[str], Sequence[object]],
    validation: tuple[Sequence[str], Sequence[object]],
) -> LearnedGroups:
    """Leave out merges that lower the validation macro-F1; `train` and `validation`: texts and labels."""
    regression = _MergedRegression(train, validation)
    known = ([regression.index[word] for word in group if word in regression.index] for group in groups.groups)
    merges = sorted((word, ids[0]) for ids in known for word in ids[1:])  # ids fall with the frequency
    base = regression.score([])
    accepted, score, evaluations = halve(merges, regression.score, base)
    kept = set(accepted)
    rejected = [(regression.words[word], regression.words[name]) for word, name in merges if (word, name) not in kept]
    return LearnedGroups(
        _without(groups, {word for word, _ in rejected}), score, base, evaluations + 1, len(merges), tuple(rejected)
    )


Merge = tuple[int, int]


def halve(
    merges: Sequence[Merge], score: Callable[[list[Merge]], float], least: float
) -> tuple[list[Merge], float, int]:
    """The accepted merges, their score, and the number of evaluations.

    >>> halve([(i, 0) for i in range(1, 9)], lambda merges: -((5, 0) in merges), 0)[0]
    [(1, 0), (2, 0), (3, 0), (4, 0), (6, 0), (7, 0), (8, 0)]
    """
    accepted: list[Merge] = []
    reached, evaluations = least, 0
    batches = [list(merges)] if merges else []
    while batches:
        batch = batches.pop()
        value = score([*accepted, *batch])
        evaluations += 1
        if value >= least:
            accepted += batch
            reached = value
        elif len(batch) > 1 and evaluations + len(batches) < MOST_EVALUATIONS:
            middle = len(batch) // 2
            batches += [batch[middle:], batch[:middle]]
    return accepted, reached, evaluations


class _MergedRegression:
    """A TF-IDF logistic regression on texts with merged words."""

    def __init__(
        self,
        train: tuple[Sequence[str], Sequence[object]],
        validation: tuple[Sequence[str], Sequence[object]],
    ) -> None:
        tokenizer = build_word_tokenizer([*train[0], *validation[0]], max_length=LONGEST)
        self.words = tokenizer.vocabulary
        self.index = {word: i for i, word in enumerate(self.words) if i >= len(SPECIALS)}
        tokens = (tokenizer.encode(texts) for texts, _ in (train, validation))
        self._train, self._validation = (word_counts(texts, tokenizer.size) for texts in tokens)
        self._labels, self._gold = ([str(label) for label in labels] for _, labels in (train, validation))

    def score(self, merges: Sequence[Merge]) -> float:
        """Validation macro-F1."""
        size = len(self.words)
        target = np.arange(size)
        for word, name in merges:
            target[word] = name
        merge = csr_matrix((np.ones(size), (np.arange(size), target)), (size, size))
        counts = self._train @ merge
        scaler = TfidfTransformer().fit(counts)
        regression = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000).fit(scaler.transform(counts), self._labels)
        predicted: NDArray[np.str_] = regression.predict(scaler.transform(self._validation @ merge))
        return float(f1_score(self._gold, predicted, average="macro", zero_division=0.0))


def _without(groups: SynonymGroups, words: set[str]) -> SynonymGroups:
    """The groups without these words; groups of one word are left out."""
    remaining = (tuple(word for word in group if word not in words) for group in groups.groups)
    return replace(groups, groups=tuple(group for group in remaining if len(group) > 1))
