"""Some of the words of a text, again and again: what LIME and KernelSHAP ask a model about.

    n words, k of them kept, with chance π(k) spread evenly over the subsets of that size

    2ⁿ ≤ S    every subset once, with its share π(k) / C(n,k): nothing is left to chance
    else      S of them are drawn, of four for each word at least, with equal shares

`paired` is for laws that favour the smallest and the largest subsets: the n of one word and the n that lack one word
are all there, with their share π(1) / n, and the rest is drawn among the sizes between, each with its opposite.

A subset is drawn from the text's own chance, so it depends neither on the batch nor on how many are drawn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from steadygaze.explain.chances import without
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import parts, text_key
from steadygaze.reader import Reader
from steadygaze.types import Batch

PER_WORD = 4
"""Subsets for each word at least: with fewer than one, no regression could tell the words apart."""
ENTRIES = 1 << 21
"""Subsets × tokens held at once, in doubles."""
Law = Callable[[Tensor, Tensor], Tensor]
"""Sizes k and numbers of words n -> how likely a subset has that size, up to a factor."""


@dataclass(frozen=True, slots=True)
class Subsets:
    kept: Tensor  # (B,S,T) bool
    share: Tensor  # (B,S) sums to one in each text that has any; 0: not to be read

    def read(self, model: Reader, batch: Batch, aim: Tensor) -> Tensor:
        """How likely the class asked about is, of each.  (B,S), 0 where it is not to be read"""
        rows, number = self.share.nonzero(as_tuple=True)
        gone = batch.mask[rows] & ~self.kept[rows, number]
        found = torch.zeros_like(self.share)
        found[rows, number] = without(model, batch, rows, gone, aim)
        return found


def groups(batch: Batch, samples: int) -> Iterator[Tensor]:
    """Rows of the texts to be handled together: memory does not grow with the batch."""
    width = batch.ids.shape[1]
    many = max(1, ENTRIES // (width * max(samples, PER_WORD * width)))
    return parts(batch, many)


def subsets(batch: Batch, law: Law, samples: int, chance: Chance, *, paired: bool = False) -> Subsets:
    """`paired`: every second one is what the one before left out, and a word alone stands first for each word."""
    words = batch.mask.sum(-1, keepdim=True)  # (B,1)
    few = words < samples.bit_length()  # 2ⁿ ≤ samples
    many = torch.where(few, 1 << words.clamp_max(62), (PER_WORD * words).clamp_min(samples))
    number = torch.arange(int(many.max()), device=words.device)
    sizes = _law(law, words, batch.ids.shape[1])  # (B,T+1)
    if bool(few.all()):
        kept, share = _every(batch.mask, number), torch.zeros_like(sizes[:, :1])
    else:
        draw = _paired if paired else _drawn
        kept, share = draw(batch, sizes, number, many, chance)
        kept = torch.where(few.unsqueeze(-1), _every(batch.mask, number), kept)
    size = kept.sum(-1)
    share = torch.where(few, sizes.gather(-1, size) / _choices(words, size), share)
    return Subsets(kept, share.masked_fill(number >= many, 0.0))


def _law(law: Law, words: Tensor, width: int) -> Tensor:
    """(B,1) -> (B,T+1)"""
    k, n = torch.arange(width + 1, device=words.device).double(), words.double()
    return _normal(torch.where(k <= n, law(k, n), 0.0))


def _normal(chances: Tensor) -> Tensor:
    """With a sum of one, where any is above 0."""
    return chances / chances.sum(-1, keepdim=True).clamp_min(torch.finfo(chances.dtype).tiny)


def _every(mask: Tensor, number: Tensor) -> Tensor:
    """The subset of a number has the words where its binary digits are 1.  (B,T), (S,) -> (B,S,T)"""
    digit = (mask.cumsum(-1) - 1).clamp(0, 62)
    return ((number[:, None] >> digit.unsqueeze(1)) & 1).bool() & mask.unsqueeze(1)


def _drawn(batch: Batch, sizes: Tensor, number: Tensor, many: Tensor, chance: Chance) -> tuple[Tensor, Tensor]:
    """By size, then evenly among those of that size.  (B,T), (S,) -> (B,S,T), (B,1)"""
    mask, width = batch.mask.unsqueeze(1), batch.ids.shape[1]
    key = chance.scramble(text_key(batch).unsqueeze(-1) + number)  # (B,S)
    drawn = chance.uniform(key.flatten(), 1 + width, dtype=torch.float64).view(*key.shape, 1 + width)
    k = torch.searchsorted(sizes.cumsum(-1), drawn[..., 0].contiguous(), right=True).clamp_max(width)
    drawn = drawn[..., 1:].masked_fill(~mask, 2.0)
    ordered = torch.cat([drawn.sort(-1).values, torch.full_like(drawn[..., :1], 2.0)], -1)
    return drawn < ordered.gather(-1, k.unsqueeze(-1)), 1 / many.double()  # the words of the k lowest numbers


def _paired(batch: Batch, sizes: Tensor, number: Tensor, many: Tensor, chance: Chance) -> tuple[Tensor, Tensor]:
    """(B,T), (S,) -> (B,S,T), (B,S)"""
    words = batch.mask.sum(-1, keepdim=True)
    size = torch.arange(sizes.shape[-1], device=words.device)
    ends = (size == 1) | (size == words - 1)
    inner = sizes.masked_fill(ends, 0.0)
    pair = number[::2] // 2  # (S/2,)
    drawn, _ = _drawn(batch, _normal(inner), pair, many, chance)
    alone = (batch.mask.cumsum(-1).unsqueeze(1) - 1 == pair.unsqueeze(-1)) & batch.mask.unsqueeze(1)
    first = torch.where((pair < words).unsqueeze(-1), alone, drawn)
    both = torch.stack([first, batch.mask.unsqueeze(1) & ~first], 2).flatten(1, 2)[:, : len(number)]
    of_end, of_inner = sizes[:, 1:2] / words.clamp_min(1), inner.sum(-1, keepdim=True) / (many - 2 * words).clamp_min(1)
    return both, torch.where(number < 2 * words, of_end, of_inner)


def _choices(n: Tensor, k: Tensor) -> Tensor:
    """C(n,k)"""
    n, k = n.double(), k.double()
    return (torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)).exp()
