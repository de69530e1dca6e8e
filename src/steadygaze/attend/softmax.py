"""Softmax attention: every word gets some weight."""

from torch import Tensor, nn

from steadygaze.maths import masked


class Softmax(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        return masked.softmax(scores, mask)
