"""Macro-F1 of predicted classes, with its bootstrap interval.  Does not import torch."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from steadygaze.results.bootstrap import bootstrap_statistic
from steadygaze.results.row import Row

Classes = NDArray[np.int64]


def macro_f1_of(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Macro-F1 of confusion matrices: label (row) by predicted class (column).  (…,C,C) -> (…)

    Classes that neither occur nor are predicted do not count.
    """
    totals = counts.sum(-2) + counts.sum(-1)  # 2 TP + FP + FN
    f1 = 2 * np.diagonal(counts, axis1=-2, axis2=-1) / np.maximum(totals, 1)
    return np.asarray(f1.sum(-1) / (totals > 0).sum(-1))


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

    def score(draws: NDArray[np.int64]) -> NDArray[np.float64]:
        cells = pairs[draws] + classes**2 * np.arange(len(draws))[:, None]
        counts = np.bincount(cells.ravel(), minlength=classes**2 * len(draws))
        return macro_f1_of(counts.reshape(len(draws), classes, classes))

    n = len(pairs)
    interval = bootstrap_statistic(score, n, seed=seed) if n > 1 else None
    return Row("macro-f1", float(score(np.arange(n)[None])[0]), n, interval, settings or {})
