"""Movie reviews of preparation.py: tokens of the network, words, and human rationales."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, collate
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.encoders.transformer import from_folder
from steadygaze.models.encoders.windows import Windows
from steadygaze.models.encoders.word_encoders import Encoder
from studies.jobs import load_arrays
from studies.rationales.run import SPLITS

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
def read_reviews(folder: Path, minilm: bool, max_texts: int | None) -> Reviews:
    arrays = load_arrays(folder / "words.npz")
    words = {split: arrays[f"{split}/starts"] for split in SPLITS}
    vectors = torch.from_numpy(arrays["vectors"].astype(np.float32))
    if minilm:
        arrays |= load_arrays(folder / "pieces.npz")
    splits = {split: _split(arrays, split, words[split], max_texts) for split in SPLITS}
    roles = torch.from_numpy(arrays["roles"])
    if minilm:
        return Reviews(splits, roles, partial(from_folder, folder / "minilm", WINDOWS), Architecture())
    shape = Architecture(hidden=HIDDEN, dimension=vectors.shape[1], train_vectors=False)
    return Reviews(splits, roles, partial(word_encoder, "bigru", shape, len(vectors), False, vectors), shape)


def _split(arrays: dict[str, NDArray[Any]], split: str, starts: NDArray[np.int64], max_texts: int | None) -> Split:
    """`starts`: of the texts in words, with two special ones each."""
    ids, is_word, token_starts, label = (arrays[f"{split}/{name}"] for name in ("ids", "words", "starts", "label"))
    count = min(max_texts or len(label), len(label))
    end, word_starts = token_starts[count], row_starts(np.diff(starts) - 2)
    text = TokenArray(ids[:end].astype(np.int32), is_word[:end], token_starts[: count + 1], np.zeros(count, np.bool_))
    numbers = np.full(len(ids), -1)
    one_per_word = np.arange(word_starts[-1]) - np.repeat(word_starts[:-1], np.diff(word_starts))
    numbers[is_word] = arrays.get(f"{split}/number", one_per_word)
    return Split(Data(text, None, label[:count].astype(np.int64)), numbers, arrays[f"{split}/marked"], word_starts)


def _positions(starts: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions of the entries of these texts, and whether they are not padding.  (B,T)"""
    lengths = np.diff(starts)[rows][:, None]
    columns = np.arange(lengths.max(initial=1))
    present = columns < lengths
    return np.where(present, starts[rows][:, None] + columns, 0), present
