"""Batches of texts, cut: some of the rows, or all but some of the words.  Ids and masks, never text read anew."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from steadygaze.maths.chance import Chance
from steadygaze.types import Batch


def text_key(batch: Batch) -> Tensor:
    """A number that belongs to the text, whatever split or batch it stands in: its chance is drawn from it.  (B,)"""
    places = torch.arange(1, batch.ids.shape[1] + 1, device=batch.ids.device)
    mixed = Chance(1).scramble(batch.ids * 1_000_003 + places).masked_fill(~batch.present, 0)
    return mixed.sum(-1)  # wraps around, as it may


def deleted(batch: Batch, gone: Tensor) -> Batch:
    """The texts closed up over what is gone; a batch of the same width, padded at the end.

    gone: (B,T), or (B,T+Q) where words of the question go, too
    """
    width = batch.ids.shape[1]
    text = _closed(batch.present & ~gone[:, :width], batch.ids, batch.mask, batch.begins)
    found = replace(batch, ids=text[1], present=text[0], mask=text[2], begins=text[3])
    if gone.shape[1] == width or batch.question_ids is None or batch.question_present is None:
        return found
    flags = batch.question_mask, batch.question_begins
    asked = _closed(batch.question_present & ~gone[:, width:], batch.question_ids, *flags)
    present, ids, mask, begins = asked
    return replace(found, question_ids=ids, question_present=present, question_mask=mask, question_begins=begins)


def _closed(left: Tensor, ids: Tensor, *flags: Tensor | None) -> tuple[Any, ...]:
    """Present, ids and flags with what is left first, in its order."""
    order = (~left).to(torch.uint8).argsort(dim=-1, stable=True)
    present = left.gather(-1, order)
    moved = [None if one is None else one.gather(-1, order) & present for one in flags]
    return present, ids.gather(-1, order).masked_fill(~present, 0), *moved


def taken(batch: Batch, rows: Tensor) -> Batch:
    """These rows, each as often as it is named.  (K,) -> a batch of K"""
    values = {name: getattr(batch, name) for name in batch.__slots__}
    return replace(batch, **{name: value[rows] for name, value in values.items() if value is not None})


def narrowed(batch: Batch, width: int, asked: int | None = None) -> Batch:
    """Without the columns from `width` on, those of the question from `asked` on; they must hold padding alone."""
    names = ["ids", "present", "mask", "begins"]
    cut = {name: value[:, :width] for name in names if (value := getattr(batch, name)) is not None}
    if asked is not None:
        names = ["question_ids", "question_present", "question_mask", "question_begins"]
        cut |= {name: value[:, :asked] for name in names if (value := getattr(batch, name)) is not None}
    return replace(batch, **cut)


def parts(batch: Batch, many: int) -> Iterator[Tensor]:
    """All rows in order, so many at a time.  -> (K,) each"""
    for start in range(0, len(batch), many):
        yield torch.arange(start, min(start + many, len(batch)), device=batch.ids.device)
