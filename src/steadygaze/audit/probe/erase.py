"""The heaviest words erased, or all others: what is predicted then?

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4: of a text of n words, ⌈q·n⌉ for each share q.

    removal    delete   the words are taken out and the text closes up
               pad      their id becomes that of padding; their places stay
               zero     their vectors become 0; their places stay

Departs from the paper: nothing known.  Each text loses its own words, whatever its batch.
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from steadygaze.audit.probe.look import look
from steadygaze.infer import inference
from steadygaze.maths.rank import top
from steadygaze.reader import Reader
from steadygaze.types import Batch

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of the words: ERASER's."""
ROUNDING = 1e-9
"""0.07 · 100 is 7 words, but 7.000000000000001 in doubles: more than they err by, and less than any share tells."""
Removal = Literal["delete", "pad", "zero"]


def without(
    model: Reader,
    batch: Batch,
    saliency: Tensor,
    shares: tuple[float, ...] = SHARES,
    *,
    keep: bool = False,
    removal: Removal = "delete",
) -> Tensor:
    """Probabilities with the heaviest words erased, or (`keep`) with all words but those.  (B,T) -> (B,K,C)"""
    words = batch.mask.sum(-1)
    found = []
    for share in shares:
        many = (words.double() * share - ROUNDING).ceil().long()
        heaviest = top(saliency, batch.mask, many)
        gone = batch.mask & (~heaviest if keep else heaviest)
        found.append(_look(model, batch, gone, removal))
    return torch.stack(found, 1)


def deleted(batch: Batch, gone: Tensor) -> Batch:
    """The texts closed up over what is gone; a (B,T) batch of the same width, padded at the end."""
    left = batch.present & ~gone
    order = (~left).to(torch.uint8).argsort(dim=-1, stable=True)  # what is left first, in its order
    present = left.gather(-1, order)
    ids = batch.ids.gather(-1, order).masked_fill(~present, 0)
    return replace(batch, ids=ids, present=present, mask=batch.mask.gather(-1, order) & present)


def _look(model: Reader, batch: Batch, gone: Tensor, removal: Removal) -> Tensor:
    if removal == "delete":
        return look(model, deleted(batch, gone)).probs
    if removal == "pad":
        return look(model, replace(batch, ids=batch.ids.masked_fill(gone, model.padding))).probs
    with inference(model):
        embedded = model.embed(batch).masked_fill(gone.unsqueeze(-1), 0.0)
    return look(model, batch, embedded).probs
