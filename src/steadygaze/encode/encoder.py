"""What every encoder is: ids -> embeddings -> hidden states, one vector per token.

`embed` and `forward` are apart so that a technique can perturb the embeddings in between, of text and question alike;
what `forward` is given is what is read (dropout of embeddings belongs to `embed`).
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from steadygaze.types import Encoded


class Encoder(nn.Module, ABC):
    """(B,T) -> (B,T,H).  Hidden states are 0 on padding; padding cannot change any other."""

    size: int
    """H."""
    gaps: ClassVar[bool] = False
    """Whether tokens in the middle of a text may be absent; else whatever is left out is read as zeros."""

    @property
    @abstractmethod
    def vectors(self) -> Tensor:
        """(V,E) the vector of every id; those of padding are not read."""

    @abstractmethod
    def embed(self, ids: Tensor) -> Tensor:
        """(B,T) -> (B,T,E)"""

    @abstractmethod
    def forward(
        self,
        embedded: Tensor,  # (B,T,E)
        present: Tensor,  # (B,T)
        asked: Tensor | None = None,  # (B,Q,E): the question's embeddings
        question_present: Tensor | None = None,  # (B,Q)
    ) -> Encoded: ...
