"""Selections that are drawn in training, and what they cost.

A selection is drawn from the generator's chances, so that others than the best are tried too:

    q  =  (1 − ε) π + ε u        ε `exploration`;  u: even over the units that the text has, and over no others

    sentences    one is drawn from q
    tokens       each by a coin of its own; u is the share that is wanted, or one half

The penalties are for tokens drawn one by one, n in a text:

    sparsity     | Σ z / n − share |                     how far the share is missed, on either side (papers: above)
    continuity   max(0, Σ |z_t − z_t+1| − 2 spans) / n   a piece has two ends
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.maths.chance import Chance
from steadygaze.maths.rank import top
from steadygaze.rationaliser import Looked
from steadygaze.types import Batch


@dataclass(frozen=True, slots=True)
class Drawn:
    units: Tensor  # (B,U) bool
    chance: Tensor  # (B,) ln of the chance it had, exploration included; with a gradient
    noisy: Tensor  # (B,U) what was compared: ln q, or its odds, and noise


def draw(looked: Looked, batch: Batch, chance: Chance, exploration: float) -> Drawn:
    """One unit of each text, by the Gumbel trick; in a text without any, none."""
    many = looked.real.sum(-1, keepdim=True, dtype=looked.probability.dtype).clamp_min(1)
    chances = (1 - exploration) * looked.probability + exploration / many
    known = _log(chances).masked_fill(~looked.real, 0.0)
    noisy = known - _log(-_log(_uniform(chance, batch, known)))
    units = top(noisy.detach(), looked.real, 1)
    return Drawn(units, (known * units).sum(-1), noisy)


def toss(looked: Looked, batch: Batch, chance: Chance, exploration: float, share: float | None) -> Drawn:
    """Each token by a coin of its own; (1 − ε) p + ε · share."""
    chances = (1 - exploration) * looked.probability + exploration * (0.5 if share is None else share)
    drawn = _uniform(chance, batch, chances)
    heads, tails = _log(chances), _log(1 - chances)
    noisy = heads - tails - _log(drawn) + _log(1 - drawn)  # above 0 just where drawn < chances
    units = (drawn < chances) & looked.real
    told = torch.where(units, heads, tails).masked_fill(~looked.real, 0.0).sum(-1)
    return Drawn(units, told, noisy)


def passed(units: Tensor, soft: Tensor) -> Tensor:
    """What was selected, with the gradient of something softer: straight through.  (B,U), (B,U) -> (B,U)"""
    return units.to(soft.dtype) + (soft - soft.detach())  # what is added is exactly 0


def missed(selection: Tensor, mask: Tensor, share: float | None) -> Tensor:
    """| Σ z / n − share |; None: Σ z / n.  0 of a text without words.  (B,T) -> (B,)"""
    size = mask.sum(-1)
    found = selection.masked_fill(~mask, 0.0).sum(-1) / size.clamp_min(1)
    return (found - (share or 0.0)).abs() * (size > 0)


def broken(selection: Tensor, mask: Tensor, spans: int | None) -> Tensor:
    """Ends of pieces, less those allowed, for each token; a piece at an end of the text has one.  (B,T) -> (B,)"""
    both = mask[:, 1:] & mask[:, :-1]
    ends = selection.diff(dim=-1).abs().masked_fill(~both, 0.0).sum(-1)
    return (ends - 2 * (spans or 0)).clamp_min(0.0) / mask.sum(-1).clamp_min(1)


def _uniform(chance: Chance, batch: Batch, like: Tensor) -> Tensor:
    """In [0, 1), each text's its own.  (B,U)"""
    return chance.uniform(batch.index, like.shape[1], dtype=like.dtype)


def _log(values: Tensor) -> Tensor:
    """Of what was drawn as 0, or made so by rounding."""
    return values.clamp_min(torch.finfo(values.dtype).tiny).log()
