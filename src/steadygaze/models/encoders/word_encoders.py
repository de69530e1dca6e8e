"""Encoder base class, and encoders over word vectors with three towers: average, convolutional, recurrent.

`embed` and `forward` are separate, so that a technique can perturb the embeddings of text and question in between.
Dropout of embeddings and of words belongs to `embed`.

A word encoder has an embedding and one tower for the text, and for pairs another for the question.  A tower maps
(B,T,E) vectors to (B,T,H) hidden states and a (B,H) summary, such as a recurrent network's last state.
Two encoders for pairs, as in Jain & Wallace 2019 (arXiv:1902.10186); the question's summary enters scorer and decoder.

Average: one linear layer and a ReLU per word, without context.  A word's hidden state, and hence its attention, depends
on that word alone.  Summary: the mean over the text.

Convolutional: kernels of widths 1, 3, 5 and 7 in parallel, ReLU.  Summary: the maximum over the text.

Recurrent: RNN (tanh), GRU, LSTM, in one direction or both.  The backward direction reads each text reversed *within its
own length*, so that padding is last in both directions and packing is not needed.  This trains about twice as fast on a
CPU as a packed sequence (timings/recurrent.py), with equal results (tests/models/encoders/test_word_encoders.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn

from steadygaze.core.capabilities import Capability
from steadygaze.core.maths import distributions
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Encoded
from steadygaze.data.word_tokenizer import SPECIALS, UNKNOWN

DROPOUT = 0x64726F70
"""Purpose of the keys of dropout."""


class Encoder(nn.Module, ABC):
    """(B,T) -> (B,T,H).  Hidden states are 0 on padding, and the others do not depend on padding."""

    size: int
    """H."""
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    """What a model with this encoder can do for it."""
    allows_gaps: ClassVar[bool] = False
    """True if tokens inside a text may be absent; otherwise omitted tokens are zero vectors."""
    context: int | None = None
    """Words on either side that a hidden state depends on; None: the whole text."""

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
    def __init__(
        self,
        embedding: nn.Embedding,
        text: nn.Module,
        question: nn.Module | None,
        dropout: float,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.text = text
        self.question = question
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = word_dropout
        self.size: int = text.size  # type: ignore[assignment]
        self.context = getattr(text, "context", None)
        self._keys: Tensor | None = None
        self._draws = 0

    @property
    def vectors(self) -> Tensor:
        return self.embedding.weight

    def embed(self, ids: Tensor) -> Tensor:
        if self.training and self.word_dropout:
            replaced = (self._uniform(ids) < self.word_dropout) & (ids >= len(SPECIALS))
            ids = ids.masked_fill(replaced, SPECIALS.index(UNKNOWN))
        vectors: Tensor = self.embedding(ids)
        if self._keys is None or not (self.training and self.dropout.p):
            return self.dropout(vectors)  # type: ignore[no-any-return]
        return vectors * (self._uniform(vectors) >= self.dropout.p) / (1 - self.dropout.p)

    @contextmanager
    def keyed_dropout(self, keys: Tensor) -> Iterator[None]:
        """Draw dropout from the keys (K,) of K models, whose rows alternate, instead of torch's generator.

        The masks of a model then depend neither on the other models nor on the width of their batches.
        """
        self._keys, self._draws = keys, 0
        try:
            yield
        finally:
            self._keys = None

    def _uniform(self, like: Tensor) -> Tensor:
        """Return samples from [0, 1) in the shape of a tensor, whose first dimension is that of the rows."""
        if self._keys is None:
            return torch.rand(like.shape, device=like.device)
        self._draws += 1
        models, rows = len(self._keys), torch.arange(len(like), device=like.device)
        key = RandomKey(self._keys).child(DROPOUT, self._draws).key
        return RandomKey(key.repeat(len(like) // models)).uniform(rows // models, *like.shape[1:])

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


class Average(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H), (B,H).  H = 2·hidden, as the bidirectional towers have."""

    context = 0

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.size = 2 * hidden
        self.project = nn.Linear(dimension, self.size)

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.project(embedded).relu() * present.unsqueeze(-1)
        return hidden, distributions.mean(hidden, present)


WIDTHS = (1, 3, 5, 7)


class Convolutional(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H), (B,H).  H = 2·hidden, as the bidirectional towers have."""

    context = max(WIDTHS) // 2

    def __init__(self, dimension: int, hidden: int) -> None:
        super().__init__()
        self.size = 2 * hidden
        shares = [self.size // len(WIDTHS) + (i < self.size % len(WIDTHS)) for i in range(len(WIDTHS))]
        self.kernels = nn.ModuleList(
            nn.Conv1d(dimension, share, width, padding="same") for share, width in zip(shares, WIDTHS, strict=True)
        )

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        channels = (embedded * present.unsqueeze(-1)).transpose(1, 2)  # (B,E,T); padding is zero like the edge
        hidden = torch.cat([kernel(channels) for kernel in self.kernels], 1).transpose(1, 2).relu()
        hidden = hidden * present.unsqueeze(-1)
        return hidden, distributions.maximum(hidden, present)


CELLS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class Recurrent(nn.Module):
    """(B,T,E), (B,T) -> (B,T,H) hidden states and (B,H) last states.  H = hidden, or twice that in both directions."""

    def __init__(self, cell: str, dimension: int, hidden: int, both: bool) -> None:
        super().__init__()
        self.kind = cell
        self.forwards = CELLS[cell](dimension, hidden, batch_first=True)
        self.backwards = CELLS[cell](dimension, hidden, batch_first=True) if both else None
        self.size = hidden * (2 if both else 1)

    def forward(self, embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        last = present.sum(-1, keepdim=True).sub(1).clamp_min(0)  # (B,1)
        real = present.unsqueeze(-1)
        hidden = self.forwards(embedded)[0] * real
        states = _take(hidden, last)
        if self.backwards is not None:
            reversal = _reversal(present)
            backwards = self.backwards(_take(embedded, reversal))[0] * real
            states = torch.cat([states, _take(backwards, last)], -1)
            hidden = torch.cat([hidden, _take(backwards, reversal)], -1)
        return hidden, states.squeeze(1)


def _reversal(present: Tensor) -> Tensor:
    """Return the positions that reverse the real tokens; padding stays.  (B,T) -> (B,T)"""
    positions = torch.arange(present.shape[1], device=present.device).expand_as(present)
    return torch.where(present, present.sum(-1, keepdim=True) - 1 - positions, positions)


def _take(values: Tensor, positions: Tensor) -> Tensor:
    """(B,T,H), (B,K) -> (B,K,H); rows of one table: three times as fast on a CPU as `gather` of single numbers."""
    texts, width, size = values.shape
    rows = positions + width * torch.arange(texts, device=values.device).unsqueeze(-1)
    return values.reshape(-1, size).index_select(0, rows.flatten()).view(texts, -1, size)
