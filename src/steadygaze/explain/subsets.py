"""Some of the words of a text, again and again: what LIME and KernelSHAP ask a model about.

    n words, k of them kept, with chance π(k) spread evenly over the subsets of that size

    2ⁿ ≤ S    every subset once, with its share π(k) / C(n,k): nothing is left to chance
    else      S of them are drawn, of four for each word at least, with equal shares

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
    """`paired`: every second one is what the one before left out, which steadies a regression."""
    words = batch.mask.sum(-1)
    few = words < samples.bit_length()  # 2ⁿ ≤ samples
    many = torch.where(few, 1 << words.clamp_max(62), (PER_WORD * words).clamp_min(samples))
    number = torch.arange(int(many.max()), device=words.device)
    sizes = _law(law, words, batch.ids.shape[1])  # (B,T+1)
    kept = _every(batch.mask, number) if bool(few.all()) else _drawn(batch, sizes, number, chance, paired)
    if bool(few.any() & ~few.all()):
        kept = torch.where(few[:, None, None], _every(batch.mask, number), kept)
    size = kept.sum(-1)
    exact = sizes.gather(-1, size) / _choices(words.unsqueeze(-1), size)
    share = torch.where(few.unsqueeze(-1), exact, 1 / many.double().unsqueeze(-1))
    return Subsets(kept, share.masked_fill(number >= many.unsqueeze(-1), 0.0))


def _law(law: Law, words: Tensor, width: int) -> Tensor:
    """(B,) -> (B,T+1), sums to one where any size has a chance"""
    k, n = torch.arange(width + 1, device=words.device).double(), words.unsqueeze(-1).double()
    chances = torch.where(k <= n, law(k, n), 0.0)
    return chances / chances.sum(-1, keepdim=True).clamp_min(torch.finfo(chances.dtype).tiny)


def _every(mask: Tensor, number: Tensor) -> Tensor:
    """The subset of a number has the words where its binary digits are 1.  (B,T), (S,) -> (B,S,T)"""
    digit = (mask.cumsum(-1) - 1).clamp(0, 62)
    return ((number[:, None] >> digit.unsqueeze(1)) & 1).bool() & mask.unsqueeze(1)


def _drawn(batch: Batch, sizes: Tensor, number: Tensor, chance: Chance, paired: bool) -> Tensor:
    """(B,T), (S,) -> (B,S,T)"""
    mask = batch.mask.unsqueeze(1)
    key = chance.scramble(text_key(batch).unsqueeze(-1) + (number // 2 if paired else number))
    width = mask.shape[-1]
    drawn = chance.uniform(key.flatten(), 1 + width, dtype=torch.float64).view(*key.shape, 1 + width)
    k = torch.searchsorted(sizes.cumsum(-1), drawn[..., 0].contiguous(), right=True).clamp_max(width)
    drawn = drawn[..., 1:].masked_fill(~mask, 2.0)
    ordered = torch.cat([drawn.sort(-1).values, torch.full_like(drawn[..., :1], 2.0)], -1)
    kept = drawn < ordered.gather(-1, k.unsqueeze(-1))  # those of the k lowest numbers
    return torch.where((number % 2 == 1).unsqueeze(-1), mask & ~kept, kept) if paired else kept


def _choices(n: Tensor, k: Tensor) -> Tensor:
    """C(n,k)"""
    n, k = n.double(), k.double()
    return (torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)).exp()
