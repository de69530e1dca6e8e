"""Reductions over the sentences of texts, of which each text has its own number.

The sentence of each token is a number, (B,T): 0 for the first sentence of a text, −1 where a token belongs to none.

    text      good beer   .   .   thin  !   (padding)
    ends       −     −    x   x    −    x
    number     0     0    0   0    1    1      −1

Nothing larger than what goes in or comes out is ever made: no batch × tokens × hidden × sentences.
"""

import torch
from torch import Tensor


def numbers(ids: Tensor, mask: Tensor, ends: Tensor) -> Tensor:
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
