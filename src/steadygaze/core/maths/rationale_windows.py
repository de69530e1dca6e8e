"""Greedy windows: a rationale of bounded size in a bounded number of contiguous pieces.

A text of n tokens keeps  k = max(1, ⌊share · n⌋) tokens in  m = min(spans, k)  windows of nearly equal width.
The first k mod m windows have the width ⌊k / m⌋ + 1, the others ⌊k / m⌋.  Adjacent windows form one piece.

Greedy: the window with the highest mean score, then the best that does not overlap earlier ones; ties: the earlier.
There are fewer windows if no further one fits.  A share of 1 keeps all tokens.
"""

from fractions import Fraction

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import top_k

FINEST = 10**6
"""Maximum denominator of shares as fractions: 0.29 of 100 is 29, not 28.99… in floating point."""


def best_windows(scores: Tensor, mask: Tensor, share: float, spans: int | None) -> Tensor:
    """Return True on selected tokens; spans None: the tokens with the highest scores.  (B,T) -> (B,T) bool"""
    size = token_budget(mask, share)
    if spans is None:
        return top_k(scores, mask, size)
    if spans < 1:
        raise ValueError(f"spans is {spans}; it must be at least 1")
    size = size.unsqueeze(-1)
    chosen = _greedy(scores, mask, size, size.clamp(1, spans), min(spans, int(share * mask.shape[-1]) + 1))
    return torch.where(size == mask.sum(-1, keepdim=True), mask, chosen)


def token_budget(mask: Tensor, share: float) -> Tensor:
    """Return max(1, ⌊share · n⌋), and 0 for a text without tokens.  (B,T) -> (B,) long"""
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it must be above 0 and at most 1")
    part, tokens = Fraction(share).limit_denominator(FINEST), mask.sum(-1)
    return (tokens * part.numerator // part.denominator).clamp_min(1).minimum(tokens)


def highest_precision(values: Tensor) -> Tensor:
    """Detach, in the highest available precision."""
    return values.detach().to(torch.float32 if values.device.type == "mps" else torch.float64)  # mps has no float64


def _greedy(scores: Tensor, mask: Tensor, size: Tensor, many: Tensor, most: int) -> Tensor:
    """(B,T), (B,T), (B,1), (B,1) -> (B,T) bool"""
    positions = torch.arange(mask.shape[-1], device=mask.device)
    values, narrow = highest_precision(scores), size // many
    chosen = torch.zeros_like(mask)
    for turn in range(most):
        width, open_ = narrow + (turn < size % many), mask & ~chosen
        free = _sums(open_.long(), width) == width  # the window is inside the text and unselected
        # Windows have one width, so sums rank like means.  They are recomputed in every turn, because large selected
        # values would hide small ones by rounding.  `float` makes sums equal that differ only by rounding.
        sums = _sums(values.masked_fill(~open_, 0.0), width).float()
        first = sums.masked_fill(~free, -torch.inf).argmax(-1, keepdim=True)
        taken = free.any(-1, keepdim=True) & (turn < many)
        chosen = chosen | (taken & (positions >= first) & (positions < first + width))
    return chosen


def _sums(values: Tensor, width: Tensor) -> Tensor:
    """Return the sum of the window that begins at each position.  (B,T), (B,1) -> (B,T)"""
    sums = pad(values.cumsum(-1), (1, 0))
    positions = torch.arange(values.shape[-1], device=values.device)
    ends = (positions + width).clamp_max(values.shape[-1])
    return sums.gather(1, ends) - sums[:, :-1]
