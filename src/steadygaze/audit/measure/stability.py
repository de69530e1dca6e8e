"""How far the explanation, or the prediction, of a text moved when something was changed.

    jensen_shannon     ½ KL(p‖m) + ½ KL(q‖m),  m = ½(p + q)      of two attentions, in nats
    total_variation    ½ Σ_t |p_t − q_t|                         of two attentions
    overlap            |top_k(p) ∩ top_k(q)| / k                 of two attentions
    prediction_change  ½ Σ_c |p_c − q_c|                         of two predictions; with two classes, |Δp|
    flipped            1 where argmax_c p_c ≠ argmax_c q_c
    exchanged          Σ_t [ x_t ≠ x'_t ]                        how many words were changed to see it

Departs from the paper: published code sums ½|Δp| of one class over the batch (Wiegreffe & Pinter 2019; Hu et al. 2022),
which is half of this for two classes and grows with the batch.
"""

import torch
from torch import Tensor

from steadygaze.maths.divergence import jensen_shannon, total_variation
from steadygaze.maths.rank import overlap

__all__ = ["exchanged", "flipped", "jensen_shannon", "overlap", "prediction_change", "total_variation"]


def prediction_change(p: Tensor, q: Tensor) -> Tensor:
    """The total variation of class probabilities, in [0, 1].  (B,C), (B,C) -> (B,)"""
    return total_variation(p, q, torch.ones_like(p, dtype=torch.bool))


def flipped(p: Tensor, q: Tensor) -> Tensor:
    """1.0 where the predicted class is another, else 0.0.  (B,C), (B,C) -> (B,)"""
    return (p.argmax(-1) != q.argmax(-1)).to(p.dtype)


def exchanged(before: Tensor, after: Tensor, mask: Tensor) -> Tensor:
    """How many words have another id.  (B,T) -> (B,)"""
    return ((before != after) & mask).sum(-1).double()
