"""A convolutional tower: kernels of widths 1, 3, 5 and 7 side by side, ReLU.  Summary: maximum over the text."""

import torch
from torch import Tensor, nn

from steadygaze.maths import masked

WIDTHS = (1, 3, 5, 7)


class Convolutional(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H), (B,H).  H = 2·hidden, as the bidirectional towers have."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.size = 2 * hidden
        shares = [self.size // len(WIDTHS) + (i < self.size % len(WIDTHS)) for i in range(len(WIDTHS))]
        self.kernels = nn.ModuleList(
            nn.Conv1d(dimension, share, width, padding="same") for share, width in zip(shares, WIDTHS, strict=True)
        )

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        channels = (embedded * present.unsqueeze(-1)).transpose(1, 2)  # (B,E,T); padding must look like the edge: zero
        hidden = torch.cat([kernel(channels) for kernel in self.kernels], 1).transpose(1, 2).relu()
        hidden = hidden * present.unsqueeze(-1)
        return hidden, masked.maximum(hidden, present)
