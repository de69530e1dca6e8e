"""Uniform attention: every word weighs the same, whatever its score.

Wiegreffe & Pinter 2019 (arXiv:1908.04626), §3.1: a model trained so is the yardstick of all others.  Where it labels as
well, attention has not been needed, and explains little.

    w_t = 1/n over the n words

Departs from the paper: nothing known.  Scores have a slope of exactly 0, so that a scorer stays as it was drawn.
"""

import torch
from torch import Tensor, nn


class Uniform(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)  # a third in half precision is not one
        even = mask.to(wide) / mask.sum(-1, keepdim=True).clamp_min(1)
        # Nothing of a score is left, but it is still asked: whoever wants its slope gets 0, not a refusal.
        return even + scores.masked_fill(torch.ones_like(mask), 0.0)
