"""Distributions over the real tokens of a text: softmax, normalization, means, divergences and entropy.

Over tokens: (…,T) tensors and a mask of the same shape, True on a real token.  Masked tokens affect neither values nor
gradients.  Divergences compare two tensors that sum to one over the real tokens.  Logarithms are natural: everything is
in nats.  Over classes: probabilities (B,C) and logits (B,C) -> (B,).
"""

import torch
from torch import Tensor


def softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """exp(s) / Σ exp(s) over the real tokens, exactly 0 elsewhere; 0 in a row without any.  (…,T) -> (…,T)"""
    lowest = torch.finfo(scores.dtype).min  # not −∞: a row without real tokens would become NaN
    outside = ~mask
    return scores.masked_fill(outside, lowest).softmax(-1).masked_fill(outside, 0.0)


def normalize(weights: Tensor, mask: Tensor) -> Tensor:
    """|w| / Σ|w|: a distribution over the real tokens; uniform if all weights are 0.  (…,T) -> (…,T)"""
    size = weights.abs().masked_fill(~mask, 0.0)
    total = size.sum(-1, keepdim=True)
    uniform = mask.to(size.dtype) / mask.sum(-1, keepdim=True).clamp_min(1)
    # == 0, not <= 0: NaN must stay NaN.
    return torch.where(total == 0, uniform, size / total.clamp_min(torch.finfo(size.dtype).tiny))


def mean(values: Tensor, mask: Tensor) -> Tensor:
    """Σ v / n over the real tokens; 0 without any.  (…,T,H), (…,T) -> (…,H)"""
    total = values.masked_fill(~mask.unsqueeze(-1), 0.0).sum(-2)
    return total / mask.sum(-1, keepdim=True).clamp_min(1)


def maximum(values: Tensor, mask: Tensor) -> Tensor:
    """max over the real tokens; 0 without any.  (…,T,H), (…,T) -> (…,H)"""
    lowest = torch.finfo(values.dtype).min
    highest = values.masked_fill(~mask.unsqueeze(-1), lowest).amax(-2)
    return highest.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def mass(weights: Tensor, where: Tensor, mask: Tensor) -> Tensor:
    """Σ_t e_t |w_t| / Σ_t |w_t| over the words, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)

    where: e, the words as booleans, or their marks between 0 and 1
    """
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).masked_fill(~mask, 0.0).abs()
    return mass_share((size * where).sum(-1), size.sum(-1))


def mass_share(some: Tensor, whole: Tensor) -> Tensor:
    """some / whole; 0 if `whole` is 0."""
    return some / whole.masked_fill(whole == 0, 1)


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
