"""The reviews that bench/movie_cut.py left, as networks read them and as people marked them."""

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

SPLITS = ("train", "validation", "test")
HIDDEN = 50
"""Of each direction, as in the paper."""
WINDOWS = Windows(size=254, stride=127, before=1, after=1)
"""Of MiniLM: 256 tokens that overlap by half."""


@dataclass(frozen=True)
class Page:
    """Some reviews as a network reads them, and as people do."""

    batch: Batch
    numbers: Tensor  # (B,T) the word of each token, −1 where it has none
    real: Tensor  # (B,W) bool: the words there are
    marked: Tensor  # (B,W) bool: by people


@dataclass(frozen=True)
class Split:
    data: Data
    numbers: NDArray[np.int64]
    """Of all tokens end to end: the word of its text that each is of, or −1."""
    marked: NDArray[np.bool_]
    """Of all words end to end."""
    starts: NDArray[np.int64]
    """Where the words of each text begin."""

    def page(self, rows: NDArray[np.int64], device: str) -> Page:
        batch, text = collate(self.data, rows), self.data.text
        places, inside = _places(text.starts, rows)
        words, real = _places(self.starts, rows)
        numbers = torch.from_numpy(np.where(inside, self.numbers[places], -1))
        marked = torch.from_numpy(self.marked[words] & real)
        return Page(batch.to(device), *(tensor.to(device) for tensor in (numbers, torch.from_numpy(real), marked)))


@dataclass(frozen=True)
class Reviews:
    splits: dict[str, Split]
    roles: Tensor
    encoder: Callable[[], Encoder]
    shape: Architecture


@lru_cache(maxsize=1)
def read(folder: Path, minilm: bool, most: int | None) -> Reviews:
    kept = _load(folder / "words.npz")
    words = {split: kept[f"{split}/starts"] for split in SPLITS}
    vectors = torch.from_numpy(kept["vectors"].astype(np.float32))
    if minilm:
        kept |= _load(folder / "pieces.npz")
    splits = {split: _split(kept, split, words[split], most) for split in SPLITS}
    roles = torch.from_numpy(kept["roles"])
    if minilm:
        return Reviews(splits, roles, partial(from_folder, folder / "minilm", WINDOWS), Architecture())
    shape = Architecture(hidden=HIDDEN, dimension=vectors.shape[1], train_vectors=False)
    return Reviews(splits, roles, partial(word_encoder, "bigru", shape, len(vectors), False, vectors), shape)


def _load(file: Path) -> dict[str, NDArray[Any]]:
    with np.load(file, allow_pickle=False) as opened:
        return {name: opened[name] for name in opened.files}


def _split(kept: dict[str, NDArray[Any]], split: str, words: NDArray[np.int64], most: int | None) -> Split:
    """`words`: where each text begins in words, special ones included, of which it has two."""
    ids, spoken, starts, label = (kept[f"{split}/{name}"] for name in ("ids", "words", "starts", "label"))
    many = min(most or len(label), len(label))
    end, own = starts[many], row_starts(np.diff(words) - 2)
    text = TokenArray(ids[:end].astype(np.int32), spoken[:end], starts[: many + 1], np.zeros(many, np.bool_))
    numbers = np.full(len(ids), -1)
    each = np.arange(own[-1]) - np.repeat(own[:-1], np.diff(own))
    numbers[spoken] = kept.get(f"{split}/number", each)
    return Split(Data(text, None, label[:many].astype(np.int64)), numbers, kept[f"{split}/marked"], own)


def _places(starts: NDArray[np.int64], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the entries of these texts stand, and which there are: (B,T), the longest of them T."""
    lengths = np.diff(starts)[rows][:, None]
    columns = np.arange(lengths.max(initial=1))
    inside = columns < lengths
    return np.where(inside, starts[rows][:, None] + columns, 0), inside
