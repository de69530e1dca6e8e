"""Infidelity and max-sensitivity, as Captum and Quantus have them.

Yeh et al., "On the (In)fidelity and Sensitivity of Explanations", NeurIPS 2019 (arXiv:1901.09392).

    infidelity        mean over s of (β a_s − d_s)²,     β = Σ a_s d_s / Σ a_s²
    max-sensitivity   max over s of ‖Φ(x + δ_s) − Φ(x)‖ / ‖Φ(x)‖

    a_s  what the explanation says the words removed in draw s are worth: the sum of their weights
    d_s  what the prediction loses without them

β brings weights of any scale, attention above all, to that of the prediction: Captum's `normalize=True`.

    attributed  a (B,S)     lost  d (B,S)     distances  ‖Φ(x + δ_s) − Φ(x)‖ (B,S)     norm  ‖Φ(x)‖ (B,)

Departs from the paper: nothing known.  The words that are removed are this package's choice (protocol/infidelity.py).
"""

import torch
from torch import Tensor


def infidelity(attributed: Tensor, lost: Tensor) -> Tensor:
    """How far what the weights promise is from what the prediction loses, in [0, 1].  (B,S), (B,S) -> (B,)"""
    square = (attributed * attributed).mean(-1, keepdim=True)
    # Weights of nothing but 0 promise nothing, at any scale.
    scale = (attributed * lost).mean(-1, keepdim=True) / torch.where(square > 0, square, 1.0)
    return ((scale * attributed - lost) ** 2).mean(-1)


def max_sensitivity(distances: Tensor, norm: Tensor) -> Tensor:
    """How far the explanation moves at most, in lengths of itself; NaN where it has none.  (B,S), (B,) -> (B,)"""
    return distances.amax(-1) / norm.masked_fill(norm == 0, torch.nan)
