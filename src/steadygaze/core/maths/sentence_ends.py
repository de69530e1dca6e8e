"""The sentence of each token, from the role of every token.

    .      ends a sentence, except after an abbreviation (Dr.), an initial (J.) or a number that begins a sentence (3.),
           between such as "No." and a number, and before the last part of a host or file name (.com)
    ! ? …  always end one, and so do the signs of other scripts
    ”      and other closing marks after an end belong to the sentence.  Every second straight quotation mark closes,
           counted from the last one after a number, which closes a quotation or is an inch mark (5'9")
    “      closes after „

Roles depend on the vocabulary alone, so that the sentences of a changed text follow from its ids.  The roles of a token
and of the two before it determine whether a sentence begins there, except for numbers and closing marks.
"""

from enum import IntEnum
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import pad


class SentenceRole(IntEnum):
    OTHER = 0
    END = 1
    FULL_STOP = 2
    ABBREVIATION = 3
    NUMBERED = 4
    """An abbreviation only before a number: "no", "fig"."""
    NUMBER = 5
    SUFFIX = 6
    """The last part of a host or file name: "com"."""
    CLOSING = 7
    QUOTE = 8
    """A straight quotation mark."""
    END_QUOTE = 9
    """An end and a straight quotation mark in one token."""
    LOW_QUOTE = 10
    """„"""
    LEFT_QUOTE = 11
    """“, which closes after „ and opens otherwise."""


def can_end(roles: Tensor) -> Tensor:
    """Return True on roles of tokens that can end a sentence."""
    return (roles == SentenceRole.END) | (roles == SentenceRole.FULL_STOP) | (roles == SentenceRole.END_QUOTE)


def sentence_numbers(roles: Tensor, mask: Tensor) -> Tensor:
    """Return the sentence of each token, from 0; −1 outside the mask.  (B,T), (B,T) -> (B,T) long"""
    real = torch.where(mask, torch.arange(1, mask.shape[-1] + 1, device=mask.device), 0).cummax(-1).values
    last = pad(real[:, :-1], (1, 0))  # (B,T) the preceding real token, from 1; 0 without one
    second = pad(last, (1, 0)).gather(1, last)  # and the one before it
    padded = pad(roles, (1, 0))
    before = padded.gather(1, last)
    triple = torch.add(torch.add(roles, before, alpha=SIZE), padded.gather(1, second), alpha=SIZE * SIZE)
    begins = _begins(roles.device)[triple] & mask
    numbers = roles == SentenceRole.NUMBER
    if numbers.any():  # a full stop after a number that begins a sentence
        first = numbers & (begins | (last == 0))
        begins &= ~((before == SentenceRole.FULL_STOP) & pad(first, (1, 0)).gather(1, second))
    sentence = begins.long().cumsum(-1)
    closing = ((roles == SentenceRole.CLOSING) | _closing_quotes(roles, before, mask)) & mask
    if closing.any():  # each closing mark after an end, as in: (“So it was!”)
        moved = begins & closing
        for _ in range(MOST_CLOSING):
            moved |= closing & pad(moved, (1, 0)).gather(1, last)
        sentence -= moved.long()
    return sentence.masked_fill(~mask, -1)


def _closing_quotes(roles: Tensor, before: Tensor, mask: Tensor) -> Tensor:
    """Return True on straight quotation marks that close, and on “ after „."""
    quotes = roles == SentenceRole.QUOTE
    count = ((quotes | (roles == SentenceRole.END_QUOTE)) & mask).cumsum(-1)
    after_number = quotes & mask & (before == SentenceRole.NUMBER)
    since = count - torch.where(after_number, count, 0).cummax(-1).values
    low, left = (roles == SentenceRole.LOW_QUOTE) & mask, (roles == SentenceRole.LEFT_QUOTE) & mask
    order = 2 * torch.arange(1, roles.shape[-1] + 1, device=roles.device) + low
    opened = pad(torch.where(low | left, order, 0).cummax(-1).values[:, :-1], (1, 0)) % 2 == 1  # the last one is „
    return (quotes & (since % 2 == 0)) | (left & opened)


SIZE = len(SentenceRole)
MOST_CLOSING = 3


@cache
def _begins(device: torch.device) -> Tensor:
    """Return True where a sentence begins, by role + SIZE · role before + SIZE² · role before that."""
    role = torch.arange(SIZE, device=device)
    second, before, role = (role.view(shape) for shape in ((-1, 1, 1), (-1, 1), (-1,)))
    ended = (
        (before == SentenceRole.END)
        | (before == SentenceRole.END_QUOTE)
        | (
            (before == SentenceRole.FULL_STOP)
            & (second != SentenceRole.ABBREVIATION)
            & (role != SentenceRole.SUFFIX)
            & ~((second == SentenceRole.NUMBERED) & (role == SentenceRole.NUMBER))
        )
    )
    return (ended & ~can_end(role)).flatten()
