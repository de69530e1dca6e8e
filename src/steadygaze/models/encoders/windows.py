"""Overlapping windows, so that a transformer reads texts of any length.

A text of n pieces is cut into windows of `size` pieces that begin every `stride` pieces, up to its end:

    window w = pieces [w·stride, min(w·stride + size, n)),    w = 0, …, ⌈max(n − size, 0) / stride⌉

Every window has the special tokens of the text, such as [CLS] and [SEP], and its own positions.  The state of a token
is the mean over its windows.  Windows depend on the length of their own text alone, not on the batch or its padding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

MAX_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Tokens per forward pass, padding included."""
STORED_TOKENS = {"cpu": 1 << 14, "cuda": 1 << 15}
"""Largest batch whose activations are stored for the backward pass; 32 texts of 512 tokens are 1 << 14."""
OVERLAP = 8
"""The default overlap is 1/8 of a window: 8/7 = 1.14 forward passes per piece."""

Network = Callable[[Tensor, Tensor], Tensor]
"""Vectors (R,W,E) and present tokens (R,W) -> hidden states (R,W,H), 0 at absent tokens."""


@dataclass(frozen=True)
class Windows:
    size: int
    """Pieces per window, without special tokens."""
    stride: int
    """Pieces between the beginnings of two windows."""
    before: int
    """Special tokens before a text."""
    after: int
    """Special tokens after a text."""

    @property
    def width(self) -> int:
        """Tokens of a full window, with special tokens."""
        return self.before + self.size + self.after

    def encode(self, network: Network, vectors: Tensor, present: Tensor) -> Tensor:
        """Mean hidden states over the windows, in passes of bounded size.  (B,T,E), (B,T) -> (B,T,H)

        For a gradient, a batch of more than STORED_TOKENS is computed again in the backward pass instead of stored.
        """
        batch, length = present.shape
        flat, is_present = vectors.flatten(0, 1), present.flatten()
        total = vectors.new_zeros(0)
        count = torch.zeros(batch * length, dtype=torch.long, device=present.device)
        passes = list(self._passes(present))
        recomputed = torch.is_grad_enabled() and sum(real.numel() for _, real in passes) > _limit(
            STORED_TOKENS, present
        )
        for tokens, real in passes:
            inputs = flat[tokens], real & is_present[tokens]
            states: Tensor = checkpoint(network, *inputs, use_reentrant=False) if recomputed else network(*inputs)
            total = total if len(total) else states.new_zeros(batch * length, states.shape[-1])
            total.index_add_(0, tokens[real], states[real])
            count += torch.bincount(tokens[real], minlength=batch * length)
        return (total / count.clamp_min(1).unsqueeze(-1)).view(batch, length, -1)

    def _passes(self, present: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Token of the flat batch at each position of the windows of one pass, and whether it exists.  (R,W), (R,W)"""
        length = present.shape[1]
        row, begin, size, end = self._cut(present)
        order = size.argsort(descending=True, stable=True)
        most = max(1, _limit(MAX_TOKENS, present) // self.width)
        full = int((size == self.size).sum())  # in passes of their own: without padding the network is faster
        bounds = [*range(0, full, most), *range(full, len(order), most), len(order)]
        for start, stop in pairwise(bounds):
            group = order[start:stop]
            pieces = size[group].unsqueeze(-1)  # (R,1)
            column = torch.arange(max(1, self.before + int(pieces.max()) + self.after), device=present.device)
            last = column - self.before - pieces  # from 0 on: the special tokens after the text
            inner = column + (begin[group].unsqueeze(-1) * (column >= self.before))
            position = torch.where(last < 0, inner, end[group].unsqueeze(-1) + last)
            real = last < self.after
            yield row[group].unsqueeze(-1) * length + position.clamp(0, length - 1), real

    def _cut(self, present: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Row, first piece and number of pieces of each window, and the end of its text's pieces.  (R,) each"""
        positions = torch.arange(1, present.shape[1] + 1, device=present.device)
        end = ((positions * present).amax(-1) - self.after).clamp_min(self.before)  # special tokens are always present
        pieces = end - self.before
        counts = (pieces - self.size).clamp_min(0).add(self.stride - 1).div(self.stride, rounding_mode="floor") + 1
        row = torch.arange(len(present), device=present.device).repeat_interleave(counts)
        number = torch.arange(len(row), device=present.device) - (counts.cumsum(0) - counts)[row]
        begin = number * self.stride
        return row, begin, (pieces[row] - begin).clamp(max=self.size), end[row]


def _limit(limits: dict[str, int], tensor: Tensor) -> int:
    """The limit of the tensor's device."""
    return limits.get(tensor.device.type, limits["cpu"])
