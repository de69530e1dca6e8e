"""Texts as inputs of selectors: the black box's tokens, mapped to the explainer's own vocabulary.

The vocabulary maps words by their text, because the ids of a black box that reads text change in every session.
Subwords of one word are one unit, represented by the first of them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate, shuffled
from steadygaze.data.text_tokenizer import Kind
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.explainers.learned.l2x import InputBatch, Rows, SelectorConfig, selector_networks
from steadygaze.explainers.learned.text_networks import APPROXIMATORS, Selector, as_keras
from steadygaze.training.device_batches import DeviceData

MAX_WORDS = 20_000
"""Largest vocabulary: the most frequent words."""
PLACES = 512
"""Positions that the mask probe reads."""
SPECIALS = ("", "[UNK]")
"""Padding and unknown words."""


@dataclass(frozen=True)
class Vocabulary:
    words: tuple[str, ...]
    kind: Kind
    """The kind of the black box's tokens: words or subwords."""

    @cached_property
    def ids(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words)}

    def table(self, tokens: Sequence[str], padded_length: int = 0) -> "Table":
        """The mapping of a black box's tokens to this vocabulary."""
        continues = torch.from_numpy(vocabulary_lexicon(tokens, self.kind).continues)
        subwords = continues if bool(continues.any()) else None
        if not padded_length:
            return Table(self.token_ids(tokens), subwords)
        if subwords is not None:
            raise UserError(
                "variant released is for models that read words, and this one reads subwords; use variant paper"
            )
        return Table(self.token_ids(tokens), None, padded_length, len(self.words))

    def token_ids(self, tokens: Sequence[str]) -> Tensor:
        """The id of each token in this vocabulary.  (V,)"""
        return torch.tensor([self.ids.get(plain(token, self.kind), 1) for token in tokens], dtype=torch.long)


@dataclass(frozen=True)
class Table:
    ids: Tensor  # (V,) explainer's id of each of the black box's ids
    continues: Tensor | None  # (V,) subwords that continue a word; None: tokens are words
    length: int = 0  # of every text, padded or truncated at its front; 0: unchanged
    filler: int = 0  # id of that padding, which can be selected like a word

    def to(self, device: torch.device) -> "Table":
        continues = None if self.continues is None else self.continues.to(device)
        return replace(self, ids=self.ids.to(device), continues=continues)

    def views(self, batch: Batch, probs: Tensor, rows: Tensor | None = None) -> InputBatch:
        """A batch of the black box as inputs of the explainer."""
        x = self.ids[batch.ids].masked_fill(~batch.present, 0)
        if self.length:
            return self._padded(batch, x, probs, batch.index if rows is None else rows)
        selectable, owner = batch.mask, None
        if self.continues is not None:
            selectable = batch.mask & ~self.continues[batch.ids]
            selectable |= batch.mask & (batch.mask.cumsum(-1) == 1)  # a truncated text may begin within a word
            places = torch.arange(x.shape[1], device=x.device).expand_as(x)
            owner = places.masked_fill(~(selectable | ~batch.mask), 0).cummax(-1).values
        return InputBatch(x, selectable, probs, batch.index if rows is None else rows, owner)

    def _padded(self, batch: Batch, x: Tensor, probs: Tensor, rows: Tensor) -> InputBatch:
        """Pad all texts in front to one length, like Keras' pad_sequences.  (B,S) -> (B,length)"""
        counts = batch.present.sum(-1, keepdim=True)
        places = (batch.present.cumsum(-1) - 1 + self.length - counts).masked_fill(~batch.present, -1).clamp_min(-1)
        targets = places.masked_fill(places < 0, self.length)  # an additional position for truncated tokens
        ids = x.new_full((len(x), self.length + 1), self.filler).scatter(-1, targets, x)[:, :-1]
        selectable = batch.mask.new_ones(len(x), self.length + 1).scatter(-1, targets, batch.mask)[:, :-1]
        return InputBatch(ids, selectable, probs, rows, places=places)


class GrowingTokenizer(Protocol):
    """A tokenizer that may add ids."""

    @property
    def vocabulary(self) -> list[str]:
        """The token of each current id."""


class GrowingTable:
    """A table that grows with the tokenizer: a black box that reads text adds an id for each new word."""

    def __init__(self, vocabulary: Vocabulary, tokens: GrowingTokenizer, padded_length: int = 0) -> None:
        self._vocabulary, self._tokens = vocabulary, tokens
        self._table = vocabulary.table(tokens.vocabulary, padded_length)

    def views(self, batch: Batch, probs: Tensor) -> InputBatch:
        self._table = self._table.to(batch.ids.device)
        if int(batch.ids.max()) >= (size := len(self._table.ids)):
            new_ids = self._vocabulary.token_ids(self._tokens.vocabulary[size:]).to(batch.ids.device)
            self._table = replace(self._table, ids=torch.cat([self._table.ids, new_ids]))
        return self._table.views(batch, probs)


TokenTable = Table | GrowingTable
"""Creates the explainer's inputs from a black box's batches."""


def plain(token: str, kind: Kind) -> str:
    """Normalized form of a token: a black box that reads text keeps case and spaces."""
    return token.strip().lower() if kind == "words" else token


def vocabulary(data: Data, tokens: Sequence[str], kind: Kind, max_words: int = MAX_WORDS) -> Vocabulary:
    """The most frequent words of these texts; ties in alphabetical order."""
    counts: Counter[str] = Counter()
    for index, count in enumerate(np.bincount(data.text.ids, minlength=len(tokens)).tolist()):
        if count:
            counts[plain(tokens[index], kind)] += count
    words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if word not in SPECIALS]
    return Vocabulary((*SPECIALS, *words[:max_words]), kind)


@dataclass(frozen=True)
class TextSplit:
    """Texts in batches of similar length."""

    data: Data

    def __len__(self) -> int:
        return len(self.data)

    def shuffled(self, size: int, seed: tuple[int, ...]) -> list[Rows]:
        return shuffled(self.data, size, seed)

    def once(self, size: int) -> list[Rows]:
        return list(by_length(self.data, size))


@dataclass(frozen=True)
class TextInputs(TextSplit):
    probs: Tensor  # (N,C)
    table: Table
    device: torch.device

    def views(self, rows: Rows) -> InputBatch:
        batch = collate(self.data, rows).to(self.device)
        return self.table.views(batch, self.probs[rows].to(self.device, torch.float32))

    def widths(self, rows: Rows) -> tuple[int, ...]:
        return self._on_device[0].widths(rows)

    def gather(self, rows: Tensor, widths: tuple[int, ...]) -> InputBatch:
        data, probs = self._on_device
        return self.table.views(data.batch(rows, widths), probs[rows])

    @cached_property
    def _on_device(self) -> tuple[DeviceData, Tensor]:
        """The texts, and the predictions (N,C).  Explainers do not read the questions."""
        return DeviceData(Data(self.data.text), self.device), self.probs.to(self.device, torch.float32)


def text_nets(config: SelectorConfig, words: int, classes: int) -> nn.ModuleDict:
    words += config.variant == "released"  # padding has a vector too
    selector = Selector(words, classes if config.conditioned else 0, config.dimension, config.hidden, config.dropout)
    approximator = partial(APPROXIMATORS[config.approximator], words, classes, config.dimension)
    return as_keras(selector_networks(config, selector, approximator, PLACES, classes))
