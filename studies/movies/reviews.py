"""Movie reviews: tokens of the network, words, and human rationales."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.ragged import row_starts
from steadygaze.core.types import Batch, Example
from steadygaze.data.batches import Data, collate
from steadygaze.data.corpora import load_corpus
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.data.word_vectors import read_vectors
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.encoders.transformer import from_folder, locate
from steadygaze.models.encoders.windows import Windows
from steadygaze.models.encoders.word_encoders import Encoder
from studies.data_folder import data_folder
from studies.rationales.run import SPLITS

CORPUS = "movie_rationales"
GLOVE = Path("glove", "glove.6B.100d.txt.gz")
"""Word vectors in the folder of corpora."""
MAX_WORDS = 4096
"""Words of a review; no review is longer."""
MIN_REVIEWS = 2
"""Training reviews in which a word of the vocabulary occurs."""
HIDDEN = 50
"""Hidden units of each direction, as in the paper."""
WINDOWS = Windows(size=254, stride=127, before=1, after=1)
"""Windows of MiniLM: 256 tokens that overlap by half."""


@dataclass(frozen=True)
class ReviewBatch:
    """Reviews as tokens of the network, and as words."""

    batch: Batch
    word_numbers: Tensor  # (B,T) the word of each token, −1 for special tokens
    present: Tensor  # (B,W) bool: False for padding
    rationale: Tensor  # (B,W) bool: human rationales


@dataclass(frozen=True)
class Split:
    data: Data
    word_numbers: NDArray[np.int64]
    """Of all tokens of all texts: the number of the word in its text, −1 for special tokens."""
    rationale: NDArray[np.bool_]
    """Of all words of all texts: whether the word is in a human rationale."""
    word_starts: NDArray[np.int64]
    """The position of the first word of each text."""

    def batch(self, rows: NDArray[np.int64], device: str) -> ReviewBatch:
        tokens, is_token = _positions(self.data.text.starts, rows)
        words, is_word = _positions(self.word_starts, rows)
        numbers = np.where(is_token, self.word_numbers[tokens], -1)
        arrays = (numbers, is_word, self.rationale[words] & is_word)
        tensors = (torch.from_numpy(array).to(device) for array in arrays)
        return ReviewBatch(collate(self.data, rows).to(device), *tensors)


@dataclass(frozen=True)
class Reviews:
    splits: dict[str, Split]
    roles: Tensor
    encoder: Callable[[], Encoder]
    shape: Architecture


@lru_cache(maxsize=1)
def read_reviews(minilm: bool, max_texts: int | None) -> Reviews:
    folder = data_folder(CORPUS)
    corpus, network = load_corpus(CORPUS, data_dir=folder), locate("minilm") if minilm else None
    train = [example.text for example in corpus.splits["train"]]
    words = build_word_tokenizer(train, min_df=MIN_REVIEWS, max_length=MAX_WORDS)
    tokenizer: Any = words if network is None else load_subword_tokenizer(network, max_length=2 * MAX_WORDS)
    splits = {split: _split(corpus.splits[split][:max_texts], words, tokenizer) for split in SPLITS}
    roles = torch.from_numpy(sentence_roles(tokenizer.vocabulary, tokenizer.kind))
    if network is not None:
        return Reviews(splits, roles, partial(from_folder, network, WINDOWS), Architecture())
    vectors = torch.from_numpy(read_vectors(folder / GLOVE, words.vocabulary, seed=0).matrix).half().float()
    shape = Architecture(hidden=HIDDEN, dimension=vectors.shape[1], train_vectors=False)
    return Reviews(splits, roles, partial(word_encoder, "bigru", shape, len(vectors), False, vectors), shape)


def _split(examples: Sequence[Example], words: Any, tokenizer: Any) -> Split:
    texts = [example.text for example in examples]
    in_words, tokens = words.place(texts), tokenizer.place(texts)
    assert not tokens.ragged.cut.any()
    rationale = [mark_tokens(spans, e.rationales or ()) for spans, e in zip(in_words.spans, examples, strict=True)]
    numbers = np.full(len(tokens.ragged.ids), -1)
    numbers[tokens.ragged.words] = np.concatenate(list(map(_word_numbers, in_words.spans, tokens.spans)))
    label = np.array([example.label == "positive" for example in examples], np.int64)
    starts = row_starts(np.array([len(spans) for spans in in_words.spans]))
    return Split(Data(tokens.ragged, None, label), numbers, np.concatenate(rationale), starts)


def _word_numbers(words: list[tuple[int, int]], tokens: list[tuple[int, int]]) -> NDArray[np.int64]:
    """The word in which each token begins.  "don" of the pieces "don|'|t" begins in "do" of the words "do|n't"."""
    starts, ends = np.array(words).T
    first = np.array(tokens)[:, 0]
    numbers = np.searchsorted(starts, first, side="right") - 1
    assert (numbers >= 0).all()
    assert (first < ends[numbers]).all()
    return numbers


def _positions(starts: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions of the entries of these texts, and whether they are not padding.  (B,T)"""
    lengths = np.diff(starts)[rows][:, None]
    columns = np.arange(lengths.max(initial=1))
    present = columns < lengths
    return np.where(present, starts[rows][:, None] + columns, 0), present
