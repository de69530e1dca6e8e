"""A transformer over texts of any length: windows that overlap by half, each token's state from the one it is most
central to.

    window w covers the places [w·W/2, w·W/2 + W)          W = `WIDTH`
    token t is read in window ⌊(t − W/4) / (W/2)⌋, and never one below 0: a quarter of W on either side is context

Which window a token is read in depends on its place alone, so that how far a batch is padded changes nothing.  Windows
that hold nothing are not read.
"""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.types import Encoded
from steadygaze.models.encoders.transformer import Transformer
from steadygaze.models.encoders.word_encoders import Encoder

WIDTH = 256


class Windows(Encoder):
    allows_gaps: ClassVar[bool] = True

    def __init__(self, inner: Transformer) -> None:
        super().__init__()
        self.inner = inner
        self.size = inner.size

    @property
    def vectors(self) -> Tensor:
        return self.inner.vectors

    def embed(self, ids: Tensor) -> Tensor:
        return self.inner.embed(ids)

    def forward(
        self, embedded: Tensor, present: Tensor, asked: Tensor | None = None, question_present: Tensor | None = None
    ) -> Encoded:
        places = torch.arange(embedded.shape[1], device=embedded.device)
        window = (places - WIDTH // 4).div(WIDTH // 2, rounding_mode="floor").clamp_min(0)  # (T,)
        many = max(0, (len(places) - 1 - WIDTH // 4) // (WIDTH // 2)) + 1
        vectors, real = _windows(embedded, many), _windows(present.unsqueeze(-1), many).squeeze(-1)
        rows = real.any(-1).nonzero().squeeze(-1)
        read = self.inner(vectors[rows], real[rows]).hidden
        states = read.new_zeros(*real.shape, self.size).index_copy(0, rows, read)  # (B·many,W,H)
        states = states.view(len(embedded), many * WIDTH, self.size)
        return Encoded(states[:, window * WIDTH + places - window * (WIDTH // 2)])


def _windows(values: Tensor, many: int) -> Tensor:
    """(B,T,E) -> (B·many,W,E)"""
    length = (many - 1) * (WIDTH // 2) + WIDTH
    padded = pad(values, (0, 0, 0, max(0, length - values.shape[1])))[:, :length]
    return padded.unfold(1, WIDTH, WIDTH // 2).transpose(-1, -2).flatten(0, 1)
