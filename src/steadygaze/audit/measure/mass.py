"""Which part of the weight of a text lies somewhere: the one sum that several measures share."""

import torch
from torch import Tensor


def mass(weights: Tensor, where: Tensor, mask: Tensor) -> Tensor:
    """Σ_{t∈where} |w_t| / Σ_t |w_t| over the words, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)"""
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).masked_fill(~mask, 0.0).abs()
    return part(size.masked_fill(~where, 0.0).sum(-1), size.sum(-1))


def part(some: Tensor, whole: Tensor) -> Tensor:
    """some / whole, and 0 of nothing."""
    return some / whole.masked_fill(whole == 0, 1)
