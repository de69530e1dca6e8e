"""Laid: a number for every word of many texts, end to end.  One long text among short ones costs what it is long."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from steadygaze.maths.divergence import kl


@dataclass(frozen=True)
class Laid:
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
