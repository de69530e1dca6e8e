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

from steadygaze.models.encoders.unpadded import Rows

MAX_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Tokens per forward pass, padding included."""
STORED_TOKENS = {"cpu": 1 << 14, "cuda": 1 << 15}
"""Largest batch whose activations are stored for the backward pass; 32 texts of 512 tokens are 1 << 14."""
OVERLAP = 16
"""The default overlap is 1/16 of a window: the network reads at most 16/15 = 1.07 tokens per token of a text."""
BUCKETS = 4
"""Windows of one padded pass differ in length by less than 1/4 of the largest.  More passes of equal lengths cost more
on a GPU than padding."""

Network = Callable[[Tensor, Rows], Tensor]
"""Vectors (N,E) of the present tokens of rows -> hidden states (N,H)."""
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class WindowPass:
    """The windows of one forward pass: N present tokens, window after window."""

    rows: Rows
    tokens: Tensor  # (N,) as positions in the flat batch (B·T)
    first: Tensor  # (N,) the first column of the window whose state is used
    last: Tensor  # (N,) the last such column + 1

    def targets(self, unused: int) -> Tensor:
        """The tokens that have the states; `unused` for the others.  (N,)

        A GPU computes them after the network, and does not wait for the host before it.
        """
        is_used = (self.first <= self.rows.columns) & (self.rows.columns < self.last)
        return torch.where(is_used, self.tokens, unused)


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

    def encode(self, network: Network, vectors: Tensor, present: Tensor, buckets: int = BUCKETS) -> Tensor:
        """Hidden states of all tokens, 0 at absent ones, in passes of bounded size.  (B,T,E), (B,T) -> (B,T,H)

        For a gradient, a batch of more than STORED_TOKENS is computed again in the backward pass instead of stored.
        """
        flat, passes = vectors.flatten(0, 1), self.passes(present, buckets)

        def run(part: WindowPass) -> Tensor:
            return network(flat.index_select(0, part.tokens), part.rows)  # (N,H)

        tokens = sum(len(part.tokens) for part in passes)
        is_recomputed = torch.is_grad_enabled() and tokens > _limit(STORED_TOKENS, present)
        hidden: Tensor | None = None
        for part in passes:
            states: Tensor = checkpoint(run, part, use_reentrant=False) if is_recomputed else run(part)
            if hidden is None:
                hidden = states.new_zeros(present.numel() + 1, states.shape[-1])  # the last row is not used
            hidden.index_copy_(0, part.targets(present.numel()), states)
        assert hidden is not None, "a batch has at least one window"
        return hidden[:-1].view(*present.shape, -1)

    def passes(self, present: Tensor, buckets: int = BUCKETS) -> list[WindowPass]:
        """All windows of a batch, by length, in passes of at most MAX_TOKENS."""
        is_present = present.cpu().numpy()  # the only synchronization with a GPU, if texts have no gaps
        ends = present.shape[1] - is_present[:, ::-1].argmax(-1)  # special tokens are always present
        has_gaps = bool(ends.sum() > np.count_nonzero(is_present))
        windows = self.cut(ends)
        size = windows[2]
        bucket = (self.size - size) * buckets // self.size
        order = np.argsort(-size, kind="stable")
        passes = []
        while len(order):
            columns = self.before + int(size[order[0]]) + self.after
            rows = order[: max(1, _limit(MAX_TOKENS, present) // columns)]
            rows = rows[bucket[rows] == bucket[rows[0]]]
            passes.append(self._pass(windows[:, rows], columns, present, has_gaps))
            order = order[len(rows) :]
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
        start, stop = np.full_like(begin, -self.before), total + self.after
        middle = (begin[:-1] + size[:-1] + begin[1:]) // 2  # of the overlap of two neighbors
        is_same_text = number[1:] > 0
        np.copyto(start[1:], middle, where=is_same_text)
        np.copyto(stop[:-1], middle, where=is_same_text)
        return np.array([row, begin, size, start, stop, total])

    def _pass(self, windows: Integers, columns: int, present: Tensor, has_gaps: bool) -> WindowPass:
        row, begin, size, start, stop, total = windows  # (R,) each
        # A window has three runs of tokens that are neighbors in its text: special tokens, pieces, special tokens.
        runs = np.empty((5, len(row), 3), np.int64)
        shift, offset, first, last, length = runs  # (R,3) each
        length[:] = self.before, 0, self.after
        length[:, 1] = size
        end = length.cumsum().reshape(length.shape)  # in the sequence of all windows
        shift[:] = (present.shape[1] * row)[:, None] - end + length
        shift[:, 1] += self.before + begin
        shift[:, 2] += self.before + total
        offset[:] = (end - length)[:, :1]
        first[:] = (self.before + start - begin)[:, None]
        last[:] = (self.before + stop - begin)[:, None]
        offsets = np.empty(len(row) + 1, np.int32)
        offsets[0], offsets[1:] = 0, end[:, -1]
        return _expand(runs.reshape(5, -1), offsets, columns, present, has_gaps)


def _expand(runs: Integers, offsets: NDArray[np.int32], columns: int, present: Tensor, has_gaps: bool) -> WindowPass:
    """The tokens of runs, computed on the device."""
    values, limits = (torch.from_numpy(array).to(present.device) for array in (runs, offsets))
    index = torch.arange(int(offsets[-1]), device=present.device)
    shift, offset, first, last = values[:4].repeat_interleave(values[4], 1, output_size=len(index))  # (N,) each
    tokens, column = index + shift, index - offset
    if not has_gaps:
        is_full = len(index) == columns * (len(offsets) - 1)
        return WindowPass(Rows(column, limits, columns, is_full), tokens, first, last)
    kept = present.flatten()[tokens].nonzero().squeeze(-1)
    limits = torch.searchsorted(kept, limits, out_int32=True)
    return WindowPass(Rows(column[kept], limits, columns, False), tokens[kept], first[kept], last[kept])


def default_stride(size: int) -> int:
    """Windows that overlap by 1/OVERLAP."""
    return size - size // OVERLAP


def _limit(limits: dict[str, int], tensor: Tensor) -> int:
    """The limit of the tensor's device."""
    return limits.get(tensor.device.type, limits["cpu"])
