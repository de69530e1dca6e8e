"""LabelWords: read the probability of each label from an answer.

    log-probabilities   p_c ∝ Σ exp(l_t) over the first tokens t that begin the label word of c, or contain all of it.
                        A label without such a token gets the largest probability that the list leaves it.
    a vote              1 for the label whose word begins the text

Case, and what surrounds letters and digits, do not count.  An answer that names no label has no probabilities; its
share, or the probability of other tokens, is the unanswered share.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadygaze.adapters.hosted.request_form import Answer
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label

SHORTEST = 2
"""Characters of a token that begins a label word; a single letter begins many words."""


@dataclass(frozen=True)
class Reading:
    """The probability of each label in one answer."""

    probabilities: NDArray[np.float64] | None
    """(C,); None: the answer names no label."""
    unanswered: float
    """Probability of answers that name no label; 0 or 1 for a vote."""


@dataclass(frozen=True)
class LabelWords:
    """The label words in plain form, in the order of the classes."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, label_words: Mapping[Label, str]) -> "LabelWords":
        words = tuple(map(plain_word, label_words.values()))
        for label, word in zip(label_words, words, strict=True):
            if not word:
                raise UserError(f"the label word of {label!r:.40} has no letter or digit: choose a word")
            if clash := [other for other in words if other != word and other.startswith(word)]:
                raise UserError(f"the label word {word!r:.40} begins the label word {clash[0]!r:.40}: choose another")
        if len(set(words)) < len(words):
            raise UserError(f"two label words are the same word: {', '.join(words):.200}")
        return cls(words)

    def read(self, answer: Answer) -> Reading:
        return self._read_tokens(answer) if answer.top else self._read_vote(answer.text)

    def _read_vote(self, text: str) -> Reading:
        start = plain_word(text)
        named = [start.startswith(word) and not start[len(word) : len(word) + 1].isalnum() for word in self.words]
        return Reading(np.array(named, np.float64), 0.0) if any(named) else Reading(None, 1.0)

    def _read_tokens(self, answer: Answer) -> Reading:
        mass, listed = np.zeros(len(self.words)), 0.0
        for token, logprob in answer.top:
            listed += math.exp(logprob)
            if (label := self._label_of(token)) is not None:
                mass[label] += math.exp(logprob)
        total = min(1.0, float(mass.sum()))
        if not total:
            return Reading(None, 1.0)
        rest = max(0.0, min(math.exp(answer.top[-1][1]), 1 - listed))
        filled = np.where(mass > 0, mass, rest)
        return Reading(filled / filled.sum(), 1 - total)

    def _label_of(self, token: str) -> int | None:
        """The only label whose word this token is, or begins."""
        start = plain_word(token)
        if start in self.words:
            return self.words.index(start)
        labels = [i for i, word in enumerate(self.words) if word.startswith(start) and len(start) >= SHORTEST]
        return labels[0] if len(labels) == 1 else None


def plain_word(text: str) -> str:
    """Lower-case text from its first to its last letter or digit.

    >>> plain_word(" **Positive**."), plain_word("Very good!"), plain_word(" ?")
    ('positive', 'very good', '')
    """
    positions = [i for i, character in enumerate(text) if character.isalnum()]
    return " ".join(text[positions[0] : positions[-1] + 1].split()).casefold() if positions else ""


def mean_of_readings(readings: Sequence[Reading], classes: int) -> NDArray[np.float64]:
    """The mean of the answers that name a label; the same probability for all labels if none does.  (C,)"""
    named = [reading.probabilities for reading in readings if reading.probabilities is not None]
    return np.mean(named, 0) if named else np.full(classes, 1 / classes)
