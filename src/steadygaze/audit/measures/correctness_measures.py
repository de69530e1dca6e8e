"""Whether the label is right.

    accuracy    1 where argmax_c p_c is the label
    macro-F1    the mean over classes of 2 TP / (2 TP + FP + FN), whatever their sizes; 0 of a class never right

Departs from the paper: nothing known.

Whether a prediction of 80 % is right eight times in ten.

Guo et al., ICML 2017 (arXiv:1706.04599), §2: expected calibration error.

    ECE = Σ_m |B_m| / n · | acc(B_m) − conf(B_m) |,    B_m: the examples with confidence in ((m − 1)/M, m/M],  M = 15

conf is the probability of the predicted class, acc the share predicted rightly.

The one measure that is not per example: a single prediction is right or wrong, and calibrated only among others.

Departs from the paper: nothing known.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def accuracy(probs: Tensor, label: Tensor) -> Tensor:
    """1.0 where the predicted class is the label, else 0.0.  (B,C), (B,) -> (B,)"""
    return (probs.argmax(-1) == label).to(torch.promote_types(probs.dtype, torch.float32))


def macro_f1(probs: Tensor, label: Tensor) -> float:
    """Over the whole set, in [0, 1], of the classes that occur or are predicted.  (N,C), (N,) -> one number"""
    if not len(probs):
        raise ValueError("there is no F1 of no examples")
    classes = probs.shape[-1]
    pairs = (label * classes + probs.argmax(-1)).cpu().numpy()
    return macro_f1_of(np.bincount(pairs, minlength=classes**2).reshape(classes, classes))


def macro_f1_of(counts: NDArray[np.int64]) -> float:
    """The same from how often each label (row) was predicted as each class (column).  (C,C) -> one number"""
    either = counts.sum(0) + counts.sum(1)  # 2 TP + FP + FN
    occurs = either > 0
    return float((2 * np.diag(counts)[occurs] / either[occurs]).mean())


BINS = 15
"""As in the paper's tables."""


def expected_calibration_error(probs: Tensor, label: Tensor) -> float:
    """Over the whole set, in [0, 1]: give it all examples at once.  (N,C), (N,) -> one number"""
    if not len(probs):
        raise ValueError("there is no calibration of no examples")
    places, surplus = calibration_gaps(probs, label)
    per_bin = torch.zeros(BINS, dtype=torch.float64, device=probs.device)
    return float(per_bin.index_add(0, places, surplus).abs().sum() / len(probs))


def calibration_gaps(probs: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each example, and what it adds to |B_m| (acc(B_m) − conf(B_m)).  (N,C), (N,) -> (N,), (N,)"""
    confidence, predicted = probs.to(torch.float64).max(-1)
    edges = torch.linspace(0, 1, BINS + 1, dtype=torch.float64, device=probs.device)[1:-1]
    return torch.bucketize(confidence, edges), (predicted == label).to(torch.float64) - confidence
