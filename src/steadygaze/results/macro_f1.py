"""Macro-F1 of predicted classes, with its bootstrap interval.  Does not import torch."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steadygaze.results.bootstrap import bootstrap_statistic
from steadygaze.results.row import Row

Classes = NDArray[np.int64]


def macro_f1_of(counts: NDArray[np.int64]) -> float:
    """Macro-F1 of a confusion matrix: label (row) by predicted class (column).  (C,C) -> one number

    Classes that neither occur nor are predicted do not count.
    """
    totals = counts.sum(0) + counts.sum(1)  # 2 TP + FP + FN
    occurs = totals > 0
    return float((2 * np.diag(counts)[occurs] / totals[occurs]).mean())


def macro_f1_row(
    label: Classes,
    predicted: Classes,
    classes: int,
    settings: Mapping[str, str | int | float] | None = None,
    *,
    seed: int = 0,
) -> Row:
    """Macro-F1 of class indices; a single example has no interval.  (N,), (N,)"""
    pairs = label * classes + predicted

    def score(rows: NDArray[np.int64]) -> float:
        return macro_f1_of(np.bincount(pairs[rows], minlength=classes**2).reshape(classes, classes))

    n = len(pairs)
    interval = bootstrap_statistic(score, n, seed=seed) if n > 1 else None
    return Row("macro-f1", score(np.arange(n)), n, interval, settings or {})
