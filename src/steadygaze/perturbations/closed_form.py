"""The worst perturbation of attention weights in closed form, for decoders that are linear in the weights.

The inner maximum of SEAT (Hu et al., AAAI 2023, Definition 2 and Eq. 6).

    z(w + δ) = z + Aᵀδ                      logits;  A = H Θᵀ: row t is the change per unit of attention on token t
    a_ij     = A_i − A_j                    columns of A, real tokens only
    n_ij     = max a_ij·δ over ‖δ‖ ≤ 1      the dual norm: Σ|a| for an ℓ∞ ball, √Σa² for an ℓ2 ball
             with Σδ = 0: of a_ij minus its median (ℓ∞) or its mean (ℓ2)
    D        = KL(p ‖ softmax(z + Aᵀδ)),    p the clean prediction

    A `reach` (B,T,C)   z `logits` (B,C)   p `target` (B,C)   R `radius`, a float or (B,)   `simplex`: keep Σδ = 0

Two classes: D is convex in the margin z_1 − z_0, which ranges over [m − R·n_10, m + R·n_10]: its maximum is at one of
the two ends, and exact.  More classes: the best of the class-pair corners, a lower bound that ascent may exceed.

Differs from the paper: it uses projected gradient ascent, which can stop at the worse end.
Tested by tests/perturbations/test_closed_form.py (enumeration of all corners, linear programs).
"""

from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from steadygaze.core.maths.distributions import Norm, dual_norm, kl_logits, mean, unit_vector

Divergence = Literal["cross-entropy", "kl"]
"""Divergence between two predictions; cross-entropy includes the entropy of the first."""


def spread(reach: Tensor, mask: Tensor, norm: Norm, simplex: bool) -> Tensor:
    """Return n_ij: the largest change of z_i − z_j under a δ of norm 1.  (B,T,C), (B,T) -> (B,C,C)"""
    # One class at a time: needs T×C values per text in memory, not T×C×C.
    rows = [_size(_differences(reach, i), mask.unsqueeze(1), norm, simplex) for i in range(reach.shape[-1])]
    return torch.stack(rows, 1)


def worst_binary(
    reach: Tensor, logits: Tensor, target: Tensor, mask: Tensor, radius: float | Tensor, norm: Norm, simplex: bool
) -> Tensor:
    """Return the exact max D for two classes.  Differentiable in `reach` and `logits`.  -> (B,)"""
    if logits.shape[-1] != 2:
        raise ValueError(f"worst_binary is exact for 2 classes only, found {logits.shape[-1]}: use worst_pairs")
    reach_radius = radius * _size(reach[..., 1] - reach[..., 0], mask, norm, simplex)
    margin = logits[..., 1] - logits[..., 0]
    ends = torch.stack([margin - reach_radius, margin + reach_radius], -1)  # (B,2)
    return kl_logits(target.unsqueeze(1), torch.stack([torch.zeros_like(ends), ends], -1)).amax(-1)


def worst_own(
    reach: Tensor,
    logits: Tensor,
    mask: Tensor,
    radius: float | Tensor,
    norm: Norm,
    divergence: Divergence = "cross-entropy",
) -> Tensor:
    """Return max KL(p ‖ ·) or CE(p, ·) for two classes; p is the model's own prediction.  -> (B,)

    The worst end is the one on the other class's side.  With a = |z_1 − z_0| and r = R·n_10 its margin is
    a − r.  The end a + r is not worse:  ∂/∂r [CE(a − r) − CE(a + r)] = 2σ(a) − σ(a + r) − σ(a − r) ≥ 0.
    KL is CE minus the entropy of p, softplus(a) − a·σ(a), which does not depend on r.
    """
    sides = torch.arange(-1, 2, 2, dtype=logits.dtype, device=logits.device)  # no copy from the host
    margin_size = (logits @ sides).abs()
    reach_radius = radius * _size(reach @ sides, mask, norm, simplex=False)
    worst_margin = margin_size - reach_radius
    if divergence == "kl":
        return softplus(worst_margin) - softplus(margin_size) + margin_size.sigmoid() * reach_radius
    return softplus(worst_margin) - margin_size.sigmoid() * worst_margin


def worst_pairs(
    reach: Tensor, logits: Tensor, target: Tensor, mask: Tensor, radius: float | Tensor, norm: Norm, simplex: bool
) -> Tensor:
    """Return the best class-pair corner, a lower bound of max D.  Differentiable in `reach` and `logits`.  -> (B,)"""
    pairs = _pairs(reach, logits, target, mask, radius, norm, simplex)
    return torch.stack([values.amax(-1) for values, _ in pairs], -1).amax(-1)


def best_pair(
    reach: Tensor, logits: Tensor, target: Tensor, mask: Tensor, radius: float | Tensor, norm: Norm, simplex: bool
) -> Tensor:
    """Return the corner δ at which D equals `worst_pairs`.  -> (B,T)"""
    worst, highest = torch.zeros_like(reach[..., 0]), torch.full_like(logits[..., 0], -torch.inf)
    row = torch.arange(len(reach), device=reach.device)
    for values, corners in _pairs(reach, logits, target, mask, radius, norm, simplex):
        value, index = values.max(-1)
        worst = torch.where((value > highest).unsqueeze(-1), corners[row, index], worst)
        highest = torch.maximum(value, highest)
    return worst


def corner(a: Tensor, mask: Tensor, radius: float | Tensor, norm: Norm, simplex: bool) -> Tensor:
    """Return the δ of the ball that maximizes a·δ, 0 outside the mask.  (B,T), (B,T) -> (B,T)"""
    a = _centered(a, mask, norm, simplex)
    size = radius.unsqueeze(-1) if isinstance(radius, Tensor) else radius
    return size * (unit_vector(a) if norm == "l2" else _signs(a, mask) if simplex else a.sign())


def _pairs(
    reach: Tensor, logits: Tensor, target: Tensor, mask: Tensor, radius: float | Tensor, norm: Norm, simplex: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """For each class i: D (B,C) at the corners (B,C,T) that raise z_i − z_j most; j = i is δ = 0."""
    classes = reach.shape[-1]
    radii = radius.repeat_interleave(classes) if isinstance(radius, Tensor) else radius
    for i in range(classes):
        a = _differences(reach, i)  # (B,C,T)
        real = mask.unsqueeze(1).expand_as(a)
        corners = corner(a.flatten(0, 1), real.flatten(0, 1), radii, norm, simplex).reshape(a.shape)
        yield kl_logits(target.unsqueeze(1), logits.unsqueeze(1) + corners @ reach), corners


def _differences(reach: Tensor, i: int) -> Tensor:
    """a_ij for all j.  (B,T,C) -> (B,C,T)"""
    return (reach[..., i : i + 1] - reach).transpose(1, 2)


def _size(a: Tensor, mask: Tensor, norm: Norm, simplex: bool) -> Tensor:
    """max a·δ over ‖δ‖ ≤ 1.  (…,T) -> (…)"""
    mask = mask.expand_as(a)
    return dual_norm(_centered(a, mask, norm, simplex) if simplex else a, norm, mask)


def _centered(a: Tensor, mask: Tensor, norm: Norm, simplex: bool) -> Tensor:
    """Center a: with Σδ = 0, a constant has no effect, so the smallest norm applies.  0 outside the mask."""
    if simplex:
        a = a - (mean(a.unsqueeze(-1), mask) if norm == "l2" else _median(a, mask))
    return a.masked_fill(~mask, 0.0)


def _median(a: Tensor, mask: Tensor) -> Tensor:
    """Return the lower median over the real tokens; 0 without tokens.  (…,T) -> (…,1)"""
    ordered = a.masked_fill(~mask, torch.inf).sort(-1).values
    words = mask.sum(-1, keepdim=True)
    middle = ordered.gather(-1, (words - 1).clamp_min(0) // 2)
    return torch.where(words > 0, middle, 0.0)


def _signs(a: Tensor, mask: Tensor) -> Tensor:
    """Return sign(a) for a with median 0; the tokens at the median make the sum 0.  (B,T) -> (B,T)"""
    signs = a.sign()
    middle = mask & (a == 0)  # the median guarantees enough of these
    share = -signs.sum(-1, keepdim=True) / middle.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(middle, share, signs)
