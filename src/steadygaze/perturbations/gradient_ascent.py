"""Projected gradient ascent, and gradients and scales in the space of embeddings.

Madry et al., ICLR 2018 (arXiv 1706.06083), §2.1; one step without projection is FGM, Miyato et al., ICLR 2017.

    δ ← Π_R( δ + η·n(g) ),   g = ∇_δ L(x + δ)
    n(g) = sign(g) for an ℓ∞ ball, g/‖g‖₂ for an ℓ2 ball;   η = 2R/P by default

    L loss, one number per example   x `center`   R `radius`   Π_R projection on the ball   P `steps`   η `step_size`

FGM is steps=1, step_size=radius, from a start of zeros.  A divergence from the clean prediction has its minimum at
δ = 0, where its gradient is exactly 0: start elsewhere (`start`).

Differs from the paper: points are not clamped to [0, 1] like images.  Embeddings and attention weights have other
ranges, and clamping could move them by more than R.

    σ          standard deviation of the entries of the word vectors: the unit of an ℓ∞ radius
    norm       mean ‖v‖₂ of a word vector: the unit of an ℓ2 radius
    neighbors  d_t = Σ_k α_tk d̃_tk,  d̃_tk = unit(v_k − x_t),  α = unit of (g_t·d̃_tk)       Sato et al. 2018, Eq. 9–13
               unit over the whole text as printed; `per_word`: over the neighbors of each word

These units make settings comparable between GloVe (mean norm 5) and a transformer's embeddings (mean norm 1).
Tested by tests/perturbations/test_gradient_ascent.py and test_embeddings.py.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from steadygaze.core.maths.distributions import Norm, project, unit_vector


def ascend(
    loss: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    center: Tensor,
    radius: float | Tensor,
    norm: Norm,
    steps: int,
    step_size: float | Tensor | None = None,
    keep: Tensor | None = None,
    best: bool = False,
    candidates: Sequence[Tensor] = (),
) -> Tensor:
    """Return the perturbation δ that raises `loss` at center + δ, as a constant.  (B,…) -> (B,…)

    Parameters
    ----------
    loss
        Points (B,…) -> (B,); the loss of an example depends only on its own point.
    start
        Initial δ, (B,…); projected on the ball first.
    radius, step_size
        A float, or one for each example (B,).
    keep
        True where δ may differ from 0, shaped as the leading dimensions of `center`; None: everywhere.
    best
        Return the δ with the highest loss of each example, instead of the last.
    candidates
        With `best`: other perturbations within the ball, (B,…) each.
    """
    variable = torch.ones_like(start, dtype=torch.bool) if keep is None else widen(keep, start).expand_as(start)
    center = center.detach()  # no gradient flows through the search
    step = 2 * radius / max(steps, 1) if step_size is None else step_size
    step = widen(step, start)
    delta = project(start.detach().masked_fill(~variable, 0.0), radius, norm)
    best_delta, highest = delta, torch.full(start.shape[:1], -torch.inf, dtype=start.dtype, device=start.device)
    for _ in range(steps):
        values, gradient = _loss_and_gradient(loss, center + delta)
        if best:
            best_delta, highest = _keep_higher(delta, values, best_delta, highest)
        gradient = gradient.masked_fill(~variable, 0.0)
        delta = project(delta + step * (gradient.sign() if norm == "linf" else unit_vector(gradient)), radius, norm)
    if not best:
        return delta
    with torch.no_grad():
        for point in (delta, *candidates):
            best_delta, highest = _keep_higher(point, loss(center + point), best_delta, highest)
    return best_delta


def _loss_and_gradient(loss: Callable[[Tensor], Tensor], point: Tensor) -> tuple[Tensor, Tensor]:
    """Return the losses and their gradient at a new leaf; parameters get no gradient.  (B,…) -> (B,), (B,…)"""
    with torch.enable_grad():  # callers may disable gradients
        leaf = point.detach().requires_grad_()
        values = loss(leaf)
        if not values.requires_grad:  # the loss does not depend on the point, for example with uniform attention
            return values, torch.zeros_like(leaf)
        (gradient,) = torch.autograd.grad(values.sum(), leaf, materialize_grads=True)
    return values.detach(), gradient


def _keep_higher(delta: Tensor, values: Tensor, best_delta: Tensor, highest: Tensor) -> tuple[Tensor, Tensor]:
    """Return the perturbation with the higher loss for each example, and that loss."""
    is_higher = values > highest
    return torch.where(widen(is_higher, delta), delta, best_delta), torch.where(
        is_higher, values.to(highest.dtype), highest
    )


def widen(value: float | Tensor, target: Tensor) -> Any:
    """Reshape a tensor of the leading dimensions of `target`, or a single number, to broadcast with it."""
    return value.reshape(value.shape + (1,) * (target.ndim - value.ndim)) if isinstance(value, Tensor) else value


def scaled_sum(x: Tensor, direction: Tensor, length: float | Tensor) -> Tensor:
    """Return x + length · direction; length: one for all, or (B,).  (B,…), (B,…) -> (B,…)"""
    if isinstance(length, float):
        return x.add(direction, alpha=length)
    return torch.addcmul(x, direction, widen(length, direction))


LOSS_SCALE = 1024.0
"""Factor on a loss if only the gradient's direction matters; small gradients vanish in half precision."""


def loss_gradient(losses: Tensor, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return ∂ℓ/∂x up to a positive factor, as a constant, 0 outside the mask.  (B,), (B,T,…), (B,T) -> (B,T,…)

    Leaves the parameters' .grad unchanged, and keeps the graph: the caller still minimizes the losses.
    """
    (gradient,) = torch.autograd.grad(losses, x, torch.full_like(losses, LOSS_SCALE), retain_graph=True)
    return gradient if mask is None else gradient.masked_fill(~widen(mask, x), 0.0)


def embedding_std(vectors: Tensor) -> Tensor:
    """Return the standard deviation of the entries of all nonzero vectors.  (V,E) -> ()"""
    return _nonzero(vectors).std(correction=0)


def embedding_norm(vectors: Tensor) -> Tensor:
    """Return the mean ‖v‖₂ of all nonzero vectors.  (V,E) -> ()"""
    lengths: Tensor = torch.linalg.vector_norm(_nonzero(vectors), dim=-1)
    return lengths.mean()


def toward_neighbors(g: Tensor, embedded: Tensor, neighbors: Tensor, *, per_word: bool) -> Tensor:
    """Project g on the directions to other words; g is 0 on padding.  (B,T,E), (B,T,E), (B,T,K,E) -> (B,T,E)"""
    directions = normalize(neighbors - embedded.unsqueeze(2), dim=-1)
    rise = (directions @ g.unsqueeze(-1)).squeeze(-1)  # (B,T,K): ∂ℓ/∂α at α = 0
    # not `normalize`, which does not scale up small gradients
    alpha = unit_vector(rise.flatten(0, 1)).view_as(rise) if per_word else unit_vector(rise)
    return (alpha.unsqueeze(2) @ directions).squeeze(2)


def _nonzero(vectors: Tensor) -> Tensor:
    vectors = vectors.detach()
    return vectors[vectors.any(-1)]
