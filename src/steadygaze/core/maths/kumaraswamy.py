"""HardKuma distribution: differentiable samples in [0, 1] that are exactly 0 or 1 with positive probability.

Bastings, Aziz & Titov, "Interpretable Neural Predictions with Differentiable Binary Variables", ACL 2019
(arXiv:1905.08160), §3–4.

    K ~ Kumaraswamy(a, b):   F(k) = 1 − (1 − kᵃ)ᵇ   in (0, 1)       K = (1 − (1 − u)^(1/b))^(1/a)
    T = l + (r − l) K        stretched to (l, r) = (−0.1, 1.1)
    H = min(1, max(0, T))    P(H = 0) = F(−l / (r − l))             P(H = 1) = 1 − F((1 − l) / (r − l))

    expected L0            mean_t  P(H_t ≠ 0)
    expected fused lasso   Σ_t  P(one of H_t, H_t+1 is 0 and the other is not) / n

Neighbors are independent given a and b: the lasso is exact for gates that do not depend on earlier samples.

Differs from the paper: the mean of a token in evaluation is that of H, by quadrature.  The released code takes the mean
of K, which is neither stretched nor clipped.
"""

import functools
import math

import numpy as np
import torch
from torch import Tensor

LOW, HIGH = -0.1, 1.1
_ZERO, _ONE = -LOW / (HIGH - LOW), (1 - LOW) / (HIGH - LOW)  # where K must be for H = 0 and for H = 1
_NODES = 32


def sample(a: Tensor, b: Tensor, u: Tensor) -> Tensor:
    """Return H from uniform samples u in (0, 1), with a gradient in a and b.  (…,) -> (…,)"""
    kumaraswamy = (_log_rest(torch.log1p(-u) / b) / a).exp()
    return (LOW + (HIGH - LOW) * kumaraswamy).clamp(0.0, 1.0)


def probability_zero(a: Tensor, b: Tensor) -> Tensor:
    """P(H = 0).  (…,) -> (…,)"""
    return -torch.expm1(_log_above(a, b, _ZERO))


def probability_one(a: Tensor, b: Tensor) -> Tensor:
    """P(H = 1).  (…,) -> (…,)"""
    return _log_above(a, b, _ONE).exp()


def probability_shown(a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
    """Return the expected L0: the expected share of nonzero tokens; 0 without tokens.  (B,T) -> (B,)"""
    return (1 - probability_zero(a, b)).masked_fill(~mask, 0.0).sum(-1) / mask.sum(-1).clamp_min(1)


def lasso(a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
    """Return the expected fused lasso: transitions between 0 and nonzero, per token.  (B,T) -> (B,)"""
    hidden, both = probability_zero(a, b), mask[:, :-1] & mask[:, 1:]
    left, right = hidden[:, :-1], hidden[:, 1:]
    changes = left * (1 - right) + (1 - left) * right
    return changes.masked_fill(~both, 0.0).sum(-1) / mask.sum(-1).clamp_min(1)


def mean(a: Tensor, b: Tensor) -> Tensor:
    """E[H] = ∫₀¹ P(H > h) dh = (r − l) ∫ (1 − kᵃ)ᵇ dk  over the k that are not clipped.  (…,) -> (…,)"""
    nodes, weights = (torch.as_tensor(each, dtype=a.dtype, device=a.device) for each in _gauss())
    above = (b.unsqueeze(-1) * _log_rest(a.unsqueeze(-1) * nodes.log())).exp()
    return (above * weights).sum(-1) * (HIGH - LOW)


def choice(a: Tensor, b: Tensor) -> Tensor:
    """Return 0, 1 or the mean, whichever has the most mass; ties: the first.  (…,) -> (…,)"""
    none, all_ = probability_zero(a, b), probability_one(a, b)
    sure = torch.where(none >= all_, 0.0, 1.0).to(a.dtype)
    return torch.where(1 - none - all_ > torch.maximum(none, all_), mean(a, b), sure)


def _log_above(a: Tensor, b: Tensor, point: float) -> Tensor:
    """ln P(K > point)"""
    return b * _log_rest(a * math.log(point))


def _log_rest(x: Tensor) -> Tensor:
    """ln(1 − eˣ), x < 0; exact near 0, where 1 − eˣ would round to 0."""
    return (-torch.expm1(x)).log()


@functools.cache
def _gauss() -> tuple[np.ndarray, np.ndarray]:
    """Return the Gauss-Legendre nodes and weights between the two ends."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = (_ONE - _ZERO) / 2
    return _ZERO + half * (nodes + 1), half * weights
