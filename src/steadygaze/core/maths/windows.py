"""The best windows of a text: a rationale of bounded size in a bounded number of pieces.

A text of n tokens may keep  k = max(1, ⌊share · n⌋), in  m = min(spans, k)  windows as wide as each other, or nearly:
first k mod m of width ⌊k / m⌋ + 1, then the others of ⌊k / m⌋.  Windows that touch read as one piece.

Greedy: the window of the highest mean score, then the best that does not overlap those taken; of equals, the earlier.
Where no room is left for another of its width there are fewer.  A share of 1 keeps all.
"""

from fractions import Fraction

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.ranking import top_k

FINEST = 10**6
"""Shares are taken as fractions with no larger denominator: 0.29 of 100 is 29, and not the 28.99… of floating point."""


def best_windows(scores: Tensor, mask: Tensor, share: float, spans: int | None) -> Tensor:
    """True on what is kept; spans None: the tokens of the highest scores, wherever they are.  (B,T) -> (B,T) bool"""
    size = greedy_windows(mask, share)
    if spans is None:
        return top_k(scores, mask, size)
    if spans < 1:
        raise ValueError(f"spans is {spans}; there is no selection in fewer than 1")
    size = size.unsqueeze(-1)
    chosen = _greedy(scores, mask, size, size.clamp(1, spans), min(spans, int(share * mask.shape[-1]) + 1))
    return torch.where(size == mask.sum(-1, keepdim=True), mask, chosen)


def greedy_windows(mask: Tensor, share: float) -> Tensor:
    """max(1, ⌊share · n⌋), and 0 of a text without tokens.  (B,T) -> (B,) long"""
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it must be above 0 and at most 1")
    part, tokens = Fraction(share).limit_denominator(FINEST), mask.sum(-1)
    return (tokens * part.numerator // part.denominator).clamp_min(1).minimum(tokens)


def exact_windows(values: Tensor) -> Tensor:
    """As numbers, in the highest precision there is: nobody learns through a choice."""
    return values.detach().to(torch.float32 if values.device.type == "mps" else torch.float64)  # which that has not


def _greedy(scores: Tensor, mask: Tensor, size: Tensor, many: Tensor, most: int) -> Tensor:
    """(B,T), (B,T), (B,1), (B,1) -> (B,T) bool"""
    places = torch.arange(mask.shape[-1], device=mask.device)
    values, narrow = exact_windows(scores), size // many
    chosen = torch.zeros_like(mask)
    for turn in range(most):
        width, open_ = narrow + (turn < size % many), mask & ~chosen
        free = _sums(open_.long(), width) == width  # a window holds tokens alone, and lies in the text
        # Sums, of one width as good as means, and anew in every turn: beside what was taken, the rest may be too small
        # for the digits there are.  What differs in the last digits of long sums alone is equal.
        sums = _sums(values.masked_fill(~open_, 0.0), width).float()
        first = sums.masked_fill(~free, -torch.inf).argmax(-1, keepdim=True)
        taken = free.any(-1, keepdim=True) & (turn < many)
        chosen = chosen | (taken & (places >= first) & (places < first + width))
    return chosen


def _sums(values: Tensor, width: Tensor) -> Tensor:
    """Of the window that begins at each place and ends with the row.  (B,T), (B,1) -> (B,T)"""
    sums = pad(values.cumsum(-1), (1, 0))
    places = torch.arange(values.shape[-1], device=values.device)
    ends = (places + width).clamp_max(values.shape[-1])
    return sums.gather(1, ends) - sums[:, :-1]
