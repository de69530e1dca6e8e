"""A tower without context: one linear layer and a ReLU per word.  Summary: the mean over the text.

A word's hidden state depends on that word alone, so its attention is a statement about that word alone.

A convolutional tower: kernels of widths 1, 3, 5 and 7 side by side, ReLU.  Summary: maximum over the text.

Recurrent towers: RNN (tanh), GRU, LSTM, read in one direction or in both.

The backward direction reads each text reversed *within its own length*, so padding comes last in both directions and
neither needs packing: about twice as fast to train on a CPU as a packed sequence (bench/recurrent.py), and equal to it
(tests/encode/test_rnn.py).
"""

import torch
from torch import Tensor, nn

from steadygaze.core.maths import masked


class Average(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H), (B,H).  H = 2·hidden, as the bidirectional towers have."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.size = 2 * hidden
        self.project = nn.Linear(dimension, self.size)

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.project(embedded).relu() * present.unsqueeze(-1)
        return hidden, masked.mean(hidden, present)


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


CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H) hidden states and (B,H) last states.  H = hidden, or twice that in both directions."""

    def __init__(self, cell: str, dimension: int, hidden: int, both: bool) -> None:
        super().__init__()
        self.forwards = CELLS[cell](dimension, hidden, batch_first=True)
        self.backwards = CELLS[cell](dimension, hidden, batch_first=True) if both else None
        self.size = hidden * (2 if both else 1)

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        last = present.sum(-1, keepdim=True).sub(1).clamp_min(0)  # (B,1)
        real = present.unsqueeze(-1)
        hidden = self.forwards(embedded)[0] * real
        states = _take(hidden, last)
        if self.backwards is not None:
            turned = _reversal(present)
            backwards = self.backwards(_take(embedded, turned))[0] * real
            states = torch.cat([states, _take(backwards, last)], -1)
            hidden = torch.cat([hidden, _take(backwards, turned)], -1)
        return hidden, states.squeeze(1)


def _reversal(present: Tensor) -> Tensor:
    """For each place the place it changes with when the real tokens are reversed; padding stays.  (B,T) -> (B,T)"""
    place = torch.arange(present.shape[1], device=present.device).expand_as(present)
    return torch.where(present, present.sum(-1, keepdim=True) - 1 - place, place)


def _take(values: Tensor, places: Tensor) -> Tensor:
    """(B,T,H), (B,K) -> (B,K,H)"""
    return values.gather(1, places.unsqueeze(-1).expand(-1, -1, values.shape[-1]))
