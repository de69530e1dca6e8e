"""Projected gradient ascent: the worst point of a ball, as far as gradients find it.

Madry et al., ICLR 2018 (arXiv 1706.06083), §2.1; one step without projection is FGM, Miyato et al., ICLR 2017.

    δ ← Π_R( δ + η·n(g) ),   g = ∇_δ L(x + δ)
    n(g) = sign(g) for an ℓ∞ ball, g/‖g‖₂ for an ℓ2 ball;   η = 2R/P unless given

    L loss, one number per example   x `centre`   R `radius`   Π_R projection on the ball   P `steps`   η `step_size`

FGM is steps=1, step_size=radius, from a start of zeros.  Where L is smallest at δ = 0, as a divergence from the clean
prediction is, its gradient there is exactly 0: the caller must start elsewhere (`start`).

Departs from the paper: nothing is clamped to [0, 1], as images are; embeddings and attention weights lie elsewhere, and
a clamp would move them by more than R.  Pinned by tests/perturb/test_ascent.py.

Which way a loss rises: g = ∂ℓ/∂x, one example's loss by its own x, up to a positive factor.

Steps in the space of embeddings: how large is a small one, and where does the loss rise fastest?

    σ          standard deviation of the entries of the word vectors: the unit of an ℓ∞ radius
    length     mean ‖v‖₂ of a word vector: the unit of an ℓ2 radius
    neighbours d_t = Σ_k α_tk d̃_tk,  d̃_tk = unit(v_k − x_t),  α = unit of (g_t·d̃_tk)       Sato et al. 2018, Eq. 9–13
               unit over the whole text as printed; `per_word`: over the neighbors of each word

The unit makes a setting mean the same for GloVe, whose vectors have length 5, and for a transformer's, of length 1.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from steadygaze.core.maths.ranking import Norm, project, unit_vector


def ascend(
    loss: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    centre: Tensor,
    radius: float | Tensor,
    norm: Norm,
    steps: int,
    step_size: float | Tensor | None = None,
    keep: Tensor | None = None,
    best: bool = False,
) -> Tensor:
    """The perturbation δ (not the point) that raises `loss` at centre + δ, a constant.  (B,…) -> (B,…)

    loss       points (B,…) -> (B,); each example's number may depend on its own point only
    start      δ to begin with, (B,…); brought into the ball first
    radius, step_size   a float, or one for each example (B,)
    keep       True where δ may differ from 0, shaped as the leading dimensions of `centre`; None: everywhere
    best       the δ of each example's highest loss on the way, instead of the last
    """
    free = torch.ones_like(start, dtype=torch.bool) if keep is None else _widen(keep, start).expand_as(start)
    centre = centre.detach()  # whoever made it is not to be trained through the search
    step = 2 * radius / max(steps, 1) if step_size is None else step_size
    step = _widen(step, start) if isinstance(step, Tensor) else step
    delta = project(start.detach().masked_fill(~free, 0.0), radius, norm)
    kept, highest = delta, torch.full(start.shape[:1], -torch.inf, dtype=start.dtype, device=start.device)
    for _ in range(steps):
        values, gradient = _slope(loss, centre + delta)
        if best:
            kept, highest = _higher(delta, values, kept, highest)
        gradient = gradient.masked_fill(~free, 0.0)
        delta = project(delta + step * (gradient.sign() if norm == "linf" else unit_vector(gradient)), radius, norm)
    if not best:
        return delta
    with torch.no_grad():
        return _higher(delta, loss(centre + delta), kept, highest)[0]


def _slope(loss: Callable[[Tensor], Tensor], point: Tensor) -> tuple[Tensor, Tensor]:
    """The losses and their gradient at a leaf of their own, so that no parameter collects any.  (B,…) -> (B,), (B,…)"""
    with torch.enable_grad():  # callers read with gradients off
        leaf = point.detach().requires_grad_()
        values = loss(leaf)
        if not values.requires_grad:  # it does not depend on the point at all, as an even attention on no vector
            return values, torch.zeros_like(leaf)
        (gradient,) = torch.autograd.grad(values.sum(), leaf, materialize_grads=True)
    return values.detach(), gradient


def _higher(delta: Tensor, values: Tensor, kept: Tensor, highest: Tensor) -> tuple[Tensor, Tensor]:
    """For each example the perturbation of the higher loss, and that loss."""
    better = values > highest
    return torch.where(_widen(better, delta), delta, kept), torch.where(better, values.to(highest.dtype), highest)


def _widen(value: Tensor, like: Tensor) -> Tensor:
    """A tensor of the leading dimensions of `like`, shaped to broadcast with it."""
    return value.reshape(value.shape + (1,) * (like.ndim - value.ndim))


LOSS_SCALE = 1024.0
"""Factor on a loss whose gradient is only a direction: in half precision a faint one would vanish."""


def loss_gradient(losses: Tensor, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """A constant, 0 outside the mask (None: it is so already).  (B,), (B,T,…), (B,T) -> (B,T,…)

    Not .backward(): parameters' .grad is the loop's.  The graph stays: the losses are still to be minimised.
    """
    (gradient,) = torch.autograd.grad(losses, x, torch.full_like(losses, LOSS_SCALE), retain_graph=True)
    if mask is None:
        return gradient
    return gradient.masked_fill(~mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)), 0.0)


def embedding_std(vectors: Tensor) -> Tensor:
    """Standard deviation over all entries of all vectors that are not zero.  (V,E) -> ()"""
    return _real(vectors).std(correction=0)


def embedding_norm(vectors: Tensor) -> Tensor:
    """Mean ‖v‖₂ over all vectors that are not zero.  (V,E) -> ()"""
    lengths: Tensor = torch.linalg.vector_norm(_real(vectors), dim=-1)
    return lengths.mean()


def toward_neighbors(g: Tensor, embedded: Tensor, neighbours: Tensor, *, per_word: bool) -> Tensor:
    """That part of g which leads to other words; g is 0 on padding.  (B,T,E), (B,T,E), (B,T,K,E) -> (B,T,E)"""
    directions = normalize(neighbours - embedded.unsqueeze(2), dim=-1)
    rise = (directions @ g.unsqueeze(-1)).squeeze(-1)  # (B,T,K): ∂ℓ/∂α at α = 0
    # not `normalize`, which leaves a faint gradient as it is
    alpha = unit_vector(rise.flatten(0, 1)).view_as(rise) if per_word else unit_vector(rise)
    return (alpha.unsqueeze(2) @ directions).squeeze(2)


def _real(vectors: Tensor) -> Tensor:
    vectors = vectors.detach()
    return vectors[vectors.any(-1)]
