"""Removal of rows and words from batches, on ids and masks.

Units: the tokens that explainers and audits remove together, all tokens of a word or each token.

    text        un  ##believ  ##able  film        [SEP]  a   dog  [SEP]
    begins       x     −        −      x            −    x    x     −
    number       0     0        0      1           −1    2    3    −1

The words of a pair are numbered consecutively: the text, then the question, T + Q = W tokens in all.
The weight of a unit is on its first token, so that the sum over the tokens of a word is the word's weight.

An explainer that removes each unit of a text of n words reads n² words.  `max_units` limits this cost.  In a longer
text, a unit is a segment of ⌈n / max_units⌉ consecutive words, which share its weight evenly.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.ragged import segment_exists, segment_spread, segment_sum
from steadygaze.core.types import Batch, Removal

TEXT = ("present", "ids", "mask", "word_starts")
QUESTION = ("question_present", "question_ids", "question_mask", "question_word_starts")
"""Fields of a batch, one value for each token."""


def remove_words(batch: Batch, removed: Tensor, removal: Removal = "delete", padding: int = 0) -> Batch:
    """Return a batch of the same width; deleted words leave padding at the end.

    removed: (B,T), or (B,T+Q) to delete words of the question too
    """
    if removal != "delete":
        return replace(batch, ids=batch.ids.masked_fill(removed, padding))
    width = batch.ids.shape[1]
    left = batch.present & ~removed[:, :width]
    values = _remove(left, batch.ids, batch.mask, batch.word_starts)
    shortened = replace(batch, **dict(zip(TEXT, values, strict=True)))
    if batch.sentences is not None:
        shortened = replace(shortened, sentences=_remove(left, batch.sentences + 1)[1] - 1)  # −1 at padding
    if removed.shape[1] == width or batch.question_ids is None or batch.question_present is None:
        return shortened
    flags = batch.question_mask, batch.question_word_starts
    values = _remove(batch.question_present & ~removed[:, width:], batch.question_ids, *flags)
    return replace(shortened, **dict(zip(QUESTION, values, strict=True)))


def _remove(left: Tensor, ids: Tensor, *flags: Tensor | None) -> tuple[Any, ...]:
    """Return presence, ids and flags with the remaining tokens first, in order."""
    order = (~left).to(torch.uint8).argsort(dim=-1, stable=True)
    present = left.gather(-1, order)
    reordered = [None if flag is None else flag.gather(-1, order) & present for flag in flags]
    return present, ids.gather(-1, order).masked_fill(~present, 0), *reordered


def take_rows(batch: Batch, rows: Tensor) -> Batch:
    """Return these rows, with repetitions.  (K,) -> a batch of K"""
    values = {name: getattr(batch, name) for name in batch.__slots__ if name != "word_keys"}
    return replace(batch, **{name: value[rows] for name, value in values.items() if value is not None})


def trim_padding(batch: Batch, width: int, question_width: int | None = None) -> Batch:
    """Drop columns from `width` on, and of the question from `question_width` on; they must be padding."""
    widths = dict.fromkeys((*TEXT, "sentences"), width)
    if question_width is not None:
        widths |= dict.fromkeys(QUESTION, question_width)
    values = ((name, getattr(batch, name), size) for name, size in widths.items())
    return replace(batch, **{name: value[:, :size] for name, value, size in values if value is not None})


def row_chunks(batch: Batch, size: int) -> Iterator[Tensor]:
    """Iterate over all rows in order, `size` at a time.  -> (K,) each"""
    for start in range(0, len(batch), size):
        yield torch.arange(start, min(start + size, len(batch)), device=batch.ids.device)


MAX_UNITS = 1000
"""Maximum number of units of a text in explainers that remove each unit."""


@dataclass(frozen=True, slots=True)
class Units:
    number: Tensor  # (B,W) long: the unit of each token; −1: not a word, never removed
    mask: Tensor  # (B,U) bool: the units of each text
    words: Tensor | None = None  # (B,W) bool: the first token of each word, where units may be segments

    @property
    def first(self) -> Tensor:
        """True on the first token of each unit.  (B,W) bool"""
        before = self.number.cummax(-1).values.roll(1, -1)
        before[:, :1] = -1
        return self.number > before

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the tokens of each unit.  (B,W) -> (B,U)"""
        return segment_sum(values, self.number, self.mask.shape[1])

    def tokens(self, selected: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return all tokens of these units.  (K,U) bool, (K,) -> (K,W) bool; without rows K = B"""
        number = self.number if rows is None else self.number[rows]
        return segment_spread(selected, number) & (number >= 0)

    def on_first(self, values: Tensor) -> Tensor:
        """Put a unit's value on its first token, or spread a segment's evenly over its words.  (B,U) -> (B,W)"""
        if self.words is None:
            return segment_spread(values, self.number).masked_fill(~self.first, 0.0)
        word_values = values / self.total(self.words.to(values.dtype)).clamp_min(1)
        return segment_spread(word_values, self.number).masked_fill(~self.words, 0.0)


def units_of(batch: Batch, *, question: bool = True, max_units: int | None = None) -> Units:
    """Return the units of a batch, at most `max_units` of each text.

    `question`: include the units of the question, if its words are known.
    """
    begins = batch.mask if batch.word_starts is None else batch.mask & batch.word_starts
    mask = batch.mask
    if question and batch.question_mask is not None:
        question_begins = (
            batch.question_mask
            if batch.question_word_starts is None
            else batch.question_mask & batch.question_word_starts
        )
        begins, mask = torch.cat([begins, question_begins], 1), torch.cat([mask, batch.question_mask], 1)
    number = (begins.long().cumsum(-1) - 1).masked_fill(~mask, -1)
    if max_units is not None and int(number.amax()) >= max_units:
        words = number.amax(-1, keepdim=True) + 1
        size = torch.div(words + max_units - 1, max_units, rounding_mode="floor").clamp_min(1)  # ⌈n / max_units⌉
        number = torch.where(mask, torch.div(number, size, rounding_mode="floor"), -1)
        return Units(number, segment_exists(number, int(number.amax()) + 1), begins)
    return Units(number, segment_exists(number, max(1, int(number.amax()) + 1)))


def warn_segments(units: Units, max_units: int) -> None:
    if units.words is not None:
        words = int(units.words.sum(-1).max())
        warnings.warn(
            f"a text of {words:,} words is explained in at most {max_units:,} segments of consecutive words, "
            "which share their weight; raise max_units for single words",
            stacklevel=3,
        )


def words_of(batch: Batch) -> Tensor:
    """Return True on the words of the text, and of the question if they are known.  (B,W) bool"""
    return batch.mask if batch.question_mask is None else torch.cat([batch.mask, batch.question_mask], 1)
