"""LabelVotes: a function that returns the label of each text, or that is called several times, as probabilities.

    p_c = n_c / k          n_c of k calls return the label c
    p   = mean of p^(1) … p^(k)      for a function that returns probabilities

One call of a function that always gives the same label has probabilities 0 and 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Label

CONCURRENCY = 8


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """How a black box is queried."""

    votes: int | None = None
    """Answers per text; None: one, and of a hosted model without log-probabilities its default."""
    max_requests: int | None = None
    """Most requests to a server; None: no limit."""
    concurrency: int = CONCURRENCY
    """Requests at a time."""

    def refuse_unused(self, name: str, *, is_function: bool) -> None:
        """Refuse options that have no effect on a model that is not hosted."""
        if self.votes is not None and not is_function:
            raise UserError(
                f"votes= (--votes) is for prompted or hosted models and functions, not for {name}: leave it out"
            )
        if self.max_requests is not None or self.concurrency != CONCURRENCY:
            option = "max_requests= (--max-requests)" if self.max_requests is not None else "concurrency="
            raise UserError(f"{option} is for hosted models, and {name} is not one: leave it out")


@dataclass(frozen=True)
class LabelVotes:
    """A function texts -> labels or probabilities, as a function texts -> probabilities."""

    function: Callable[[list[Any]], Any]
    classes: tuple[Label, ...]
    votes: int = 1

    def __call__(self, texts: list[Any]) -> Any:
        """(N,C)"""
        if self.votes == 1:
            return self._one_hot(self.function(texts), len(texts))
        from steadygaze.explainers.learned.black_box_queries import predicted  # imports SciPy

        return np.mean([predicted(self._call_once, list(texts), len(texts)) for _ in range(self.votes)], 0)

    def _call_once(self, texts: list[Any]) -> Any:
        return self._one_hot(self.function(texts), len(texts))

    def _one_hot(self, answer: Any, count: int) -> Any:
        """Labels as probabilities of 0 and 1; anything else unchanged."""
        labels = _labels(answer, count)
        if labels is None:
            return answer
        names = {str(name): position for position, name in enumerate(self.classes)}
        if missing := [label for label in labels if str(label) not in names]:
            raise UserError(
                f"the black box returned another label than its classes: {unknown('label', missing[0], self.classes)}"
            )
        votes: NDArray[np.float64] = np.zeros((count, len(names)))
        votes[np.arange(count), [names[str(label)] for label in labels]] = 1
        return votes


def _labels(answer: Any, count: int) -> list[Any] | None:
    """The labels in an answer; None if it has no names or whole numbers, one for each text."""
    values = answer.tolist() if hasattr(answer, "tolist") else answer
    if not isinstance(values, list | tuple) or len(values) != count:
        return None
    return list(values) if all(isinstance(value, str | int) for value in values) else None
