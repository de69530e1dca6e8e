"""Lengths and balls, per example: unit vectors, projection, and the norm that bounds an inner product.

unit(g)        g / ‖g‖₂
project(δ)     argmin ‖δ' − δ‖₂  over  ‖δ'‖ ≤ R
dual(a)        max  <a, δ>  over  ‖δ‖ ≤ 1:   ‖a‖₁ for the ℓ∞ ball, ‖a‖₂ for the ℓ2 ball (Hölder)
"""

from typing import Literal

import torch
from torch import Tensor

Norm = Literal["l2", "linf"]


def unit(g: Tensor) -> Tensor:
    """g / ‖g‖₂ over all dimensions but the first; a row of zeros stays zero.  (B,…) -> (B,…)"""
    rest = tuple(range(1, g.dim()))
    if not g.numel():
        return g
    # Squares of gradients under 1e-23 vanish in float32.  A constant factor changes neither the value nor the gradient.
    largest = torch.linalg.vector_norm(g.detach(), torch.inf, dim=rest, keepdim=True)
    g = g / largest.masked_fill(largest == 0, 1.0)
    length: Tensor = torch.linalg.vector_norm(g, dim=rest, keepdim=True)
    return g / length.clamp_min(1.0)  # it is at least 1, or all are 0


def project(delta: Tensor, radius: float | Tensor, norm: Norm) -> Tensor:
    """The nearest point of the ball around 0; radius: one for all, or (B,).  (B,…) -> (B,…)"""
    if isinstance(radius, Tensor):
        radius = radius.reshape(-1, *[1] * (delta.dim() - 1))
    if norm == "linf":
        return torch.where(delta.abs() > radius, radius * delta.sign(), delta)
    if norm == "l2":
        length = torch.linalg.vector_norm(delta, dim=tuple(range(1, delta.dim())), keepdim=True)
        return torch.where(length > radius, radius * unit(delta), delta)
    raise ValueError(f"norm is {norm!r}; it is 'l2' or 'linf'")


def dual(a: Tensor, norm: Norm, mask: Tensor) -> Tensor:
    """The largest <a, δ> over the real tokens with ‖δ‖ ≤ 1.  (…,T), (…,T) -> (…)"""
    a = a.masked_fill(~mask, 0.0)
    if norm == "linf":
        return a.abs().sum(-1)
    if norm == "l2":
        length: Tensor = torch.linalg.vector_norm(a, dim=-1)
        return length
    raise ValueError(f"norm is {norm!r}; it is 'l2' or 'linf'")
