"""Does the black box say the same of what is selected alone, and of the rest?

Chen et al. 2018 (arXiv:1802.07814), §4: post-hoc accuracy.  Of a selection that explains it does, of the rest it
need not.

    delete   what is not looked at is taken out and the text closes up
    pad      its id becomes that of padding; places stay (the papers' way)
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from steadygaze.infer import inference
from steadygaze.perturb.texts import deleted
from steadygaze.reader import Reader
from steadygaze.types import Batch

Removal = Literal["delete", "pad"]


def said_of(model: Reader, batch: Batch, kept: Tensor, removal: Removal = "delete") -> Tensor:
    """Logits of the texts of which only these words are left.  (B,T) -> (B,C)"""
    gone = batch.mask & ~kept
    if removal == "delete":
        rest = deleted(batch, gone)
    else:
        rest = replace(batch, ids=batch.ids.masked_fill(gone, model.padding))
    with inference(model):
        logits: Tensor = model(rest).logits
    return logits


def of_the_rest(model: Reader, batch: Batch, rest: Tensor, said: Tensor, removal: Removal = "delete") -> Tensor:
    """1 where it still says the same of these words, nan where there are none.  (B,T), (B,) -> (B,)"""
    same = (said_of(model, batch, rest, removal).argmax(-1) == said).double()
    return torch.where(rest.any(-1), same, torch.nan)
