"""The two distances that SEAT and its kin are made of.

Hu et al., "SEAT: Stable and Explainable Attention", AAAI 2023 (arXiv:2211.12290), Eq. 5 and the inner maximum of Eq. 6.

    L_topk(w, w̃)  =  1/(2k) ( Σ_{t ∈ top-k(w)} |w_t − w̃_t|  +  Σ_{t ∈ top-k(w̃)} |w_t − w̃_t| )
    D2            =  max_{‖δ‖ ≤ R}  D( y(w̃), y(w̃ + δ) )

    w reference, w̃ own weights   k `k`, or the number of words where that is smaller   R `radius`

    divergence      D(p, q)               reading
    cross-entropy   CE = −Σ p ln q        the paper's "binary cross entropy"
    kl              KL = CE(p, q) − H(p)  the paper's "some divergence function"; H(p) = −Σ p ln p

Cross-entropy as D2 is entropy minimization.  Both arguments are the model's own and carry gradients, so that
CE = KL + H(p).  KL is of order R², H is not: at SEAT's default radius of 0.001 the gradient of D2 has a cosine above
0.9999 with the gradient of H.  The term then raises confidence and hardly touches stability.  The gradient of `kl`
holds no entropy term: it vanishes with R.  Both have the same worst δ, because H does not depend on δ.

`solver` of the maximum: `pairs`, the best of the class-pair corners (perturb/closed_form.py), which with two classes is
the maximum itself; `exact`, the same but refused for more than two; `pgd`, ten sign steps from a random start, and the
only one for a decoder that is not linear.  δ is a constant: no gradient flows through the choice of it,
except through the ℓ2 corners of more than two classes.  Both arguments of D are live: nothing else is detached.
Departs from the paper: it ascends along the gradient's mean over a batch, and is silent about start, step and k > T;
sign steps for each text from a random start are the authors' code.  Pinned by tests/objective/test_closeness.py.
"""

from typing import Annotated, Literal

import torch
from torch import Tensor

from steadygaze.config import Field, settings
from steadygaze.decode import Linear
from steadygaze.errors import UserError
from steadygaze.maths.chance import Chance
from steadygaze.maths.divergence import cross_entropy, entropy, kl_logits
from steadygaze.maths.norms import Norm
from steadygaze.model import Architecture, Classifier
from steadygaze.objective.technique import Given, Memory, Technique
from steadygaze.perturb.ascent import ascend
from steadygaze.perturb.closed_form import Divergence, worst_own, worst_pairs
from steadygaze.types import Batch, Encoded


@settings
class Ball:
    """Changes of the attention weights that are to change nothing."""

    radius: Annotated[float, Field(gt=0, le=10)] = 0.01
    """R: how far the weights may be moved."""
    norm: Norm = "linf"
    """In which norm R is measured: linf, or l2."""
    solver: Literal["exact", "pairs", "pgd"] = "pairs"
    """How the worst change is found; exact is for two classes, where pairs is the same."""
    divergence: Divergence = "cross-entropy"
    """How the change of the prediction is measured: cross-entropy (as SEAT is printed; minimizes entropy), or kl."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 10
    """Steps of pgd."""
    stability: Annotated[float, Field(ge=0)] = 1.0
    """λ1: how much the worst change of the prediction, the weights moved, counts."""

    def objection(self, architecture: Architecture, classes: int) -> str | None:
        """What the solver cannot do."""
        if not self.stability:
            return None
        if self.solver != "pgd" and architecture.decoder != "linear":
            needs = f"solver={self.solver} needs a decoder that is linear in the weights"
            return f"{needs}, found decoder={architecture.decoder}: use decoder=linear, or solver=pgd"
        if self.solver == "exact" and classes > 2:
            return f"solver=exact is for two classes, found {classes}: use solver=pairs, or pgd"
        return None


def recalled(technique: Technique, batch: Batch, given: Given) -> Memory:
    """What was remembered of the batch; made anew where the weights were too large to be kept."""
    if "weights" in given.memory.tokens:
        return given.memory
    with torch.no_grad():
        return technique.remember(given.models, batch)


def top_k_distance(w: Tensor, own: Tensor, mask: Tensor, k: int) -> Tensor:
    """L_topk; the choice of the top words is a constant.  (B,T), (B,T) -> (B,)"""
    outside = ~mask
    both = torch.stack([w, own.detach().to(w.dtype)]).masked_fill(outside, -1.0)  # one sort for both
    order = both.sort(dim=-1, descending=True, stable=True).indices[..., :k]  # of equals, the earlier
    apart = (own - w).masked_fill(outside, 0.0).abs()  # a text of fewer than k words has nothing more to add
    return apart.expand(2, -1, -1).gather(-1, order).sum((0, 2)) / (2 * mask.sum(-1).clamp(1, k))


def worst_change(
    model: Classifier, encoded: Encoded, weights: Tensor, logits: Tensor, batch: Batch, ball: Ball, chance: Chance
) -> Tensor:
    """D2.  (B,)"""
    own = logits.softmax(-1)
    if ball.solver == "pgd":
        measure = kl_logits if ball.divergence == "kl" else cross_entropy
        shift = 2 * chance.uniform(batch.index, weights.shape[1], dtype=weights.dtype) - 1

        def change(moved: Tensor) -> Tensor:
            return measure(own.detach(), model.decode(encoded, moved))

        how = {"radius": ball.radius, "norm": ball.norm, "steps": ball.steps}
        delta = ascend(change, ball.radius * shift, centre=weights, keep=batch.mask, **how)  # type: ignore[arg-type]
        return measure(own, model.decode(encoded, weights + delta))
    reach = _reach(model, encoded).to(own.dtype)
    if logits.shape[-1] == 2:
        return worst_own(reach, logits.to(own.dtype), batch.mask, ball.radius, ball.norm, ball.divergence)
    kl = worst_pairs(reach, logits.to(own.dtype), own, batch.mask, ball.radius, ball.norm, simplex=False)
    return kl if ball.divergence == "kl" else kl + entropy(own, torch.ones_like(own, dtype=batch.mask.dtype))


def _reach(model: Classifier, encoded: Encoded) -> Tensor:
    """(B,T,C), where there is such a thing."""
    if not isinstance(model.decoder, Linear):
        raise UserError("solver=exact and solver=pairs need a decoder that is linear in the weights: use solver=pgd")
    return model.decoder.reach(encoded)
