"""Is an attention that does not move any explanation at all?  Two that never move, and explain nothing.

    uniform     the same weight on every word
    constant    the same weight on the same position, whatever the text: its first word, say, or its last

    evenness       H(w) / ln n      1: all words alike; 0: one word has it all.  n: the words of the text
    from_uniform   JSD(w, 1/n)
    from_habit     JSD(w, h)        h: the mean weight of each position over the texts that reach it, cut to n positions
                                    and scaled to sum to one; counted from the start, or from the end: the nearer

Neither sees an attention that puts all weight on one word drawn at random: that moves, and is for the other measures.

JSD is to second order a squared distance, so `from_habit / from_uniform` is about 1 − R²: the part of what sets the
weights apart from even ones that position alone does not foretell.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.maths.divergence import entropy, jensen_shannon
from steadygaze.maths.rank import overlap

UNEVEN = 0.005
"""Nats from uniform under which weights are even.  Plain attention trained on real reviews lies at 0.1 to 0.3."""
SHARE = 0.05
"""The same as a part of the reference's distance (5 % of 0.1 is UNEVEN), and the part of from_uniform that must be left
when position is known: under it, position foretells 95 % of what the weights say."""
DISTINCT = 8
"""Texts that differ: fewer cannot tell a habit from texts that are alike."""
SAME = 1e-5
"""Weights nearer than this are one weight: the same text read in another batch differs by rounding."""


@dataclass(frozen=True)
class Collapse:
    """What one set of weights looks like: means over the texts of two words or more."""

    evenness: float
    from_uniform: float
    from_habit: float
    overlap: float | None
    """Top-k overlap with the reference."""
    uniform: bool
    constant: bool

    @property
    def collapsed(self) -> bool:
        return self.uniform or self.constant

    @property
    def reason(self) -> str:
        if self.uniform:
            return f"The weights are nearly the same for every word ({self.from_uniform:.4f} nats from uniform)."
        if self.constant:
            left = self.from_habit / self.from_uniform
            return (
                f"The weights follow the place of a word, not the text (place leaves {left:.1%} of them unexplained)."
            )
        return ""


def evenness(w: Tensor, mask: Tensor) -> Tensor:
    """H(w) / ln n in [0, 1]; 1 for a text of one word, or none.  (B,T), (B,T) -> (B,)"""
    words = mask.sum(-1)
    even = entropy(w, mask) / words.clamp_min(2).to(w.dtype).log()
    return torch.where(words > 1, even, 1.0).clamp_max(1.0)


def from_uniform(w: Tensor, mask: Tensor) -> Tensor:
    """JSD(w, 1/n) in [0, ln 2).  (B,T), (B,T) -> (B,)"""
    return jensen_shannon(w, mask / mask.sum(-1, keepdim=True).clamp_min(1).to(w.dtype), mask)


def from_habit(w: Tensor, mask: Tensor) -> Tensor:
    """JSD(w, h) in [0, ln 2): compares texts, so give it all of them; NaN under two words.  (N,T), (N,T) -> (N,)"""
    telling = mask.sum(-1) > 1
    mask = mask & telling.unsqueeze(-1)
    nearer = torch.minimum(_from_mean(w, mask), _from_mean(w.flip(-1), mask.flip(-1)))
    return nearer.masked_fill(~telling, torch.nan)


def judge(
    weights: Tensor, mask: Tensor, reference: Tensor | None = None, k: int = 7, *, ids: Tensor | None = None
) -> Collapse:
    """Whether the weights of one set of texts say anything; all (N,T).  `ids`, where known, tell which texts differ."""
    telling = mask.sum(-1) > 1
    weights, mask = weights[telling], mask[telling]
    others = [column[telling] for column in (reference, ids) if column is not None]
    spread, strayed = (float(measure(weights, mask).mean()) for measure in (from_uniform, from_habit))
    usual = 0.0 if reference is None else float(from_uniform(reference[telling], mask).mean())
    return Collapse(
        evenness=float(evenness(weights, mask).mean()),
        from_uniform=spread,
        from_habit=strayed,
        overlap=None if reference is None else float(overlap(weights, reference[telling], mask, k).mean()),
        uniform=spread < max(UNEVEN, SHARE * usual),  # a reference may only ask for more
        constant=strayed < SHARE * spread and _differ(weights, mask, *others),
    )


def _from_mean(w: Tensor, mask: Tensor) -> Tensor:
    """JSD between each row and the mean row, with the real tokens moved to the front.  (N,T), (N,T) -> (N,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices
    w, mask = w.gather(-1, order).masked_fill(~mask.gather(-1, order), 0.0), mask.gather(-1, order)
    habit = (w.sum(0) / mask.sum(0).clamp_min(1)).expand_as(w).masked_fill(~mask, 0.0)
    return jensen_shannon(w, habit / habit.sum(-1, keepdim=True).clamp_min(torch.finfo(w.dtype).tiny), mask)


def _differ(*columns: Tensor) -> bool:
    """Whether at least DISTINCT rows lie apart: each round takes one and puts away all that are like it.  (N,T) each"""
    rows = torch.cat([column.to(torch.float64) for column in columns], dim=-1)
    for _ in range(DISTINCT):
        if not len(rows):
            return False
        rows = rows[(rows - rows[0]).abs().amax(-1) > SAME]
    return True
