"""Accuracy, macro-F1 and expected calibration error.

    accuracy    1 where argmax_c p_c is the label
    macro-F1    the unweighted mean over classes of 2 TP / (2 TP + FP + FN)
    ECE         Σ_m |B_m| / n · | acc(B_m) − conf(B_m) |,  B_m: examples with confidence in ((m − 1)/M, m/M],  M = 15

conf is the probability of the predicted class, acc the share of correct predictions.  Macro-F1 and ECE are defined over
a whole set: Guo et al., ICML 2017 (arXiv:1706.04599), §2.
"""

import torch
from torch import Tensor

from steadygaze.core.maths.macro_f1 import confusion_counts, macro_f1_of
from steadygaze.properties.measures.measure import UNIT, Measure
from steadygaze.results.comparison import Column
from steadygaze.results.evaluation import macro_f1_row


def accuracy(probs: Tensor, label: Tensor) -> Tensor:
    """How often the predicted class is the label.  1 or 0 for a text.  (B,C), (B,) -> (B,)"""
    return (probs.argmax(-1) == label).to(torch.promote_types(probs.dtype, torch.float32))


def macro_f1(probs: Tensor, label: Tensor) -> float:
    """F1 averaged over classes, with equal weight for each class.  Pass the whole set.  (N,C), (N,) -> one number

    Classes that neither occur nor are predicted do not count.
    """
    if not len(probs):
        raise ValueError("macro-F1 needs at least one example")
    counts = confusion_counts(label.cpu().numpy(), probs.argmax(-1).cpu().numpy(), probs.shape[-1])
    return float(macro_f1_of(counts))


BINS = 15
"""M, as in the paper's tables."""


def expected_calibration_error(probs: Tensor, label: Tensor) -> float:
    """Mean difference between the confidence and the accuracy, over bins of confidence.  (N,C), (N,) -> one number"""
    if not len(probs):
        raise ValueError("expected calibration error needs at least one example")
    bins, gaps = calibration_gaps(probs, label)
    per_bin = torch.zeros(BINS, dtype=torch.float64, device=probs.device)
    return float(per_bin.index_add(0, bins, gaps).abs().sum() / len(probs))


def calibration_gaps(probs: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each example, and its term in |B_m| (acc(B_m) − conf(B_m)).  (N,C), (N,) -> (N,), (N,)"""
    confidence, predicted = probs.to(torch.float64).max(-1)
    edges = torch.linspace(0, 1, BINS + 1, dtype=torch.float64, device=probs.device)[1:-1]
    return torch.bucketize(confidence, edges), (predicted == label).to(torch.float64) - confidence


def set_scores(probs: Tensor, label: Tensor, seed: int = 0) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """Measure -> its value for the whole set, and its interval.  (N,C), (N,)

    The calibration error has no interval: bootstrap draws overestimate it.
    """
    macro = macro_f1_row(label.cpu().numpy(), probs.argmax(-1).cpu().numpy(), probs.shape[-1], seed=seed)
    return {
        "macro-f1": (macro.value, macro.interval),
        "expected-calibration-error": (expected_calibration_error(probs, label), None),
    }


_CALIBRATION = "mean difference between confidence and accuracy"
MEASURES = (
    Measure(
        "macro-f1",
        macro_f1,
        UNIT,
        "higher",
        per_example=False,
        columns=(Column("macro-f1", "macro-F1", "mean F1 over classes", "higher"),),
    ),
    Measure(
        "accuracy",
        accuracy,
        UNIT,
        "higher",
        proportion=True,
        probes=("", "uniform", "above-uniform"),
        inputs="labels",
        columns=(Column("accuracy", "accuracy", "how often the predicted label is right", "higher", brief=False),),
    ),
    Measure(
        "expected-calibration-error",
        expected_calibration_error,
        UNIT,
        "lower",
        "Guo et al. 2017",
        per_example=False,
        columns=(Column("expected-calibration-error", "calibration error", _CALIBRATION, "lower", brief=False),),
    ),
)
