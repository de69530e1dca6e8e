"""Batches of texts, cut: some of the rows, or all but some of the words.  Ids and masks, never text read anew."""

from collections.abc import Iterator
from dataclasses import replace

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
    """The texts closed up over what is gone; a (B,T) batch of the same width, padded at the end."""
    left = batch.present & ~gone
    order = (~left).to(torch.uint8).argsort(dim=-1, stable=True)  # what is left first, in its order
    present = left.gather(-1, order)
    ids = batch.ids.gather(-1, order).masked_fill(~present, 0)
    return replace(batch, ids=ids, present=present, mask=batch.mask.gather(-1, order) & present)


def taken(batch: Batch, rows: Tensor) -> Batch:
    """These rows, each as often as it is named.  (K,) -> a batch of K"""
    values = {name: getattr(batch, name) for name in batch.__slots__}
    return replace(batch, **{name: value[rows] for name, value in values.items() if value is not None})


def narrowed(batch: Batch, width: int) -> Batch:
    """Without the columns from `width` on, which must hold padding alone."""
    return replace(batch, ids=batch.ids[:, :width], present=batch.present[:, :width], mask=batch.mask[:, :width])


def parts(batch: Batch, many: int) -> Iterator[Tensor]:
    """All rows in order, so many at a time.  -> (K,) each"""
    for start in range(0, len(batch), many):
        yield torch.arange(start, min(start + many, len(batch)), device=batch.ids.device)
