"""Attention iAT: Attention AT along the differences between scores.

Kitada & Iyatomi, IEEE Access 2021 (arXiv:2009.12064), Eq. 13–19.

Equation
--------
    d_tk  =  s_t − s_k,    d̃_t = d_t / ‖d_t‖₂          from word t toward every other word
    r_t   =  Σ_k α_tk d̃_tk                             optimize α (T,T) instead of r
    G_tk  =  ∂ℓ/∂α_tk at α = 0  =  g_t d̃_tk,           g = ∇ₛℓ
    L     =  ℓ(y, f(s))  +  λ · ℓ(y, f(s + r))

    s (B,T) scores   ε `epsilon`   λ `weight`   ℓ cross-entropy

Eq. 18 as printed gives r the shape of G.  Possible readings (`variant`):

    sentence   α = ε G/‖G‖_F.  Then r_t = ε g_t ‖d̃_t‖²/‖g‖ = ε g_t/‖g‖: *exactly Attention AT*
    word       each ‖α_t‖ ≤ ε.  Then r_t = ε sign(g_t)
    literal    r_t = ε Σ_k G_tk / ‖G‖_F: g_t weighted by the distance of s_t from the mean score; not bounded by ε
    released   r = −ε g/‖g‖, as in the authors' code; it lowers the loss

Cost
----
A second pass of attention and decoder only: 1.25 vanilla steps on a GPU, 1.03 on a CPU.

When to use
-----------
To repeat the paper, and to compare the readings of its equation.  Do not use it for stability.

Departs from the paper
----------------------
The variants name the readings that the paper leaves open.

Tested by tests/techniques/test_attention_iat.py.
"""

from typing import Literal

from torch import Tensor

from steadygaze.core.maths import distributions
from steadygaze.core.maths.distributions import unit_vector
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.perturbations.gradient_ascent import loss_gradient
from steadygaze.techniques.attention_at import AttentionAT
from steadygaze.techniques.technique import LossContext


@settings
class AttentionIAT(AttentionAT):
    """Adversarial training along differences of attention scores (Kitada & Iyatomi 2021)."""

    variant: Literal["sentence", "word", "literal", "released"] = "sentence"
    """Reading of Eq. 18, which determines the norm of the perturbation; `sentence` equals attention-at."""

    def direction(self, clean: Tensor, scores: Tensor, batch: Batch, context: LossContext) -> Tensor:
        g = loss_gradient(clean, scores)
        if self.variant == "word":
            return g.sign()
        if self.variant == "literal":
            return unit_vector(g) * iat_direction(scores.detach(), batch.mask)
        return -unit_vector(g) if self.variant == "released" else unit_vector(g)


def iat_direction(scores: Tensor, mask: Tensor) -> Tensor:
    """Return Σ_k d̃_tk: the height of s_t above the others, in [−√n, √n]; 0 if all are equal.  (B,T) -> (B,T)"""
    words = mask.sum(-1, keepdim=True).clamp_min(1).to(scores.dtype)  # the root of an integer would be a float32
    # Subtract the maximum, so that equal scores are exactly 0, without rounding error of the mean.
    scores = scores - distributions.maximum(scores.unsqueeze(-1), mask)
    mean = scores.masked_fill(~mask, 0.0).sum(-1, keepdim=True) / words
    centered = (scores - mean).masked_fill(~mask, 0.0)
    spread = centered.square() + centered.square().sum(-1, keepdim=True) / words  # ‖d_t‖²/n = (s_t − s̄)² + var(s)
    return words**0.5 * centered / spread.masked_fill(spread == 0, 1.0).sqrt()
