"""Softmax, normalization and means over real tokens; masked tokens affect neither values nor gradients.

Every function: a (…,T) tensor and a mask of the same shape, True on a real token.
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
