"""Classifier: encode, score, attend and decode in sequence.

Techniques and audits call these four extension points directly.

hidden  = encode(batch)              (B,T,H)
scores  = score(hidden)              (B,T)
weights = attend(scores, mask)       (B,T)
logits  = decode(hidden, weights)    (B,C)
"""

from typing import Annotated, Any, Literal, TypeGuard

from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.search_space import SearchChoice, SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.tensor_files import without_memory
from steadygaze.core.types import Batch, Encoded, Forward
from steadygaze.models.attention_layers import ATTENTIONS, DECODERS, SCORES, Linear
from steadygaze.models.encoders import ENCODERS
from steadygaze.models.encoders.word_encoders import Encoder, WordEncoder, embedding
from steadygaze.models.inference import Capability, Model

MOST_PARAMETERS = 1 << 31
"""Maximum for an encoder over word vectors: 8 GiB of weights."""


@settings
class Architecture:
    """Architecture of a classifier."""

    hidden: Annotated[int, Field(ge=2, le=8192), SearchChoice(32, 64, 128, 256)] = 128
    """Hidden units, per direction."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 100
    """Size of a word vector, without pre-trained vectors."""
    train_vectors: bool = True
    """Train the word vectors."""
    score: Literal["additive", "dot"] = "additive"
    """Scorer of the tokens."""
    attention: Literal["softmax", "sparsemax", "entmax15", "uniform"] = "softmax"
    """Map from scores to weights; uniform ignores the scores and is a baseline."""
    decoder: Literal["linear", "mlp"] = "linear"
    """Map from the attended context to logits; certificates need `linear`."""
    dropout: Annotated[float, Field(ge=0, lt=1), SearchRange(0.0, 0.5)] = 0.0
    """Dropout rate of word vectors; a transformer keeps its own."""
    word_dropout: Annotated[float, Field(ge=0, lt=1), SearchRange(0.0, 0.5)] = 0.0
    """Share of the words that training replaces by the unknown word; not for a transformer."""
    window: Annotated[int | None, Field(ge=1)] = None
    """Pieces per window of a transformer, which then reads whole texts; None: one window, the rest is truncated."""
    stride: Annotated[int | None, Field(ge=1)] = None
    """Most pieces between the beginnings of two windows; None: 15/16 of a window, so that they overlap by 1/16."""


class Classifier(Model):
    capabilities: frozenset[Capability] = frozenset({"attention", "embeddings", "extension_points", "threads"})

    def __init__(self, encoder: Encoder, architecture: Architecture, classes: int, pair: bool) -> None:
        super().__init__()
        self.classes = classes
        self.encoder = encoder
        self.capabilities |= encoder.capabilities
        self.scorer = SCORES[architecture.score](encoder.size, pair)
        self.attention = ATTENTIONS[architecture.attention]()
        self.decoder = DECODERS[architecture.decoder](encoder.size, classes, pair)

    def forward(self, batch: Batch, embedded: Tensor | None = None, embedded_question: Tensor | None = None) -> Forward:
        encoded = self.encode(batch, embedded, embedded_question)
        scores = self.score(encoded)
        weights = self.attend(scores, batch.mask)
        return Forward(encoded, scores, weights, self.decode(encoded, weights))

    def embed(self, batch: Batch) -> Tensor:
        """(B,T,E)"""
        return self.encoder.embed(batch.ids)

    @property
    def vectors(self) -> Tensor:
        """(V,E)"""
        return self.encoder.vectors

    def embed_question(self, batch: Batch) -> Tensor | None:
        """(B,Q,E), for a pair"""
        return None if batch.question_ids is None else self.encoder.embed(batch.question_ids)

    def encode(self, batch: Batch, embedded: Tensor | None = None, embedded_question: Tensor | None = None) -> Encoded:
        """Encode the batch, or these embeddings of text (B,T,E) and question (B,Q,E).  -> (B,T,H)"""
        embedded = self.embed(batch) if embedded is None else embedded
        embedded_question = self.embed_question(batch) if embedded_question is None else embedded_question
        encoded: Encoded = self.encoder(embedded, batch.present, embedded_question, batch.question_present)
        return encoded

    def score(self, encoded: Encoded) -> Tensor:
        """(B,T)"""
        scores: Tensor = self.scorer(encoded)
        return scores

    def attend(self, scores: Tensor, mask: Tensor) -> Tensor:
        """(B,T), exactly 0 outside the mask"""
        weights: Tensor = self.attention(scores, mask)
        return weights

    def decode(self, encoded: Encoded, weights: Tensor) -> Tensor:
        """(B,C)"""
        logits: Tensor = self.decoder(encoded, weights)
        return logits

    @property
    def has_linear_decoder(self) -> bool:
        return isinstance(self.decoder, Linear)

    def reach(self, encoded: Encoded) -> Tensor | None:
        """Change of each logit per unit of attention on each token; None if the decoder is not linear.  (B,T,C)"""
        return self.decoder.reach(encoded) if isinstance(self.decoder, Linear) else None


def has_extension_points(model: Model) -> TypeGuard[Classifier]:
    return "extension_points" in model.capabilities


def word_encoder(
    name: str, architecture: Architecture, size: int, pair: bool, vectors: Tensor | None = None
) -> WordEncoder:
    """Return an encoder over word vectors by its registered name; `size` is the size of the vocabulary."""
    dimension = architecture.dimension if vectors is None else int(vectors.shape[1])

    def make() -> WordEncoder:
        towers: list[Any] = [ENCODERS[name].make(dimension, architecture.hidden) for _ in range(2 if pair else 1)]
        words = embedding(size, dimension, vectors, architecture.train_vectors)
        question = towers[1] if pair else None
        return WordEncoder(words, towers[0], question, architecture.dropout, architecture.word_dropout)

    with without_memory():  # count before allocation
        count = sum(parameter.numel() for parameter in make().parameters())
    if count > MOST_PARAMETERS:
        raise UserError(
            f"the encoder has {count:,} parameters, but at most {MOST_PARAMETERS:,} are allowed: lower 'hidden' "
            f"or 'dimension', or raise 'min_df' (the vocabulary has {size:,} words)"
        )
    return make()
