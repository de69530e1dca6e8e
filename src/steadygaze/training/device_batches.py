"""A split on the device, and batches of it with a fixed width, without a copy from the host.

A CUDA graph repeats the same kernels on the same addresses.  A batch is therefore gathered on the device, from the
numbers of its rows, and padded to one of a few widths.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.ragged import TokenArray
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data


def padded_width(longest: int) -> int:
    """Return one of a few widths that holds a text: a multiple of 4, and at most an eighth more from 32 tokens on.

    >>> [padded_width(longest) for longest in (1, 21, 33, 65, 130, 500)]
    [4, 24, 36, 72, 144, 512]
    """
    step = max(4, 1 << (longest // 8).bit_length() >> 1)
    return -(-longest // step) * step


class DeviceTexts:
    def __init__(self, texts: TokenArray, device: torch.device) -> None:
        self.ids, self.words = (torch.from_numpy(values).to(device) for values in (texts.ids, texts.words))
        self.starts, self.lengths = (
            torch.from_numpy(np.ascontiguousarray(values)).to(device) for values in (texts.starts[:-1], texts.lengths)
        )

    def pad(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return ids with 0 at padding, present and mask.  (N,) -> (N,width) each"""
        positions = torch.arange(width, device=rows.device)
        present = positions < self.lengths[rows].unsqueeze(1)
        tokens = (self.starts[rows].unsqueeze(1) + positions).masked_fill(~present, 0)
        return self.ids[tokens].long().masked_fill(~present, 0), present, self.words[tokens] & present


class DeviceData:
    """A labeled split on the device."""

    def __init__(self, data: Data, device: torch.device) -> None:
        self.text = DeviceTexts(data.text, device)
        self.question = None if data.question is None else DeviceTexts(data.question, device)
        self.label, self.weight = (
            None if values is None else torch.from_numpy(values).to(device) for values in (data.label, data.weight)
        )
        self._lengths = [part.lengths for part in (data.text, data.question) if part is not None]

    def widths(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        """Return the widths of text and question of a batch."""
        return tuple(padded_width(int(lengths[rows].max(initial=1))) for lengths in self._lengths)

    def batch(self, rows: Tensor, widths: Sequence[int]) -> Batch:
        """Return some rows, padded to these widths.  (N,)"""
        ids, present, mask = self.text.pad(rows, widths[0])
        question = (None,) * 3 if self.question is None else self.question.pad(rows, widths[1])
        return Batch(
            ids=ids,
            present=present,
            mask=mask,
            index=rows,
            label=None if self.label is None else self.label[rows],
            weight=None if self.weight is None else self.weight[rows],
            question_ids=question[0],
            question_present=question[1],
            question_mask=question[2],
        )
