"""Encoders over word vectors: an embedding, one tower for the text and, for pairs, another for the question.

A tower reads (B,T,E) vectors and gives (B,T,H) hidden states and a (B,H) summary: a recurrent network's last state.
Two encoders for pairs, as in Jain & Wallace 2019 (arXiv:1902.10186); the question's last state enters score and
decoder.
"""

import torch
from torch import Tensor, nn

from steadygaze.encode.encoder import Encoder
from steadygaze.types import Encoded


class Words(Encoder):
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
