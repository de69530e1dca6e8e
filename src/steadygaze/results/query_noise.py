"""QueryNoise: how much the answers of a black box to the same text differ.

    change    mean over texts and pairs of answers of ½ Σ_c |p_c − p′_c|, for two classes |Δp|
    spread    standard deviation of the probability of the first predicted class, for one answer to a text
    flips     texts whose predicted class is not the same in all answers

If the first two answers differ by more than NOISY on average, or a label changes, each text is asked a third time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.rounding import percent
from steadygaze.results.formatting import count_text
from steadygaze.results.health import HEALTHY, Health, HealthProblem, ProblemKind

NOISY = 0.01
"""Mean change from which a model is called noisy: half precision rounds differently in other batches."""
UNANSWERED = 0.1
"""Share of answers that name no label, from which it is a problem."""


@dataclass(frozen=True)
class QueryNoise:
    texts: int
    draws: int
    """How often each text was asked."""
    change: float
    spread: float
    flips: int
    unanswered: float = 0.0
    """Share of the answers of a hosted model that name no label."""

    @classmethod
    def of(cls, draws: Sequence[NDArray[np.float64]], unanswered: float = 0.0) -> "QueryNoise":
        """The noise of two or more answers to the same texts.  (N,C) each

        >>> QueryNoise.of([np.array([[0.6, 0.4]]), np.array([[0.4, 0.6]])])
        QueryNoise(texts=1, draws=2, change=0.2, spread=0.1414, flips=1, unanswered=0.0)
        """
        values = np.stack(draws)  # (D,N,C)
        pairs = [(first, second) for second in range(len(values)) for first in range(second)]
        change = float(np.mean([np.abs(values[first] - values[second]).sum(-1) / 2 for first, second in pairs]))
        labels = values.argmax(-1)
        of_label = np.take_along_axis(values, np.broadcast_to(labels[:1, :, None], (*labels.shape, 1)), -1)[..., 0]
        spread = math.sqrt(of_label.var(0, ddof=1).mean())
        flips = int((labels != labels[0]).any(0).sum())
        return cls(values.shape[1], len(values), round(change, 4), round(spread, 4), flips, unanswered)

    @property
    def is_noisy(self) -> bool:
        return self.change > NOISY or self.flips > 0

    @property
    def sentence(self) -> str:
        """The noise in words."""
        repeated = f"{count_text(self.texts, 'text')} asked {'twice' if self.draws == 2 else f'{self.draws} times'}"
        if not self.change:
            return f"{repeated}: the same answers"
        return (
            f"{repeated}: probabilities differ by {self.change:.2g} on average (standard deviation of an answer "
            f"{self.spread:.2g}), the label of {count_text(self.flips, 'text')} changes"
        )

    @property
    def health(self) -> Health:
        """Noise, and answers without a label, as known-bad states."""
        problems = []
        if self.unanswered > UNANSWERED:
            problems.append(HealthProblem(ProblemKind.UNANSWERED, value=self.unanswered))
        if self.is_noisy:
            share = percent(self.flips / self.texts)
            detail = f"{count_text(self.texts, 'text')}, each asked {self.draws} times; labels change in {share}"
            problems.append(HealthProblem(ProblemKind.NOISY, value=self.change, limit=NOISY, detail=detail))
        return Health(tuple(problems)) if problems else HEALTHY
