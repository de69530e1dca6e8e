"""Sparse attention: sparsemax and 1.5-entmax, which give most words exactly no weight.

Martins & Astudillo 2016 (arXiv:1602.02068); Peters, Niculae & Martins 2019 (arXiv:1905.05702).
The maps themselves are the `entmax` package's.

    argmax_p  <p, s> + H_α(p)   over the simplex;   α = 2 is sparsemax, α = 1.5 lies between it and softmax
"""

import torch
from entmax import entmax15, sparsemax
from torch import Tensor, nn


class Sparsemax(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights: Tensor = sparsemax(_hide(scores, mask), dim=-1)
        return weights.masked_fill(~mask, 0.0)


class Entmax15(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights: Tensor = entmax15(_hide(scores, mask), dim=-1)
        return weights.masked_fill(~mask, 0.0)


def _hide(scores: Tensor, mask: Tensor) -> Tensor:
    """−∞ outside the mask; a row without real tokens is left alone, since −∞ everywhere has no answer."""
    hidden = ~mask & mask.any(-1, keepdim=True)
    return scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(hidden, -torch.inf)
