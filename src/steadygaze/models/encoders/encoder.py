"""Encoder base class, and encoders over word vectors.

`embed` and `forward` are separate, so that a technique can perturb the embeddings of text and question in between.
Dropout of embeddings belongs to `embed`.

A word encoder has an embedding and one tower for the text, and for pairs another for the question.  A tower maps
(B,T,E) vectors to (B,T,H) hidden states and a (B,H) summary, such as a recurrent network's last state.
Two encoders for pairs, as in Jain & Wallace 2019 (arXiv:1902.10186); the question's summary enters scorer and decoder.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from steadygaze.core.types import Encoded


class Encoder(nn.Module, ABC):
    """(B,T) -> (B,T,H).  Hidden states are 0 on padding, and the others do not depend on padding."""

    size: int
    """H."""
    allows_gaps: ClassVar[bool] = False
    """True if tokens inside a text may be absent; otherwise omitted tokens are zero vectors."""

    @property
    @abstractmethod
    def vectors(self) -> Tensor:
        """(V,E) the vector of every id; the padding vector is unused."""

    @abstractmethod
    def embed(self, ids: Tensor) -> Tensor:
        """(B,T) -> (B,T,E)"""

    @abstractmethod
    def forward(
        self,
        embedded: Tensor,  # (B,T,E)
        present: Tensor,  # (B,T)
        embedded_question: Tensor | None = None,  # (B,Q,E): the question's embeddings
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
        embedded_question: Tensor | None = None,
        question_present: Tensor | None = None,
    ) -> Encoded:
        hidden, _ = self.text(embedded, present)
        if self.question is None or embedded_question is None:
            return Encoded(hidden)
        _, state = self.question(embedded_question, question_present)
        return Encoded(hidden, state)


def embedding(size: int, dimension: int, vectors: Tensor | None, trainable: bool) -> nn.Embedding:
    """Return pre-trained vectors, or samples of N(0, 1/E), whose norm is about 1.  Id 0 is padding: zero."""
    module = nn.Embedding(size, dimension, padding_idx=0)
    with torch.no_grad():
        if vectors is None:
            module.weight.normal_(std=dimension**-0.5)
        else:
            module.weight.copy_(vectors)
        module.weight[0] = 0.0
    module.weight.requires_grad_(trainable)
    return module
