"""What a black box must say to be explained: probabilities, and of the same input the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from steadygaze.errors import UserError

NEAR = 1e-2
"""How far two answers to one input may be apart: a network in half precision rounds so much by who is beside it."""
ROUNDING = 1e-3
"""How far probabilities may be from summing to one."""


def predicted(predict: Callable[[Any], Any], inputs: Any, many: int, classes: int | None = None) -> NDArray[np.float64]:
    """Call a black box on inputs that it may change; return (n,C) probabilities.

    Raises
    ------
    UserError
        The black box raised an exception, which is the cause of this one, or did not return probabilities.
    """
    try:
        found = predict(inputs)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"the black box failed: {type(error).__name__}: {error!s:.300}") from error
    return checked(found, many, classes)


def checked(found: Any, many: int, classes: int | None = None) -> NDArray[np.float64]:
    """(n,C) probabilities, or a sentence that says what they are instead."""
    wanted = f"{many} rows of {classes or 'two or more'} probabilities, one row for each input, were expected"
    try:
        given = np.asarray(found.detach().cpu() if isinstance(found, Tensor) else found)
        if np.iscomplexobj(given):
            raise TypeError
        probs = given.astype(np.float64)
    except (TypeError, ValueError):
        raise UserError(f"the black box gave {found!r:.80}; {wanted}") from None
    if probs.ndim != 2 or len(probs) != many or probs.shape[1] < 2 or classes not in (None, probs.shape[1]):
        raise UserError(f"the black box gave numbers of shape {probs.shape}; {wanted}")
    for wrong, what in (
        (~np.isfinite(probs), "are not all finite"),
        (probs < 0, "are not all from 0 up"),
        (np.abs(probs.sum(1, keepdims=True) - 1) > ROUNDING, "do not sum to one"),
    ):
        if wrong.any():
            row = np.round(probs[wrong.any(1)][0], 6).tolist()
            raise UserError(f"the black box gave an input the probabilities {row!s:.80}, which {what}")
    return probs


def steady(first: NDArray[np.float64], again: NDArray[np.float64], kept: Path | None) -> None:
    """The same answers to the same inputs, or a sentence; `kept`: where the first ones are.  (n,C), (n,C)"""
    apart = np.abs(first - again).max(1)
    if apart.max(initial=0.0) <= NEAR:
        return
    worst = int(apart.argmax())
    said = [np.round(one[worst], 4).tolist() for one in (first, again)]
    what = (
        "changed the order of its classes" if _dealt(first, again) else "does not say the same of the same input twice"
    )
    other = f", unless it is another one than that whose answers {kept} keeps" if kept else ""
    raise UserError(
        f"the black box {what}: it said {said[0]!s:.80}, then {said[1]!s:.80}; it cannot be explained so{other}"
    )


def _dealt(first: NDArray[np.float64], again: NDArray[np.float64]) -> bool:
    """Whether the columns of the one are those of the other in some order."""
    apart = np.zeros((first.shape[1], first.shape[1]))
    for one, other in zip(first, again, strict=True):
        apart = np.maximum(apart, np.abs(one[:, None] - other[None, :]))
    return bool(apart[linear_sum_assignment((apart > NEAR).astype(np.float64))].max() <= NEAR)
