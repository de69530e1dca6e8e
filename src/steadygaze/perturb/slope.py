"""Which way a loss rises: g = ∂ℓ/∂x, one example's loss by its own x, up to a positive factor."""

import torch
from torch import Tensor

LOUD = 1024.0
"""Factor on a loss whose gradient is only a direction: in half precision a faint one would vanish."""


def slope(losses: Tensor, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """A constant, 0 outside the mask (None: it is so already).  (B,), (B,T,…), (B,T) -> (B,T,…)

    Not .backward(): parameters' .grad is the loop's.  The graph stays: the losses are still to be minimised.
    """
    (gradient,) = torch.autograd.grad(losses, x, torch.full_like(losses, LOUD), retain_graph=True)
    if mask is None:
        return gradient
    return gradient.masked_fill(~mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), 0.0)
