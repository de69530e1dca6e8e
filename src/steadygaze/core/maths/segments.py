"""Reductions over the sentences of texts, of which each text has its own number.

The sentence of each token is a number, (B,T): 0 for the first sentence of a text, −1 where a token belongs to none.

    text      good beer   .   .   thin  !   (padding)
    ends       −     −    x   x    −    x
    number     0     0    0   0    1    1      −1

Nothing larger than what goes in or comes out is ever made: no batch × tokens × hidden × sentences.

Laid: a number for every word of many texts, end to end.  One long text among short ones costs what it is long.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from steadygaze.core.maths.divergence import kl


@dataclass(frozen=True)
class RaggedWeights:
    values: Tensor  # (M,)
    words: Tensor  # (N,) how many of them each text has, one or more; they sum to M

    @cached_property
    def text(self) -> Tensor:
        """(M,) whose each is."""
        return torch.arange(len(self.words), device=self.words.device).repeat_interleave(self.words)

    @cached_property
    def place(self) -> Tensor:
        """(M,) counted from the first word of the text, which has 0."""
        starts = self.words.cumsum(0) - self.words
        return torch.arange(len(self.values), device=self.words.device) - starts[self.text]

    @property
    def many(self) -> Tensor:
        """(M,) how many words the text has."""
        return self.words[self.text]

    def sums(self, values: Tensor) -> Tensor:
        """Over the words of each text.  (M,) -> (N,)"""
        return values.new_zeros(len(self.words)).index_add(0, self.text, values)

    def shares(self, values: Tensor) -> Tensor:
        """So that they sum to one in each text; even where all are 0.  (M,), none below 0 -> (M,)"""
        total = self.sums(values)[self.text]
        return torch.where(total > 0, values / total.clamp_min(torch.finfo(values.dtype).tiny), 1 / self.many)

    def apart(self, other: Tensor) -> Tensor:
        """Jensen-Shannon between the values and these, in nats; both sum to one in each text.  (M,) -> (N,)"""
        p, q = self.values.unsqueeze(-1), other.unsqueeze(-1)
        m, each = (p + q) / 2, torch.ones_like(p, dtype=torch.bool)
        return (self.sums(kl(p, m, each) + kl(q, m, each)) / 2).clamp_min(0.0)

    def alike(self, row: int, within: float, *others: Tensor) -> Tensor:
        """Texts with the words of this one in all of these, and its values but for so much.  (M,) each -> (N,) bool"""
        same = self.words == self.words[row]
        columns = [column[same[self.text]].view(int(same.sum()), -1) for column in (self.values, *others)]
        first = int(same[:row].sum())
        near = torch.stack([(column - column[first]).abs().amax(-1) <= within for column in columns]).all(0)
        return same.masked_scatter(same, near)


def segment_ids(ids: Tensor, mask: Tensor, ends: Tensor) -> Tensor:
    """The sentence of each token, −1 outside the mask.  ends (V,): ids that end one; a run of them ends one, not many.

    (B,T), (B,T), (V,) -> (B,T) long
    """
    ended = ends[ids] & mask
    begins = mask & ~ended & _before(ended, mask)
    return begins.long().cumsum(-1).masked_fill(~mask, -1)


def count(numbers: Tensor) -> Tensor:
    """How many sentences each text has.  (B,T) -> (B,)"""
    return numbers.amax(-1) + 1


def exists(numbers: Tensor, sentences: int) -> Tensor:
    """True on a sentence that has a token.  `sentences`: at least as many as any text has.  (B,T) -> (B,S) bool"""
    found = torch.zeros(len(numbers), sentences + 1, dtype=torch.bool, device=numbers.device)
    return found.scatter(1, _slots(numbers, sentences), True)[:, :sentences]


def amax(values: Tensor, numbers: Tensor, sentences: int) -> Tensor:
    """The largest over the tokens of each sentence; 0 where it has none.  (B,T,H), (B,T) -> (B,S,H)"""
    texts, hidden = len(values), values.shape[-1]
    firsts = torch.arange(texts, device=values.device).unsqueeze(-1) * (sentences + 1)
    slots = (firsts + _slots(numbers, sentences)).view(-1, 1).expand(-1, hidden)
    empty = values.new_zeros(texts * (sentences + 1), hidden)
    # All sentences of the batch in one row: over rows of their own the same costs ten times as much on a CPU.
    found = empty.scatter_reduce(0, slots, values.reshape(-1, hidden), "amax", include_self=False)
    return found.view(texts, sentences + 1, hidden)[:, :sentences]


def total(values: Tensor, numbers: Tensor, sentences: int) -> Tensor:
    """The sum over the tokens of each sentence; 0 where it has none.  (B,T), (B,T) -> (B,S)"""
    empty = values.new_zeros(len(values), sentences + 1)
    return empty.scatter_add(1, _slots(numbers, sentences), values)[:, :sentences]


def spread(values: Tensor, numbers: Tensor) -> Tensor:
    """What its sentence has, to each token; 0 to one that belongs to none.  (B,S), (B,T) -> (B,T)"""
    return values.gather(1, numbers.clamp_min(0)).masked_fill(numbers < 0, 0)


def _slots(numbers: Tensor, sentences: int) -> Tensor:
    """What belongs to no sentence goes to one more, which nobody looks at."""
    return torch.where(numbers < 0, sentences, numbers)


def _before(ended: Tensor, mask: Tensor) -> Tensor:
    """Whether the token of the mask before each has ended a sentence.  (B,T), (B,T) -> (B,T) bool"""
    places = torch.arange(mask.shape[-1], device=mask.device).expand_as(mask)
    last = torch.where(mask, places, -1).cummax(-1).values.roll(1, -1).masked_fill(places == 0, -1)
    return ended.gather(1, last.clamp_min(0))  # before the first there is none: that place has ended none, or is itself
