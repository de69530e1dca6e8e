"""Reductions over the sentences of texts.

The sentence of each token is a number, (B,T): 0 for the first sentence of a text, −1 for a token without a sentence.

    text      good beer   .   .   thin  !   (padding)
    ends       −     −    x   x    −    x
    number     0     0    0   0    1    1      −1

No tensor of batch × tokens × hidden × sentences is allocated.
"""

import torch
from torch import Tensor


def segment_ids(ids: Tensor, mask: Tensor, ends: Tensor) -> Tensor:
    """Return the sentence of each token, −1 outside the mask.  ends (V,): ids that end one; a run of them ends one.

    (B,T), (B,T), (V,) -> (B,T) long
    """
    ended = ends[ids] & mask
    begins = mask & ~ended & _before(ended, mask)
    return begins.long().cumsum(-1).masked_fill(~mask, -1)


def count(numbers: Tensor) -> Tensor:
    """Return the number of sentences of each text.  (B,T) -> (B,)"""
    return numbers.amax(-1) + 1


def exists(numbers: Tensor, sentences: int) -> Tensor:
    """Return True on sentences with a token.  `sentences`: at least the maximum number.  (B,T) -> (B,S) bool"""
    present = torch.zeros(len(numbers), sentences + 1, dtype=torch.bool, device=numbers.device)
    return present.scatter(1, _slots(numbers, sentences), True)[:, :sentences]


def amax(values: Tensor, numbers: Tensor, sentences: int) -> Tensor:
    """Return the maximum over the tokens of each sentence; 0 without tokens.  (B,T,H), (B,T) -> (B,S,H)"""
    texts, hidden = len(values), values.shape[-1]
    firsts = torch.arange(texts, device=values.device).unsqueeze(-1) * (sentences + 1)
    slots = (firsts + _slots(numbers, sentences)).view(-1, 1).expand(-1, hidden)
    empty = values.new_zeros(texts * (sentences + 1), hidden)
    # All sentences of the batch in one row: ten times as fast on a CPU as separate rows.
    maxima = empty.scatter_reduce(0, slots, values.reshape(-1, hidden), "amax", include_self=False)
    return maxima.view(texts, sentences + 1, hidden)[:, :sentences]


def total(values: Tensor, numbers: Tensor, sentences: int) -> Tensor:
    """Return the sum over the tokens of each sentence; 0 without tokens.  (B,T), (B,T) -> (B,S)"""
    empty = values.new_zeros(len(values), sentences + 1)
    return empty.scatter_add(1, _slots(numbers, sentences), values)[:, :sentences]


def spread(values: Tensor, numbers: Tensor) -> Tensor:
    """Copy a sentence's value to each of its tokens; 0 without a sentence.  (B,S), (B,T) -> (B,T)"""
    return values.gather(1, numbers.clamp_min(0)).masked_fill(numbers < 0, 0)


def _slots(numbers: Tensor, sentences: int) -> Tensor:
    """Assign tokens without a sentence to an extra slot, which is discarded."""
    return torch.where(numbers < 0, sentences, numbers)


def _before(ended: Tensor, mask: Tensor) -> Tensor:
    """Return True if the preceding real token ends a sentence.  (B,T), (B,T) -> (B,T) bool"""
    positions = torch.arange(mask.shape[-1], device=mask.device).expand_as(mask)
    last = torch.where(mask, positions, -1).cummax(-1).values.roll(1, -1).masked_fill(positions == 0, -1)
    return ended.gather(1, last.clamp_min(0))  # the first token has no predecessor
