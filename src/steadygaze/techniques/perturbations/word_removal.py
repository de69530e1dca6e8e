"""Batches of texts, cut: some of the rows, or all but some of the words.  Ids and masks, never text read anew.

Units: what explainers and audits remove together, all tokens of a word or each token by itself.

    text        un  ##believ  ##able  film        [SEP]  a   dog  [SEP]
    begins       x     −        −      x            −    x    x     −
    number       0     0        0      1           −1    2    3    −1

The words of a pair are numbered through: those of the text, then those of the question, T + Q = W tokens in all.
A unit's weight stands on its first token, so that the sum over the tokens of a word is the word's weight.

An explainer that removes each unit of a text of n words reads n² words.  `most` bounds that: in a text of more words a
unit is a segment of ⌈n / most⌉ consecutive words, which share its weight evenly.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.maths import segments
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch


def text_key(batch: Batch) -> Tensor:
    """A number that belongs to the text, whatever split or batch it stands in: its chance is drawn from it.  (B,)"""
    places = torch.arange(1, batch.ids.shape[1] + 1, device=batch.ids.device)
    mixed = RandomKey(1).scramble(batch.ids * 1_000_003 + places).masked_fill(~batch.present, 0)
    return mixed.sum(-1)  # wraps around, as it may


def delete_words(batch: Batch, gone: Tensor) -> Batch:
    """The texts closed up over what is gone; a batch of the same width, padded at the end.

    gone: (B,T), or (B,T+Q) where words of the question go, too
    """
    width = batch.ids.shape[1]
    text = _closed(batch.present & ~gone[:, :width], batch.ids, batch.mask, batch.word_starts)
    found = replace(batch, ids=text[1], present=text[0], mask=text[2], word_starts=text[3])
    if gone.shape[1] == width or batch.question_ids is None or batch.question_present is None:
        return found
    flags = batch.question_mask, batch.question_word_starts
    asked = _closed(batch.question_present & ~gone[:, width:], batch.question_ids, *flags)
    present, ids, mask, begins = asked
    return replace(found, question_ids=ids, question_present=present, question_mask=mask, question_word_starts=begins)


def _closed(left: Tensor, ids: Tensor, *flags: Tensor | None) -> tuple[Any, ...]:
    """Present, ids and flags with what is left first, in its order."""
    order = (~left).to(torch.uint8).argsort(dim=-1, stable=True)
    present = left.gather(-1, order)
    moved = [None if one is None else one.gather(-1, order) & present for one in flags]
    return present, ids.gather(-1, order).masked_fill(~present, 0), *moved


def take_rows(batch: Batch, rows: Tensor) -> Batch:
    """These rows, each as often as it is named.  (K,) -> a batch of K"""
    values = {name: getattr(batch, name) for name in batch.__slots__}
    return replace(batch, **{name: value[rows] for name, value in values.items() if value is not None})


def trim_padding(batch: Batch, width: int, asked: int | None = None) -> Batch:
    """Without the columns from `width` on, those of the question from `asked` on; they must hold padding alone."""
    names = ["ids", "present", "mask", "word_starts"]
    cut = {name: value[:, :width] for name in names if (value := getattr(batch, name)) is not None}
    if asked is not None:
        names = ["question_ids", "question_present", "question_mask", "question_word_starts"]
        cut |= {name: value[:, :asked] for name in names if (value := getattr(batch, name)) is not None}
    return replace(batch, **cut)


def row_chunks(batch: Batch, many: int) -> Iterator[Tensor]:
    """All rows in order, so many at a time.  -> (K,) each"""
    for start in range(0, len(batch), many):
        yield torch.arange(start, min(start + many, len(batch)), device=batch.ids.device)


MOST_UNITS = 1000
"""Of a text, in explainers that remove each."""


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
        """The sum over the tokens of each unit.  (B,W) -> (B,U)"""
        return segments.total(values, self.number, self.mask.shape[1])

    def tokens(self, chosen: Tensor, rows: Tensor | None = None) -> Tensor:
        """All tokens of these units.  (K,U) bool, (K,) -> (K,W) bool; without rows K = B"""
        number = self.number if rows is None else self.number[rows]
        return segments.spread(chosen, number) & (number >= 0)

    def on_first(self, values: Tensor) -> Tensor:
        """A unit's value on its first token, 0 elsewhere; a segment's in equal parts on its words.  (B,U) -> (B,W)"""
        if self.words is None:
            return segments.spread(values, self.number).masked_fill(~self.first, 0.0)
        each = values / self.total(self.words.to(values.dtype)).clamp_min(1)
        return segments.spread(each, self.number).masked_fill(~self.words, 0.0)


def units_of(batch: Batch, *, question: bool = True, most: int | None = None) -> Units:
    """The units of a batch, at most `most` of each text.

    `question`: those of the question too, where its words are known.
    """
    begins = batch.mask if batch.word_starts is None else batch.mask & batch.word_starts
    mask = batch.mask
    if question and batch.question_mask is not None:
        own = (
            batch.question_mask
            if batch.question_word_starts is None
            else batch.question_mask & batch.question_word_starts
        )
        begins, mask = torch.cat([begins, own], 1), torch.cat([mask, batch.question_mask], 1)
    number = (begins.long().cumsum(-1) - 1).masked_fill(~mask, -1)
    if most is not None and int(number.amax()) >= most:
        words = number.amax(-1, keepdim=True) + 1
        size = torch.div(words + most - 1, most, rounding_mode="floor").clamp_min(1)  # ⌈n / most⌉
        number = torch.where(mask, torch.div(number, size, rounding_mode="floor"), -1)
        return Units(number, segments.exists(number, int(number.amax()) + 1), begins)
    return Units(number, segments.exists(number, max(1, int(number.amax()) + 1)))


def warn_segments(units: Units, most: int) -> None:
    """Warn where units are segments: their words cannot be told apart."""
    if units.words is not None:
        many = int(units.words.sum(-1).max())
        warnings.warn(
            f"a text of {many:,} words is explained in at most {most:,} segments of consecutive words, "
            "which share their weight; raise max_units for single words",
            stacklevel=3,
        )


def words_of(batch: Batch) -> Tensor:
    """True on the words of the text and of the question, where they are known.  (B,W) bool"""
    return batch.mask if batch.question_mask is None else torch.cat([batch.mask, batch.question_mask], 1)
