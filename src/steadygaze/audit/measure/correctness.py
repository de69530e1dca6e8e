"""Whether the label is right.

    accuracy    1 where argmax_c p_c is the label
    macro-F1    the mean over classes of 2 TP / (2 TP + FP + FN), whatever their sizes; 0 of a class never right

Departs from the paper: nothing known.
"""

import torch
from sklearn.metrics import f1_score
from torch import Tensor


def accuracy(probs: Tensor, label: Tensor) -> Tensor:
    """1.0 where the predicted class is the label, else 0.0.  (B,C), (B,) -> (B,)"""
    return (probs.argmax(-1) == label).to(torch.promote_types(probs.dtype, torch.float32))


def macro_f1(probs: Tensor, label: Tensor) -> float:
    """Over the whole set, in [0, 1], of the classes that occur or are predicted.  (N,C), (N,) -> one number"""
    if not len(probs):
        raise ValueError("there is no F1 of no examples")
    predicted = probs.argmax(-1).cpu().numpy()
    return float(f1_score(label.cpu().numpy(), predicted, average="macro", zero_division=0.0))
