"""Overlapping windows, so that a transformer reads texts of any length.

A text of n pieces is cut into W windows of s ≤ `size` pieces.  Two neighbors overlap by at least o = size − stride:

    W = ⌈max(n − size, 0) / stride⌉ + 1        s = ⌈(n + (W − 1)·o) / W⌉        window w begins at ⌊w·(n − s) / (W − 1)⌋

Every window has the special tokens of the text, such as [CLS] and [SEP], and its own positions.  The state of a token
is that of the window with the most context on both sides: the middle of an overlap divides two windows.  The special
tokens have the states of the first and of the last window.  Windows depend on the length of their own text alone, not
on the batch or its padding.

The network reads (n + (W − 1)·o) / n pieces per piece of a text, for long texts size / stride.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.checkpoint import checkpoint

MAX_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Tokens per forward pass, padding included."""
STORED_TOKENS = {"cpu": 1 << 14, "cuda": 1 << 15}
"""Largest batch whose activations are stored for the backward pass; 32 texts of 512 tokens are 1 << 14."""
OVERLAP = 16
"""The default overlap is 1/16 of a window: the network reads at most 16/15 = 1.07 tokens per token of a text."""
BUCKETS = 4
"""Windows of one padded pass differ in length by less than 1/4 of the largest.  More passes of equal lengths cost more
on a GPU than padding."""

Network = Callable[[Tensor, Tensor], Tensor]
"""Vectors (R,W,E) and present tokens (R,W) -> hidden states (R,W,H), 0 at absent tokens."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class WindowPass:
    """The windows of one forward pass, as positions in the flat batch (B·T)."""

    tokens: Tensor  # (R,W) the token in each column
    exists: Tensor  # (R,W) False: padding
    targets: Tensor  # (R,W) the token that has the state; B·T: the state is not used
    is_padded: bool


@dataclass(frozen=True)
class Windows:
    size: int
    """Most pieces per window, without special tokens."""
    stride: int
    """Most pieces between the beginnings of two windows."""
    before: int
    """Special tokens before a text."""
    after: int
    """Special tokens after a text."""

    @property
    def width(self) -> int:
        """Tokens of the largest window, with special tokens."""
        return self.before + self.size + self.after

    def encode(self, network: Network, vectors: Tensor, present: Tensor, unpadded: Network | None = None) -> Tensor:
        """Hidden states of all tokens, in passes of bounded size.  (B,T,E), (B,T) -> (B,T,H)

        `unpadded`: the same network for passes with padding, if its cost does not depend on padding.
        For a gradient, a batch of more than STORED_TOKENS is computed again in the backward pass instead of stored.
        """
        flat, is_present = vectors.flatten(0, 1), present.flatten()
        passes = self.passes(present, BUCKETS if unpadded is None else 1)

        def run(part: WindowPass) -> Tensor:
            inputs = flat.index_select(0, part.tokens.flatten()).view(*part.tokens.shape, -1)
            read = unpadded if unpadded is not None and part.is_padded else network
            return read(inputs, part.exists & is_present[part.tokens]).flatten(0, 1)  # (R·W,H)

        tokens = sum(part.tokens.numel() for part in passes)
        is_recomputed = torch.is_grad_enabled() and tokens > _limit(STORED_TOKENS, present)
        hidden: Tensor | None = None
        for part in passes:
            states: Tensor = checkpoint(run, part, use_reentrant=False) if is_recomputed else run(part)
            if hidden is None:
                hidden = states.new_zeros(present.numel() + 1, states.shape[-1])  # the last row is not used
            hidden.index_copy_(0, part.targets.flatten(), states)
        assert hidden is not None, "a batch has at least one window"
        return hidden[:-1].view(*present.shape, -1)

    def passes(self, present: Tensor, buckets: int = BUCKETS) -> list[WindowPass]:
        """All windows of a batch, by length, in passes of at most MAX_TOKENS."""
        positions = torch.arange(1, present.shape[1] + 1, device=present.device)
        ends: Integers = (positions * present).amax(-1).cpu().numpy()  # special tokens are always present
        windows = self.cut(ends)
        size = windows[2]
        order = np.argsort(-size, kind="stable")
        bucket = (self.size - size[order]) * buckets // self.size
        passes = []
        for rows in np.split(order, np.flatnonzero(np.diff(bucket)) + 1):
            while len(rows):
                columns = self.before + int(size[rows[0]]) + self.after
                most = max(1, _limit(MAX_TOKENS, present) // columns)
                passes.append(self._pass(windows[:, rows[:most]], columns, present))
                rows = rows[most:]
        return passes

    def cut(self, ends: Integers) -> Integers:
        """Windows of texts of these lengths, with special tokens.  (B,) -> (6,R)

        Rows: text, first piece, number of pieces, first and last + 1 piece whose state is used, pieces of the text.
        Special tokens count as pieces before 0 and after the last.
        """
        pieces = np.maximum(ends - self.before - self.after, 0)
        counts = 1 + -(-np.maximum(pieces - self.size, 0) // self.stride)
        sizes = -(-(pieces + (counts - 1) * (self.size - self.stride)) // counts)
        row = np.repeat(np.arange(len(ends)), counts)
        number = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
        count, size, total = counts[row], sizes[row], pieces[row]
        begin = number * (total - size) // np.maximum(count - 1, 1)
        middle = (begin + size + np.roll(begin, -1)) // 2  # of the overlap with the next window
        stop = np.where(number == count - 1, total + self.after, middle)
        start = np.where(number == 0, -self.before, np.roll(stop, 1))
        return np.stack([row, begin, size, start, stop, total])

    def _pass(self, windows: Integers, columns: int, present: Tensor) -> WindowPass:
        is_padded = bool((windows[2] < columns - self.before - self.after).any())  # known without the GPU
        row, begin, size, start, stop, total = torch.from_numpy(windows).to(present.device).unsqueeze(-1)  # (R,1) each
        column = torch.arange(-self.before, columns - self.before, device=present.device)  # from 0 on: pieces
        last = column - size  # from 0 on: the special tokens after the text
        piece = torch.where(last >= 0, total + last, torch.where(column >= 0, begin + column, column))
        exists, position = last < self.after, begin + column
        tokens = row * present.shape[1] + self.before + torch.where(exists, piece, 0)
        is_used = exists & (start <= position) & (position < stop)
        return WindowPass(tokens, exists, torch.where(is_used, tokens, present.numel()), is_padded)


def default_stride(size: int) -> int:
    """Windows that overlap by 1/OVERLAP."""
    return size - size // OVERLAP


def _limit(limits: dict[str, int], tensor: Tensor) -> int:
    """The limit of the tensor's device."""
    return limits.get(tensor.device.type, limits["cpu"])
