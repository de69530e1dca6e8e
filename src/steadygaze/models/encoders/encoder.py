"""What every encoder is: ids -> embeddings -> hidden states, one vector per token.

`embed` and `forward` are apart so that a technique can perturb the embeddings in between, of text and question alike;
what `forward` is given is what is read (dropout of embeddings belongs to `embed`).

Encoders over word vectors: an embedding, one tower for the text and, for pairs, another for the question.

A tower reads (B,T,E) vectors and gives (B,T,H) hidden states and a (B,H) summary: a recurrent network's last state.
Two encoders for pairs, as in Jain & Wallace 2019 (arXiv:1902.10186); the question's last state enters score and
decoder.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from steadygaze.core.types import Encoded


class Encoder(nn.Module, ABC):
    """(B,T) -> (B,T,H).  Hidden states are 0 on padding; padding cannot change any other."""

    size: int
    """H."""
    allows_gaps: ClassVar[bool] = False
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


class WordEncoder(Encoder):
    def __init__(self, embedding: nn.Embedding, text: nn.Module, question: nn.Module | None, dropout: float) -> None:
        super().__init__()
        self.embedding = embedding
        self.text = text
        self.question = question
        self.dropout = nn.Dropout(dropout)
        self.size: int = text.size  # type: ignore[assignment]

    @property
    def vectors(self) -> Tensor:
        return self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.dropout(self.embedding(ids))
        return vectors

    def forward(
        self,
        embedded: Tensor,
        present: Tensor,
        asked: Tensor | None = None,
        question_present: Tensor | None = None,
    ) -> Encoded:
        hidden, _ = self.text(embedded, present)
        if self.question is None or asked is None:
            return Encoded(hidden)
        _, state = self.question(asked, question_present)
        return Encoded(hidden, state)


def embedding(size: int, dimension: int, vectors: Tensor | None, trainable: bool) -> nn.Embedding:
    """Pre-trained vectors where given, else N(0, 1/E), so that a vector has length about 1.  Id 0 is padding: zero."""
    module = nn.Embedding(size, dimension, padding_idx=0)
    with torch.no_grad():
        if vectors is None:
            module.weight.normal_(std=dimension**-0.5)
        else:
            module.weight.copy_(vectors)
        module.weight[0] = 0.0
    module.weight.requires_grad_(trainable)
    return module
