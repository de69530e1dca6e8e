"""Whether a prediction of 80 % is right eight times in ten.

Guo et al., ICML 2017 (arXiv:1706.04599), §2: expected calibration error.

    ECE = Σ_m |B_m| / n · | acc(B_m) − conf(B_m) |,    B_m: the examples with confidence in ((m − 1)/M, m/M],  M = 15

conf is the probability of the predicted class, acc the share predicted rightly.

The one measure that is not per example: a single prediction is right or wrong, and calibrated only among others.

Departs from the paper: nothing known.
"""

import torch
from torch import Tensor

BINS = 15
"""As in the paper's tables."""


def expected_calibration_error(probs: Tensor, label: Tensor) -> float:
    """Over the whole set, in [0, 1]: give it all examples at once.  (N,C), (N,) -> one number"""
    if not len(probs):
        raise ValueError("there is no calibration of no examples")
    places, surplus = surpluses(probs, label)
    per_bin = torch.zeros(BINS, dtype=torch.float64, device=probs.device)
    return float(per_bin.index_add(0, places, surplus).abs().sum() / len(probs))


def surpluses(probs: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each example, and what it adds to |B_m| (acc(B_m) − conf(B_m)).  (N,C), (N,) -> (N,), (N,)"""
    confidence, predicted = probs.to(torch.float64).max(-1)
    edges = torch.linspace(0, 1, BINS + 1, dtype=torch.float64, device=probs.device)[1:-1]
    return torch.bucketize(confidence, edges), (predicted == label).to(torch.float64) - confidence
