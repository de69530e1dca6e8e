"""A tower without context: one linear layer and a ReLU per word.  Summary: the mean over the text.

A word's hidden state depends on that word alone, so its attention is a statement about that word alone.
"""

from torch import Tensor, nn

from steadygaze.maths import masked


class Average(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H), (B,H).  H = 2·hidden, as the bidirectional towers have."""

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.size = 2 * hidden
        self.project = nn.Linear(dimension, self.size)

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.project(embedded).relu() * present.unsqueeze(-1)
        return hidden, masked.mean(hidden, present)
