"""Token ids -> Batch: padded to the longest text of the batch; texts of similar length are batched together.

Data        a split as ragged ids, with labels and weights
shuffled    the batches of one training epoch, from a seed alone
by_length   batches for reading a split once, shortest texts first
collate     some rows of a split as one Batch
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts
from steadygaze.core.types import Batch, Sentences
from steadygaze.data.token_alignment import sentence_tokens

MAX_TOKENS = 1 << 16
"""Tokens of a batch, padding included."""
NOISE = 0.1
"""Relative noise of the lengths before sorting, so that batches differ between epochs."""


@dataclass(frozen=True, slots=True)
class Data:
    """One encoded split."""

    text: TokenArray
    question: TokenArray | None = None
    label: NDArray[np.int64] | None = None
    weight: NDArray[np.float32] | None = None
    word_starts: NDArray[np.bool_] | None = None
    """Per token of all texts: a unit (a word of several subwords) begins there.  None: every token is a unit."""
    question_word_starts: NDArray[np.bool_] | None = None
    sentences: NDArray[np.int64] | None = None
    """Per token of all texts: its given sentence, from 0; −1: not given.  None: no text has given sentences."""

    def __len__(self) -> int:
        return len(self.text)


def placed_data(
    text: TokenizedTexts,
    question: TokenizedTexts | None = None,
    *,
    whole_words: bool,
    sentences: Sentences | None = None,
) -> Data:
    """Unlabeled texts; `whole_words`: all subwords of a word are one unit."""
    starts = [None if part is None or not whole_words else part.word_starts for part in (text, question)]
    question_ids = None if question is None else question.ragged
    units = given_sentences(text, sentences)
    return Data(text.ragged, question_ids, word_starts=starts[0], question_word_starts=starts[1], sentences=units)


def given_sentences(text: TokenizedTexts, sentences: Sentences | None) -> NDArray[np.int64] | None:
    """The given sentence of each token of all texts, for `Data`."""
    if sentences is None:
        return None
    numbers = np.full(len(text.ragged.ids), -1)
    parts = [sentence_tokens(spans, units or ()) for spans, units in zip(text.spans, sentences, strict=True)]
    numbers[text.ragged.words] = np.concatenate([np.zeros(0, np.int64), *parts])
    return numbers


def shuffled(
    data: Data, batch_size: int, seed: tuple[int, ...], order_seed: tuple[int, ...] | None = None
) -> list[NDArray[np.int64]]:
    """Rows of each batch of one epoch: sorted by noisy length, split into batches, batches shuffled.

    `order_seed`: seed of the last part.  Batches of several models then have about the same length in each step.
    """
    random = np.random.default_rng(seed)
    lengths = data.text.lengths * random.uniform(1 - NOISE, 1 + NOISE, len(data))
    order = np.argsort(lengths, kind="stable")
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    order_random = random if order_seed is None else np.random.default_rng(order_seed)
    return [batches[i] for i in order_random.permutation(len(batches))]


def by_length(data: Data, batch_size: int, max_tokens: int = MAX_TOKENS) -> Iterator[NDArray[np.int64]]:
    """Rows of each batch, by increasing length, with at most `max_tokens` including padding."""
    if batch_size < 1:
        raise UserError(f"batch_size must be a whole number from 1 up, found {batch_size}")
    parts = [ragged.lengths for ragged in (data.text, data.question) if ragged is not None]
    order = np.argsort(parts[0], kind="stable")
    while len(order):
        rows = order[:batch_size]
        while len(rows) > 1 and len(rows) * sum(lengths[rows].max() for lengths in parts) > max_tokens:
            rows = rows[: (len(rows) + 1) // 2]
        yield rows
        order = order[len(rows) :]


def collate(data: Data, rows: NDArray[np.int64]) -> Batch:
    """Some rows as one padded batch."""
    ids, present, mask = _pad(data.text, rows)
    question = (None, None, None) if data.question is None else _pad(data.question, rows)
    question_ids, question_present, question_mask = question
    return Batch(
        ids=ids,
        present=present,
        mask=mask,
        index=torch.from_numpy(rows),
        label=None if data.label is None else torch.from_numpy(data.label[rows]),
        weight=None if data.weight is None else torch.from_numpy(data.weight[rows]),
        question_ids=question_ids,
        question_present=question_present,
        question_mask=question_mask,
        word_starts=_pad_values(data.text, data.word_starts, rows, False),
        question_word_starts=None
        if data.question is None
        else _pad_values(data.question, data.question_word_starts, rows, False),
        sentences=_pad_values(data.text, data.sentences, rows, -1),
        word_keys=None if data.text.word_keys is None else data.text.word_keys(),
    )


def _pad_values(
    ragged: TokenArray, values: NDArray[Any] | None, rows: NDArray[np.int64], padding: int
) -> torch.Tensor | None:
    """The values of the tokens of these rows.  (B,T)"""
    if values is None:
        return None
    indices, present = _where(ragged, rows)
    padded = np.full(present.shape, padding, values.dtype)
    padded[present] = values[indices]
    return torch.from_numpy(padded)


def _where(ragged: TokenArray, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions of the tokens of these rows among all tokens, and in the padded batch."""
    lengths = ragged.lengths[rows]
    present = np.arange(lengths.max(initial=1)) < lengths[:, None]  # (B,T)
    return ragged.indices(rows), present


def _pad(ragged: TokenArray, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(B,T) ids with 0 at padding, present, mask."""
    indices, present = _where(ragged, rows)
    ids, mask = np.zeros(present.shape, np.int64), np.zeros(present.shape, np.bool_)
    ids[present], mask[present] = ragged.ids[indices], ragged.words[indices]
    return torch.from_numpy(ids), torch.from_numpy(present), torch.from_numpy(mask)
