"""Lower ends of α, the largest divergence within a ball of attention weights, by gradient ascent.

    α ≥ KL(p ‖ p(w + δ)) for every δ that is found,   p the clean prediction

climb     a linear decoder and more than two classes: from the best class-pair corner
search    any decoder: from the points where each likely class is, to first order, most and least likely

Neither starts at random: the same text gets the same number, whatever batch it is in.
"""

from functools import partial

import torch
from torch import Tensor

from steadygaze.infer import evaluation
from steadygaze.maths.divergence import kl_logits
from steadygaze.maths.norms import Norm
from steadygaze.model import Classifier
from steadygaze.perturb.ascent import ascend
from steadygaze.perturb.closed_form import best_pair
from steadygaze.types import Forward

STEPS = 10
"""As many as SEAT's inner search takes."""
LIKELY = 5
"""Classes started from, the likeliest of them: a class without probability adds nothing to the divergence."""


def climb(
    reach: Tensor, logits: Tensor, clean: Tensor, mask: Tensor, radius: float, norm: Norm, simplex: bool
) -> Tensor:
    """On the simplex, where ascent does not stay, the best corner is all there is.  (B,T,C), (B,C), … -> (B,)"""
    delta = best_pair(reach, logits, clean, mask, radius, norm, simplex)

    def divergence(delta: Tensor) -> Tensor:
        return kl_logits(clean, logits + (delta.unsqueeze(1) @ reach).squeeze(1))

    if not simplex:
        centre = torch.zeros_like(delta)
        delta = ascend(divergence, delta, centre=centre, radius=radius, norm=norm, steps=STEPS, keep=mask, best=True)
    return divergence(delta)


def search(model: Classifier, forward: Forward, mask: Tensor, radius: float, norm: Norm) -> Tensor:
    """-> (B,)"""
    clean, centre = forward.logits.double().softmax(-1), forward.weights.double()
    likely = clean.topk(min(clean.shape[-1] - 1, LIKELY)).indices.unbind(
        -1
    )  # of two classes one is enough: p_0 = 1 − p_1
    row = torch.arange(len(clean), device=clean.device)
    up = partial(ascend, centre=centre, radius=radius, norm=norm, keep=mask)

    def decode(weights: Tensor) -> Tensor:
        return model.decode(forward.encoded, weights).double()

    def divergence(weights: Tensor) -> Tensor:
        return kl_logits(clean, decode(weights))

    def chance(weights: Tensor, of: Tensor) -> Tensor:
        return decode(weights).log_softmax(-1)[row, of]

    with evaluation(model):
        most = [up(partial(chance, of=one), torch.zeros_like(centre), steps=1, step_size=radius) for one in likely]
        starts = [sign * start for start in most for sign in (1, -1)]
        ends = [up(divergence, start, steps=STEPS, best=True) for start in starts]
        with torch.no_grad():
            return torch.stack([divergence(centre + end) for end in ends]).amax(0).clamp_min(0.0)
