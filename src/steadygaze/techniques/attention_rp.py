"""Attention RP: random perturbation of the attention scores.

The control of Kitada & Iyatomi, IEEE Access 2021 (arXiv:2009.12064), §VII-B: the length of Attention AT, in a random
direction.

Equation
--------
    r  =  ε · n / ‖n‖₂,   n ~ N(0, I) over the words
    L  =  ℓ(y, f(s))  +  λ · ℓ(y, f(s + r))

    s  (B,T) scores, before the softmax      ε  `epsilon`      λ  `weight`      ℓ  cross-entropy

Cost
----
A second pass of attention and decoder only: 1.25 vanilla steps on a GPU, 1.03 on a CPU.

When to use
-----------
As the control of `attention-at`: the difference between both is the effect of the direction.

Departs from the paper
----------------------
The paper specifies neither distribution nor size: r lies on the sphere of Attention AT, so that the two differ in
direction alone.

Tested by tests/techniques/test_attention_rp.py.
"""

from torch import Tensor

from steadygaze.core.maths.distributions import unit_vector
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch
from steadygaze.techniques.attention_at import AttentionAT
from steadygaze.techniques.technique import LossContext


@settings
class AttentionRP(AttentionAT):
    """Random perturbation of attention scores: the control of attention-at."""

    def direction(self, clean: Tensor, scores: Tensor, batch: Batch, context: LossContext) -> Tensor:
        n = context.key.normal(batch.index, scores.shape[1], dtype=scores.dtype)
        return unit_vector(n.masked_fill(~batch.mask, 0.0))
