"""Some of the words of a text, again and again: what LIME asks a model about.

    n words, k of them kept, with chance π(k) spread evenly over the subsets of that size

    2ⁿ ≤ S    every subset once, with its share π(k) / C(n,k): nothing is left to chance
    else      S of them are drawn, of four for each word at least, with equal shares

A word is a unit (perturb/units.py): all its tokens are kept or removed together.  A subset is drawn from the text's own
chance, so it depends neither on the batch nor on how many are drawn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.explain.chances import without
from steadygaze.explain.explainer import Saliency
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import parts, text_key
from steadygaze.perturb.units import MOST_UNITS, Units, units_of
from steadygaze.reader import Reader
from steadygaze.types import Batch

MOST_SAMPLES = 100_000
"""Subsets of a text that may be requested: a hundred times as many as LIME reads by default."""
PER_WORD = 4
"""Subsets for each word at least: with fewer than one, no regression could tell the words apart."""
ENTRIES = 1 << 21
"""Subsets × tokens held at once, in doubles."""
Law = Callable[[Tensor, Tensor], Tensor]
"""Sizes k and numbers of words n -> how likely a subset has that size, up to a factor."""


@dataclass(frozen=True, slots=True)
class Subsets:
    units: Units
    kept: Tensor  # (B,S,U) bool
    share: Tensor  # (B,S) sums to one in each text that has any; 0: not to be read

    def read(self, model: Reader, batch: Batch, aim: Tensor) -> Tensor:
        """How likely the class asked about is, of each.  (B,S), 0 where it is not to be read"""
        found = torch.zeros_like(self.share)
        for rows, number in chunks(self.share != 0, self.units.number.shape[1]):
            gone = self.units.tokens(~self.kept[rows, number], rows)
            found[rows, number] = without(model, batch, rows, gone, aim)
        return found


def saliency(units: Units, weights: Tensor, batch: Batch, logits: Tensor) -> Saliency:
    """The weights of units (B,U) on their first tokens, those of the question apart."""
    placed, width = units.on_first(weights), batch.ids.shape[1]
    return Saliency(placed[:, :width], logits, question=placed[:, width:] if placed.shape[1] > width else None)


def chunks(chosen: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The places that are True, so many at once that a row of `width` tokens for each fits in memory.  (B,N)"""
    rows, number = chosen.nonzero(as_tuple=True)
    size = max(1, ENTRIES // width)
    for start in range(0, len(rows), size):
        yield rows[start : start + size], number[start : start + size]


def groups(batch: Batch, samples: int) -> Iterator[Tensor]:
    """Rows of the texts to be handled together: memory does not grow with the batch."""
    width = batch.ids.shape[1] + (0 if batch.question_mask is None else batch.question_mask.shape[1])
    many = max(1, ENTRIES // (width * max(samples, PER_WORD * width)))
    return parts(batch, many)


def subsets(batch: Batch, law: Law, samples: int, chance: Chance, most: int = MOST_UNITS) -> Subsets:
    units = units_of(batch, most=most)
    words = units.mask.sum(-1, keepdim=True)  # (B,1)
    few = words < samples.bit_length()  # 2ⁿ ≤ samples
    many = torch.where(few, 1 << words.clamp_max(62), (PER_WORD * words).clamp_min(samples))
    number = torch.arange(int(many.max()), device=words.device)
    sizes = _law(law, words, units.mask.shape[1])  # (B,U+1)
    if bool(few.all()):
        kept, share = _every(units.mask, number), torch.zeros_like(sizes[:, :1])
    else:
        kept, share = _drawn(text_key(batch), units.mask, sizes, number, chance), 1 / many.double()
        kept = torch.where(few.unsqueeze(-1), _every(units.mask, number), kept)
    size = kept.sum(-1)
    share = torch.where(few, sizes.gather(-1, size) / _choices(words, size), share)
    return Subsets(units, kept, share.masked_fill(number >= many, 0.0))


def _law(law: Law, words: Tensor, width: int) -> Tensor:
    """With a sum of one, where any is above 0.  (B,1) -> (B,U+1)"""
    k, n = torch.arange(width + 1, device=words.device).double(), words.double()
    chances = torch.where(k <= n, law(k, n), 0.0)
    return chances / chances.sum(-1, keepdim=True).clamp_min(torch.finfo(chances.dtype).tiny)


def _every(mask: Tensor, number: Tensor) -> Tensor:
    """The subset of a number has the words where its binary digits are 1.  (B,U), (S,) -> (B,S,U)"""
    digit = torch.arange(mask.shape[1], device=mask.device).clamp(0, 62)
    return ((number[:, None] >> digit) & 1).bool() & mask.unsqueeze(1)


def _drawn(key: Tensor, mask: Tensor, sizes: Tensor, number: Tensor, chance: Chance) -> Tensor:
    """By size, then evenly among those of that size.  (B,), (B,U), (B,U+1), (S,) -> (B,S,U)"""
    width = mask.shape[1]
    each = chance.scramble(key.unsqueeze(-1) + number)  # (B,S)
    drawn = chance.uniform(each.flatten(), 1 + width, dtype=torch.float64).view(*each.shape, 1 + width)
    k = torch.searchsorted(sizes.cumsum(-1), drawn[..., 0].contiguous(), right=True).clamp_max(width)
    drawn = drawn[..., 1:].masked_fill(~mask.unsqueeze(1), 2.0)
    ordered = torch.cat([drawn.sort(-1).values, torch.full_like(drawn[..., :1], 2.0)], -1)
    return drawn < ordered.gather(-1, k.unsqueeze(-1))  # the words of the k lowest numbers


def _choices(n: Tensor, k: Tensor) -> Tensor:
    """C(n,k)"""
    n, k = n.double(), k.double()
    return (torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)).exp()
