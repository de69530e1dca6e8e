"""On how many words an attention rests.  Not good or bad in itself: what it means that stability was bought by it is.

    normalized entropy   H(w) / ln n        1: all n words alike; 0: one word has it all
    distance to uniform  JSD(w, 1/n)        in nats
    collapsed     1 where the weights of a whole set are even, or follow the place of a word: `maths.collapse`

The first two (B,T), (B,T) -> (B,).

How far the explanation, or the prediction, of a text moved when something was changed.

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
    """Whether the weights say the same whatever the text: 1.0 or 0.0.  (N,T) -> one number"""
    if not (mask.sum(-1) > 1).any():
        raise ValueError("no text has two words: there is nothing to tell apart")
    return float(detect_collapse(weights, mask, ids=ids).collapsed)


def prediction_change(p: Tensor, q: Tensor) -> Tensor:
    """The total variation of class probabilities, in [0, 1].  (B,C), (B,C) -> (B,)"""
    return total_variation(p, q, torch.ones_like(p, dtype=torch.bool))


def label_flip(p: Tensor, q: Tensor) -> Tensor:
    """1.0 where the predicted class is another, else 0.0.  (B,C), (B,C) -> (B,)"""
    return (p.argmax(-1) != q.argmax(-1)).to(p.dtype)


def words_substituted(before: Tensor, after: Tensor, mask: Tensor) -> Tensor:
    """How many words have another id.  (B,T) -> (B,)"""
    return ((before != after) & mask).sum(-1).double()
