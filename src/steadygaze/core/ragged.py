"""Sequences of different lengths in one array without padding, and reductions over the sentences of texts.

Ragged           the layout: where each sequence starts
TokenArray       token ids, for numpy
RaggedTensor     a number for each token, for torch
TokenizedTexts   token ids with their character spans
segment_…        functions of padded texts and the sentence of each token, (B,T): 0 for the first sentence of a text,
                 −1 for a token without a sentence

    text      good beer   .   .   thin  !   (padding)
    ends       −     −    x   x    −    x
    number     0     0    0   0    1    1      −1

No tensor of batch × tokens × hidden × sentences is allocated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import kl
from steadygaze.core.maths.sentence_ends import sentence_numbers
from steadygaze.core.types import Span


class Ragged:
    """n sequences, concatenated to M entries; sequence i has the entries starts[i]:starts[i+1]."""

    __slots__ = ()
    starts: NDArray[np.int64]  # (n+1,)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(n,) number of entries of each sequence."""
        return np.diff(self.starts)

    def indices(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the entries of these sequences, in this order, as indices of the M entries."""
        starts = row_starts(self.lengths[rows])
        source: NDArray[np.int64] = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], np.diff(starts))
        return source

    def counts(self, flags: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the number of True entries of each sequence.  (M,) -> (n,)"""
        counts: NDArray[np.int64] = np.diff(row_starts(flags)[self.starts])
        return counts


@dataclass(frozen=True, slots=True)
class TokenArray(Ragged):
    """Concatenated token sequences."""

    ids: NDArray[np.int32]  # (N,)
    words: NDArray[np.bool_]  # (N,) True on tokens that attention may weight, False on special tokens
    starts: NDArray[np.int64]  # (n+1,) sequence i is ids[starts[i]:starts[i+1]]
    cut: NDArray[np.bool_]  # (n,) True if the text was truncated to max_length
    word_keys: Callable[[], Tensor] | None = None
    """(V,) long: a permanent number of each id; None: the ids are permanent."""

    def __post_init__(self) -> None:
        if self.ids.shape != self.words.shape or self.starts.shape != (len(self.cut) + 1,):
            shapes = {name: getattr(self, name).shape for name in ("ids", "words", "starts", "cut")}
            raise ValueError(f"TokenArray: inconsistent shapes: {shapes}")

    def __len__(self) -> int:
        return len(self.cut)

    @property
    def permanent_ids(self) -> NDArray[np.integer[Any]]:
        """(N,) the ids, or numbers of their words that do not depend on other texts."""
        return self.ids if self.word_keys is None else self.word_keys().numpy()[self.ids]

    def select(self, rows: NDArray[np.integer[Any]] | Sequence[int]) -> "TokenArray":
        """Return these sequences, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        source = self.indices(rows)
        starts = row_starts(self.lengths[rows])
        return TokenArray(self.ids[source], self.words[source], starts, self.cut[rows], self.word_keys)


@dataclass(frozen=True)
class RaggedTensor:
    """One number for each word of n texts, concatenated."""

    values: Tensor  # (M,)
    lengths: Tensor  # (n,) words of each text, at least 1; they sum to M

    @cached_property
    def text(self) -> Tensor:
        """(M,) the text of each word."""
        return torch.arange(len(self.lengths), device=self.lengths.device).repeat_interleave(self.lengths)

    @cached_property
    def position(self) -> Tensor:
        """(M,) position in the text, from 0."""
        starts = self.lengths.cumsum(0) - self.lengths
        return torch.arange(len(self.values), device=self.lengths.device) - starts[self.text]

    @property
    def text_length(self) -> Tensor:
        """(M,) number of words of the text."""
        return self.lengths[self.text]

    def sums(self, values: Tensor) -> Tensor:
        """Return the sums over the words of each text.  (M,) -> (n,)"""
        return values.new_zeros(len(self.lengths)).index_add(0, self.text, values)

    def normalize(self, values: Tensor) -> Tensor:
        """Normalize nonnegative values to sum 1 in each text; uniform if all are 0.  (M,) -> (M,)"""
        total = self.sums(values)[self.text]
        return torch.where(total > 0, values / total.clamp_min(torch.finfo(values.dtype).tiny), 1 / self.text_length)

    def jensen_shannon(self, other: Tensor) -> Tensor:
        """Return the JSD between the values and `other` in nats; both sum to 1 in each text.  (M,) -> (n,)"""
        p, q = self.values.unsqueeze(-1), other.unsqueeze(-1)
        m, each = (p + q) / 2, torch.ones_like(p, dtype=torch.bool)
        return (self.sums(kl(p, m, each) + kl(q, m, each)) / 2).clamp_min(0.0)

    def equal_texts(self, row: int, tolerance: float, *others: Tensor) -> Tensor:
        """Return True on texts equal to this row in values and `others`, within the tolerance.  -> (n,) bool"""
        same = self.lengths == self.lengths[row]
        columns = [column[same[self.text]].view(int(same.sum()), -1) for column in (self.values, *others)]
        first = int(same[:row].sum())
        near = torch.stack([(column - column[first]).abs().amax(-1) <= tolerance for column in columns]).all(0)
        return same.masked_scatter(same, near)


@dataclass(frozen=True, slots=True)
class TokenizedTexts:
    """Token sequences with the position of each token in its text; special tokens have none."""

    ragged: TokenArray
    spans: list[list[Span]]
    """Per text, per word token: characters [start, end) of the original text."""
    groups: list[Sequence[int]]
    """Per text, per word token: the index of its word; non-decreasing."""

    def __post_init__(self) -> None:
        if not len(self.ragged) == len(self.spans) == len(self.groups):
            raise ValueError(
                f"TokenizedTexts: {len(self.ragged)} texts, {len(self.spans)} spans, {len(self.groups)} groups"
            )

    @property
    def word_starts(self) -> NDArray[np.bool_]:
        """(N,) True on the first token of each word."""
        begins = np.zeros(len(self.ragged.ids), np.bool_)
        firsts = [np.diff(np.asarray(group, np.int64), prepend=-1) != 0 for group in self.groups]
        begins[self.ragged.words] = np.concatenate([np.zeros(0, np.bool_), *firsts])
        return begins


def row_starts(lengths: NDArray[np.int64] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the starts of concatenated sequences of these lengths, and the end of the last.  (n,) -> (n+1,)

    >>> row_starts(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def segment_ids(ids: Tensor, mask: Tensor, roles: Tensor, sentences: Tensor | None = None) -> Tensor:
    """Return the sentence of each token, −1 outside the mask.  roles (V,): the `SentenceRole` of each id.

    A run of tokens that end a sentence ends one.  sentences (B,T): the given sentences as in `Batch`, which replace
    those of the roles.  (B,T), (B,T), (V,) -> (B,T) long
    """
    numbers = sentence_numbers(roles[ids].long(), mask)
    if sentences is None:
        return numbers
    units = _renumbered(sentences.masked_fill(~mask, -1))  # words may have been removed
    return torch.where((units >= 0).any(-1, keepdim=True), units, numbers)


def _renumbered(numbers: Tensor) -> Tensor:
    """Number the sentences that have tokens from 0.  Sentences ascend; −1 stays.  (B,T) -> (B,T)

    >>> _renumbered(torch.tensor([[-1, 1, 1, 3, -1]])).tolist()
    [[-1, 0, 0, 1, -1]]
    """
    before = pad(numbers.cummax(-1).values[:, :-1], (1, 0), value=-1)
    return ((numbers > before).long().cumsum(-1) - 1).masked_fill(numbers < 0, -1)


def segment_count(numbers: Tensor) -> Tensor:
    """Return the number of sentences of each text.  (B,T) -> (B,)"""
    return numbers.amax(-1) + 1


def segment_exists(numbers: Tensor, sentences: int) -> Tensor:
    """Return True on sentences with a token.  `sentences`: at least the maximum number.  (B,T) -> (B,S) bool"""
    present = torch.zeros(len(numbers), sentences + 1, dtype=torch.bool, device=numbers.device)
    return present.scatter(1, _segment_slots(numbers, sentences), True)[:, :sentences]


def segment_max(values: Tensor, numbers: Tensor, sentences: int) -> Tensor:
    """Return the maximum over the tokens of each sentence; 0 without tokens.  (B,T,H), (B,T) -> (B,S,H)"""
    texts, hidden = len(values), values.shape[-1]
    firsts = torch.arange(texts, device=values.device).unsqueeze(-1) * (sentences + 1)
    slots = (firsts + _segment_slots(numbers, sentences)).view(-1, 1).expand(-1, hidden)
    empty = values.new_zeros(texts * (sentences + 1), hidden)
    # All sentences of the batch in one row: ten times as fast on a CPU as separate rows.
    maxima = empty.scatter_reduce(0, slots, values.reshape(-1, hidden), "amax", include_self=False)
    return maxima.view(texts, sentences + 1, hidden)[:, :sentences]


def segment_sum(values: Tensor, numbers: Tensor, sentences: int) -> Tensor:
    """Return the sum over the tokens of each sentence; 0 without tokens.  (B,T), (B,T) -> (B,S)"""
    empty = values.new_zeros(len(values), sentences + 1)
    return empty.scatter_add(1, _segment_slots(numbers, sentences), values)[:, :sentences]


def segment_spread(values: Tensor, numbers: Tensor) -> Tensor:
    """Copy a sentence's value to each of its tokens; 0 without a sentence.  (B,S), (B,T) -> (B,T)"""
    return values.gather(1, numbers.clamp_min(0)).masked_fill(numbers < 0, 0)


def _segment_slots(numbers: Tensor, sentences: int) -> Tensor:
    """Assign tokens without a sentence to an extra slot, which is discarded."""
    return torch.where(numbers < 0, sentences, numbers)
