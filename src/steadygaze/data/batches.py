"""Ids -> Batch: padded to the longest text of its own batch, texts of like length together.

Data        a split as ragged ids, with labels and weights
shuffled    the batches of one training epoch, from a seed alone
by_length   batches for reading a split once, shortest texts first
collate     some rows of a split as one Batch
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts
from steadygaze.core.types import Batch

NOISE = 0.1
"""Lengths are blurred by this share before sorting, so that the same texts do not meet in every epoch."""


@dataclass(frozen=True, slots=True)
class Data:
    """One split, encoded once."""

    text: TokenArray
    question: TokenArray | None = None
    label: NDArray[np.int64] | None = None
    weight: NDArray[np.float32] | None = None
    word_starts: NDArray[np.bool_] | None = None
    """Per token of all texts: whether a unit (a word of several pieces) begins there.  None: every token is a unit."""
    question_word_starts: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.text)


def placed_data(text: TokenizedTexts, question: TokenizedTexts | None = None, *, whole_words: bool) -> Data:
    """Unlabeled texts; `whole_words`: all pieces of a word are one unit."""
    pieces = [None if one is None or not whole_words else one.word_starts for one in (text, question)]
    asked = None if question is None else question.ragged
    return Data(text.ragged, asked, word_starts=pieces[0], question_word_starts=pieces[1])


def shuffled(data: Data, batch_size: int, seed: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Rows of each batch of one epoch: sorted by blurred length, cut, the cuts shuffled.  Every row exactly once."""
    random = np.random.default_rng(seed)
    lengths = data.text.lengths * random.uniform(1 - NOISE, 1 + NOISE, len(data))
    order = np.argsort(lengths, kind="stable")
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return [batches[i] for i in random.permutation(len(batches))]


def by_length(data: Data, batch_size: int, max_tokens: int = 1 << 16) -> Iterator[NDArray[np.int64]]:
    """Rows of each batch, by rising length; fewer rows where they would be over `max_tokens`, padding included."""
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
        word_starts=_pad_flags(data.text, data.word_starts, rows),
        question_word_starts=None
        if data.question is None
        else _pad_flags(data.question, data.question_word_starts, rows),
    )


def _pad_flags(ragged: TokenArray, flags: NDArray[np.bool_] | None, rows: NDArray[np.int64]) -> torch.Tensor | None:
    """(B,T) bool, False where there is no token."""
    if flags is None:
        return None
    where, present = _where(ragged, rows)
    found = np.zeros(present.shape, np.bool_)
    found[present] = flags[where]
    return torch.from_numpy(found)


def _where(ragged: TokenArray, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the tokens of these rows are among all, and which places of a padded batch they take."""
    starts, lengths = ragged.starts[rows], ragged.lengths[rows]
    columns = np.arange(lengths.max(initial=1))
    present = columns < lengths[:, None]  # (B,T)
    return (starts[:, None] + columns)[present], present


def _pad(ragged: TokenArray, rows: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(B,T) ids with 0 where there is no token, present, mask."""
    where, present = _where(ragged, rows)
    ids, mask = np.zeros(present.shape, np.int64), np.zeros(present.shape, np.bool_)
    ids[present], mask[present] = ragged.ids[where], ragged.words[where]
    return torch.from_numpy(ids), torch.from_numpy(present), torch.from_numpy(mask)
