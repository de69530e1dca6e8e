"""Macro-F1: the mean over classes of 2 TP / (2 TP + FP + FN), with equal weight for each class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def confusion_counts(label: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Number of examples by label (row) and predicted class (column).  (N,), (N,) -> (C,C)"""
    return np.bincount(label * classes + predicted, minlength=classes**2).reshape(classes, classes)


def macro_f1_of(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Macro-F1 of confusion matrices: label (row) by predicted class (column).  (…,C,C) -> (…)

    Classes that neither occur nor are predicted do not count.
    """
    totals = counts.sum(-2) + counts.sum(-1)  # 2 TP + FP + FN
    f1 = 2 * np.diagonal(counts, axis1=-2, axis2=-1) / np.maximum(totals, 1)
    return np.asarray(f1.sum(-1) / (totals > 0).sum(-1))


def macro_f1_of_resamples(
    draws: NDArray[np.int64], label: NDArray[np.int64], predicted: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """Macro-F1 of resamples, from the indices of their examples.  (R,N), (N,), (N,) -> (R,)"""
    first = classes * np.arange(len(draws))[:, None]  # cell of the first class of each resample

    def counts(codes: NDArray[np.int64], weights: NDArray[Any] | None = None) -> NDArray[Any]:
        cells = (codes[draws] + first).ravel()
        return np.bincount(cells, weights, minlength=classes * len(draws)).reshape(len(draws), classes)

    hits = counts(label, (label == predicted)[draws].ravel())  # TP
    totals = counts(label) + counts(predicted)  # 2 TP + FP + FN
    f1 = 2 * hits / np.maximum(totals, 1)
    return np.asarray(f1.sum(-1) / (totals > 0).sum(-1))
