"""Distances between distributions over tokens, and between predictions.

Over tokens: two (…,T) tensors that sum to one over the real tokens, and a mask that is True on a real token -> (…,).
Padding never contributes, to the value or to the gradient.  Logarithms are natural: everything is in nats.
Over classes: probabilities (B,C) and logits (B,C) -> (B,).
"""

import torch
from torch import Tensor


def total_variation(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """½ Σ |p − q|   in [0, 1].  (…,T) -> (…,)"""
    return (p - q).masked_fill(~mask, 0.0).abs().sum(-1) / 2


def kl(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """Σ p (ln p − ln q)   in [0, ∞), with 0·ln 0 = 0.  The log is floored: large, but finite, if q = 0 < p."""
    p, q = p.masked_fill(~mask, 1.0), q.masked_fill(~mask, 1.0)  # ln 1 = 0
    return (p * (_log(p) - _log(q))).sum(-1)


def jensen_shannon(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """½ KL(p‖m) + ½ KL(q‖m),  m = ½(p + q)   in [0, ln 2].  Lin 1991.  (…,T) -> (…,)"""
    m = (p + q) / 2
    # Rounding can give a value just below 0.
    return ((kl(p, m, mask) + kl(q, m, mask)) / 2).clamp_min(0.0)


def entropy(p: Tensor, mask: Tensor) -> Tensor:
    """−Σ p ln p   in [0, ln n] over n real tokens.  (…,T) -> (…,)"""
    p = p.masked_fill(~mask, 1.0)
    return 0.0 - (p * _log(p)).sum(-1)  # avoids −0


def cross_entropy(target_probs: Tensor, logits: Tensor) -> Tensor:
    """−Σ_c t_c ln softmax(z)_c.  (B,C), (B,C) -> (B,)"""
    return -(target_probs * logits.log_softmax(-1)).sum(-1)


def kl_logits(target_probs: Tensor, logits: Tensor) -> Tensor:
    """Σ_c t_c (ln t_c − ln softmax(z)_c): the cross-entropy minus the entropy of the target.  (B,C), (B,C) -> (B,)"""
    return (target_probs * (_log(target_probs) - logits.log_softmax(-1))).sum(-1)


def _log(p: Tensor) -> Tensor:
    """ln p, floored at the smallest normal number: 0·ln 0 is then 0, and its gradient finite."""
    return p.clamp_min(torch.finfo(p.dtype).tiny).log()
