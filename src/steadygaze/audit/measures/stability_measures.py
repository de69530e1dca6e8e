"""Stability measures: the concentration of the attention, and its shift under a perturbation.

    normalized_entropy   H(w) / ln n        1: uniform weights; 0: all weight on one word
    distance_to_uniform  JSD(w, 1/n)        in nats
    attention_collapse   1 if the weights of a whole set are uniform or depend on position only: `maths.collapse`
    jensen_shannon       ½ KL(p‖m) + ½ KL(q‖m),  m = ½(p + q)      of two attentions, in nats
    total_variation      ½ Σ_t |p_t − q_t|                         of two attentions
    top_k_overlap        |top_k(p) ∩ top_k(q)| / k                 of two attentions
    prediction_change    ½ Σ_c |p_c − q_c|                         of two predictions; with two classes, |Δp|
    label_flip           1 if argmax_c p_c ≠ argmax_c q_c
    words_substituted    Σ_t [ x_t ≠ x'_t ]

Departs from the paper: published code sums ½|Δp| of one class over the batch (Wiegreffe & Pinter 2019; Hu et al. 2022).
That is half of this value for two classes and grows with the batch.
"""

import torch
from torch import Tensor

from steadygaze.core.maths.collapse import detect_collapse, distance_to_uniform, normalized_entropy
from steadygaze.core.maths.divergence import jensen_shannon, total_variation
from steadygaze.core.maths.ranking import top_k_overlap

__all__ = [
    "attention_collapse",
    "distance_to_uniform",
    "jensen_shannon",
    "label_flip",
    "normalized_entropy",
    "prediction_change",
    "top_k_overlap",
    "total_variation",
    "words_substituted",
]


def attention_collapse(weights: Tensor, mask: Tensor, ids: Tensor) -> float:
    """1.0 if the weights do not depend on the text, else 0.0.  (N,T) -> one number"""
    if not (mask.sum(-1) > 1).any():
        raise ValueError("attention collapse needs a text with at least two words")
    return float(detect_collapse(weights, mask, ids=ids).collapsed)


def prediction_change(p: Tensor, q: Tensor) -> Tensor:
    """The total variation of class probabilities, in [0, 1].  (B,C), (B,C) -> (B,)"""
    return total_variation(p, q, torch.ones_like(p, dtype=torch.bool))


def label_flip(p: Tensor, q: Tensor) -> Tensor:
    """1.0 where the predicted class differs, else 0.0.  (B,C), (B,C) -> (B,)"""
    return (p.argmax(-1) != q.argmax(-1)).to(p.dtype)


def words_substituted(before: Tensor, after: Tensor, mask: Tensor) -> Tensor:
    """The number of words whose id differs.  (B,T) -> (B,)"""
    return ((before != after) & mask).sum(-1).double()
