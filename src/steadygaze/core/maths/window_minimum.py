"""The smallest sum of functions of overlapping windows, over all choices of one option for each position.

    min over x of  Σ_t f_t(x_{t−c}, …, x_{t+c})          x_t ∈ {0, …, n_t − 1};  x_t ≠ 0 at no more than `changes` t

Dynamic programming, exact: the positions are eliminated from left to right (Bellman 1957; Viterbi 1967).

    M_t(x_{t−c+1}, …, x_{t+c})  =  min over x_{t−c} of  M_{t−1}(x_{t−c}, …, x_{t+c−1}) + f_t(x_{t−c}, …, x_{t+c})
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def window_minimum(costs: Sequence[Floats], changes: int | None = None) -> tuple[float, list[int]]:
    """The minimum and a choice that reaches it.

    costs[t] has 2c + 1 axes, of the sizes n_{t−c}, …, n_{t+c}; the size is 1 outside of the sequence.

    >>> window_minimum([np.array([3.0, 1.0]), np.array([2.0, 5.0, 0.0])])
    (1.0, [1, 2])
    >>> window_minimum([np.array([3.0, 1.0]), np.array([2.0, 5.0, 0.0])], changes=1)
    (3.0, [1, 0])
    """
    axes = costs[0].ndim
    side = (axes - 1) // 2
    # The windows behind the end have no cost and eliminate the last positions.
    last = costs[-1].shape
    behind = [np.zeros((*last[shift:], *[1] * shift)) for shift in range(1, side + 1)]
    # message[n]: at most n of the eliminated positions are changed.
    message = np.zeros((1 if changes is None else changes + 1, *costs[0].shape[:-1]))
    tables = []
    for cost in [*costs, *behind]:
        total = message[..., None] + cost
        if changes is not None:  # a change takes one of the n
            total[1:, 1:] = total[:-1, 1:].copy()
            total[0, 1:] = np.inf
        tables.append(total.argmin(1))
        message = total.min(1)
    left, chosen = message.shape[0] - 1, [0] * (axes - 1)
    for table in reversed(tables):
        choice = int(table[(left, *chosen[: axes - 1])])
        left -= changes is not None and choice > 0
        chosen.insert(0, choice)
    return float(message[-1].min()), chosen[side : side + len(costs)]
