"""The certificate on tensors: bounds on the effect of any change of the attention weights within a ball.

    z(w + δ) = z + Aᵀδ,  ‖δ‖ ≤ R;   i the predicted class;  n_ij largest change of z_i − z_j for ‖δ‖ = 1 (`closed_form`)

    certified    z_i − z_j > R·n_ij for all j ≠ i       exact, for any number of classes
    radius       min_j (z_i − z_j) / n_ij               infinite if no n_ij is above 0
    α            max KL(p ‖ p(w + δ))                   two classes: exact.  More: Σ p_i ln(p_i / p_i⁻), an upper bound
    tvd          max ½ Σ |p − p(w + δ)|                 two classes: exact.  More: min(1, Σ(p_i⁺ − p_i), Σ(p_i − p_i⁻))
                 p_i^∓ = 1 / (1 + Σ_{j≠i} exp(z_j − z_i ± R·n_ij))
    top-k        w_(k) − w_(k+1) > 2R (ℓ∞), √2·R (ℓ2)   exact; a tie counts as change; holds if k ≥ words
    β, γ         top-k overlap with a reference's attention; KL(its prediction ‖ ours) and their total variation

A nonlinear decoder has no A: gradient ascent then gives a lower bound of α, without certificate.
A tie of the two highest logits has radius 0 and is never certified: the order of the classes decides it.

Departs from the paper (SEAT, Hu et al., AAAI 2023, Definition 2): D2 is KL, not cross-entropy, so that equal
predictions score 0; α is certified, not searched for.  Tested by tests/certificates/test_certificate.py.

Lower bounds of α, the largest divergence within the ball, by gradient ascent.

    α ≥ KL(p ‖ p(w + δ)) for every δ that is found,   p the clean prediction

ascend_divergence   linear decoder, more than two classes: starts at the best class-pair corner
search              any decoder: starts where each likely class is, to first order, most and least likely

Both are deterministic: the result for a text does not depend on its batch.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import Norm, kl_logits, top_k_overlap, total_variation
from steadygaze.core.types import Batch, Forward
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import evaluation, inference
from steadygaze.perturbations.closed_form import best_pair, spread, worst_binary
from steadygaze.perturbations.gradient_ascent import ascend

STEPS = 10
"""As many as SEAT's inner search takes."""
MAX_CLASSES = 5
"""Classes started from, the likeliest of them: a class without probability adds nothing to the divergence."""


def ascend_divergence(
    reach: Tensor, logits: Tensor, clean: Tensor, mask: Tensor, radius: float, norm: Norm, simplex: bool
) -> Tensor:
    """Ascent from the best corner; on the simplex the best corner alone.  (B,T,C), (B,C), … -> (B,)"""
    delta = best_pair(reach, logits, clean, mask, radius, norm, simplex)

    def divergence(delta: Tensor) -> Tensor:
        return kl_logits(clean, logits + (delta.unsqueeze(1) @ reach).squeeze(1))

    if not simplex:
        center = torch.zeros_like(delta)
        delta = ascend(divergence, delta, center=center, radius=radius, norm=norm, steps=STEPS, keep=mask, best=True)
    return divergence(delta)


def search(model: Classifier, forward: Forward, mask: Tensor, radius: float, norm: Norm) -> Tensor:
    """-> (B,)"""
    clean, center = forward.logits.double().softmax(-1), forward.weights.double()
    many = min(clean.shape[-1] - 1, MAX_CLASSES)  # of two classes one is enough: p_0 = 1 − p_1
    classes = clean.topk(many).indices.unbind(-1)
    row = torch.arange(len(clean), device=clean.device)
    search_ascent = partial(ascend, center=center, radius=radius, norm=norm, keep=mask)

    def decode(weights: Tensor) -> Tensor:
        return model.decode(forward.encoded, weights).double()

    def divergence(weights: Tensor) -> Tensor:
        return kl_logits(clean, decode(weights))

    def chance(weights: Tensor, of: Tensor) -> Tensor:
        return decode(weights).log_softmax(-1)[row, of]

    with evaluation(model):
        directions = [
            search_ascent(partial(chance, of=class_index), torch.zeros_like(center), steps=1, step_size=radius)
            for class_index in classes
        ]
        starts = [sign * start for start in directions for sign in (1, -1)]
        ends = [search_ascent(divergence, start, steps=STEPS, best=True) for start in starts]
        with torch.no_grad():
            return torch.stack([divergence(center + end) for end in ends]).amax(0).clamp_min(0.0)


ULPS = 32
"""Rounding error that a certified margin must exceed, in units in the last place of the model's precision.

A sum of a thousand terms loses about as many.  At a radius of exactly (z_i − z_j) / n_ij, rounding would otherwise
decide whether a text is certified."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """All (B,), numbers in float64; None: not defined for this decoder, or no reference."""

    predicted: Tensor
    certified: Tensor
    radius: Tensor | None
    alpha: Tensor | None
    alpha_low: Tensor
    tvd: Tensor | None
    top_k_holds: Tensor
    beta: Tensor | None = None
    gamma: Tensor | None = None
    gamma_tvd: Tensor | None = None


def certify_batch(
    model: Classifier,
    batch: Batch,
    radius: float,
    norm: Norm,
    k: int,
    simplex: bool,
    reference: Forward | None = None,
    lower_bound: bool = False,
) -> Bounds:
    """The certificate of each text.

    reference    the output of another model for the same tokens
    lower_bound  search for a lower bound if the decoder is not linear, instead of an error
    """
    if not model.has_linear_decoder:
        _refuse(lower_bound, simplex)
    with inference(model):
        forward: Forward = model(batch)
        reach = model.reach(forward.encoded)
    if reach is None:
        low = search(model, forward, batch.mask, radius, norm)
        bounds: dict[str, Any] = {**dict.fromkeys(("radius", "alpha", "tvd")), "alpha_low": low}
        bounds["certified"] = torch.zeros_like(batch.mask[:, 0])
    else:
        bounds = _closed(reach.double(), forward, batch.mask, radius, norm, simplex)
    close = {} if reference is None else _closeness(forward, reference, batch.mask, k)
    top_k_stable = top_k_holds(forward.weights.double(), batch.mask, radius, norm, k)
    return Bounds(predicted=forward.logits.argmax(-1), top_k_holds=top_k_stable, **bounds, **close)


def top_k_holds(weights: Tensor, mask: Tensor, radius: float, norm: Norm, k: int) -> Tensor:
    """True if no ‖δ‖ ≤ R changes the set of top-k tokens.  (B,T) -> (B,) bool"""
    if k >= weights.shape[-1]:
        return torch.ones_like(mask[..., 0])
    ordered = weights.masked_fill(~mask, -torch.inf).sort(dim=-1, descending=True).values
    meet = 2 * radius if norm == "linf" else math.sqrt(2) * radius  # one falls and the other rises, by as much each
    return (mask.sum(-1) <= k) | (ordered[..., k - 1] - ordered[..., k] > meet)


def _refuse(lower_bound: bool, simplex: bool) -> None:
    problem = "this model's decoder is not linear in the attention weights, so nothing can be certified of it"
    if not lower_bound:
        raise UserError(
            f"{problem}: train with decoder=linear, or ask for what gradient ascent finds, lower_bound=True"
        )
    if simplex:
        raise UserError(f"{problem}; gradient ascent does not keep to the simplex: leave out simplex")


def _closed(
    reach: Tensor, forward: Forward, mask: Tensor, radius: float, norm: Norm, simplex: bool
) -> dict[str, Tensor]:
    """certified, radius, α and its lower bound, tvd."""
    with torch.no_grad():
        logits = forward.logits.double()
        clean = logits.softmax(-1)
        n = spread(reach, mask, norm, simplex)  # (B,C,C)
        certified, certified_radius = _prediction(logits, n, radius, torch.finfo(forward.logits.dtype).eps)
        lowest, highest = _log_chances(logits, radius * n), _log_chances(logits, -radius * n).exp()
        problem = (reach, logits, clean, mask, radius, norm, simplex)
        if logits.shape[-1] == 2:
            alpha = low = worst_binary(*problem)
            tvd = torch.maximum(highest - clean, clean - lowest.exp())[:, 1]
        else:
            alpha = (clean * (logits.log_softmax(-1) - lowest)).sum(-1)
            tvd = torch.minimum((highest - clean).sum(-1), (clean - lowest.exp()).sum(-1)).clamp_max(1.0)
            low = ascend_divergence(*problem)
    distances = {"alpha": alpha, "alpha_low": low, "tvd": tvd}
    # Sums that cancel can round to just below 0, which no distance may be.
    clamped = {name: value.clamp_min(0.0) for name, value in distances.items()}
    return {"certified": certified, "radius": certified_radius, **clamped}


def _prediction(logits: Tensor, n: Tensor, radius: float, precision: float) -> tuple[Tensor, Tensor]:
    """The predictions certified at R (True), and their certified radii.  (B,C), (B,C,C) -> (B,), (B,)"""
    predicted = logits.argmax(-1, keepdim=True)
    gap = logits.gather(-1, predicted) - logits  # (B,C)
    size = n.gather(1, predicted.unsqueeze(-1).expand(-1, -1, n.shape[-1])).squeeze(1)
    itself = torch.zeros_like(gap, dtype=torch.bool).scatter(-1, predicted, True)
    unmoved = torch.where(gap > 0, torch.inf, 0.0).to(gap.dtype)
    radii = torch.where(size > 0, gap / size, unmoved).masked_fill(itself, torch.inf)
    terms = logits.abs() + logits.gather(-1, predicted).abs() + radius * size
    return ((gap > radius * size + ULPS * precision * terms) | itself).all(-1), radii.amin(-1)


def _log_chances(logits: Tensor, loss: Tensor) -> Tensor:
    """ln p_i if every other class gained loss_ij on class i.  (B,C), (B,C,C) -> (B,C)"""
    return -(logits.unsqueeze(1) - logits.unsqueeze(2) + loss).logsumexp(-1)


@torch.no_grad()
def _closeness(forward: Forward, reference: Forward, mask: Tensor, k: int) -> dict[str, Tensor]:
    """β and γ."""
    weights, logits = forward.weights.double(), forward.logits.double()
    reference_probs = reference.logits.to(logits).softmax(-1)
    all_classes = torch.ones_like(reference_probs, dtype=torch.bool)
    return {
        "beta": top_k_overlap(weights, reference.weights.to(weights), mask, k),
        "gamma": kl_logits(reference_probs, logits).clamp_min(0.0),
        "gamma_tvd": total_variation(reference_probs, logits.softmax(-1), all_classes),
    }
