"""Tiny models of every kind and ragged batches for them: what the batteries of this folder are run on.

A row of a split is written as its tokens: "w" a word, "s" a special token, so "swws" is a text of two words between
start and end, and "s" a text without any word.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from steadygaze.core.ragged import TokenArray
from steadygaze.core.types import Batch, Forward
from steadygaze.data.batches import Data, collate
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.encoders import ENCODERS
from steadygaze.models.encoders.transformer import Transformer, from_config
from steadygaze.models.encoders.word_encoders import Encoder

VOCABULARY = 23
CLASSES = 3
TEXTS = ("swwws", "s", "swwwwwws", "w", "ss", "sws", "swwwws")
QUESTIONS = ("wws", "s", "ws", "wwwws", "wws", "s", "www")
TRANSFORMER_NAME = "transformer"
ENCODER_NAMES = [*ENCODERS, TRANSFORMER_NAME]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}

rows = st.lists(st.text("ws", min_size=1, max_size=7), min_size=1, max_size=4)
"""Splits for hypothesis: any pattern of words and specials, rows of one token and rows without a word among them."""


def ragged(patterns: Sequence[str], seed: int = 0) -> TokenArray:
    """Random ids, never that of padding: 0, or 1 to RoBERTa."""
    flat = "".join(patterns)
    ids = np.random.default_rng(seed).integers(2, VOCABULARY, len(flat), dtype=np.int32)
    words = np.array([kind == "w" for kind in flat], np.bool_)
    starts = np.cumsum([0, *map(len, patterns)], dtype=np.int64)
    return TokenArray(ids, words, starts, np.zeros(len(patterns), np.bool_))


def split(texts: Sequence[str] = TEXTS, pair: bool = False, questions: Sequence[str] = QUESTIONS) -> Data:
    """A labeled split; the questions are taken in turn where there are fewer of them than texts."""
    row_questions = [questions[i % len(questions)] for i in range(len(texts))]
    label = np.arange(len(texts), dtype=np.int64) % CLASSES
    return Data(ragged(texts), ragged(row_questions, 1) if pair else None, label)


def batch(data: Data, chosen: Sequence[int] | None = None) -> Batch:
    """The whole split, or these rows of it."""
    return collate(data, np.asarray(range(len(data)) if chosen is None else chosen, np.int64))


def widened(batch: Batch, columns: int) -> Batch:
    """The same batch with more padding, in the text and in the question."""
    own = ("ids", "present", "mask", "word_starts")
    names = (*own, *(f"question_{name}" for name in own))
    values = {name: getattr(batch, name) for name in names}
    return replace(batch, **{name: pad(value, (0, columns)) for name, value in values.items() if value is not None})


def littered(batch: Batch) -> Batch:
    """The same batch with ids of real words where the padding is."""
    question = batch.question_ids
    if question is not None and batch.question_present is not None:
        question = question.masked_fill(~batch.question_present, 5)
    return replace(batch, ids=batch.ids.masked_fill(~batch.present, 7), question_ids=question)


def encoder(name: str, pair: bool, hidden: int = 4) -> Encoder:
    """A registered word encoder, or a small BERT, with fresh weights."""
    if name == TRANSFORMER_NAME:
        return bert(2 * hidden)
    return word_encoder(name, Architecture(hidden=hidden, dimension=5), VOCABULARY, pair)


def bert(size: int = 8) -> Transformer:
    return from_config(
        {
            "model_type": "bert",
            "vocab_size": VOCABULARY,
            "hidden_size": size,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 12,
            "max_position_embeddings": 40,
            "initializer_range": 0.5,  # the usual 0.02 makes a network so tame that a mistake would hide in rounding
        }
    )


def classifier(
    name: str = "bilstm", pair: bool = False, dtype: torch.dtype = torch.float64, **shape: str
) -> Classifier:
    """In evaluation mode: a transformer has dropout of its own."""
    torch.manual_seed(0)
    return Classifier(encoder(name, pair), Architecture(**shape), CLASSES, pair).to(dtype).eval()  # type: ignore[arg-type]


cached_classifier: Callable[..., Classifier] = cache(classifier)
"""One model for many tests that only read it."""


def loss(forward: Forward, batch: Batch) -> Tensor:
    """(B,) a loss that every logit and every weight enters."""
    token = (batch.ids.to(forward.weights.dtype).sin() * forward.weights).sum(-1)
    return cross_entropy(forward.logits, batch.gold, reduction="none") + token


def read(model: Classifier, *batches: Batch) -> tuple[list[Forward], dict[str, Tensor]]:
    """What the model makes of each batch, and the gradient of the loss summed over all examples, by parameter."""
    forwards = [model(batch) for batch in batches]
    total = torch.cat([loss(forward, batch) for forward, batch in zip(forwards, batches, strict=True)]).sum()
    names, parameters = zip(*model.named_parameters(), strict=True)
    result = torch.autograd.grad(total, parameters, allow_unused=True)
    return forwards, {name: value for name, value in zip(names, result, strict=True) if value is not None}


def gradients(model: Classifier, *batches: Batch) -> dict[str, Tensor]:
    return read(model, *batches)[1]


def assert_close(actual: object, expected: object, dtype: torch.dtype = torch.float64) -> None:
    torch.testing.assert_close(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
