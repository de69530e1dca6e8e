"""What selectors and approximators see: inputs, whatever they are, and what the black box says of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Views:
    """B inputs, of D units that can be selected: the words of a text, the patches of an image."""

    x: Tensor  # texts: (B,T) ids, 0 on padding; images: (B,C,H,W)
    able: Tensor  # (B,D) bool: units that may be selected
    probs: Tensor  # (B,C) what the black box says of the whole
    rows: Tensor  # (B,) whatever is drawn for an input is drawn from this number
    owner: Tensor | None = None  # (B,T) the unit each token belongs to; None: tokens are units
    places: Tensor | None = None  # (B,S) the black box's tokens among the T, −1: cut off; None: S is T

    def spread(self, mask: Tensor) -> Tensor:
        """From units to tokens.  (B,D) -> (B,T)"""
        return mask if self.owner is None else mask.gather(-1, self.owner)

    def dealt(self, weights: Tensor) -> Tensor:
        """To the black box's tokens, those of a unit sharing what it has evenly.  (B,D) -> (B,S)"""
        if self.places is not None:
            return weights.gather(-1, self.places.clamp_min(0)).masked_fill(self.places < 0, 0.0)
        if self.owner is None:
            return weights
        many = torch.zeros_like(weights).scatter_add(-1, self.owner, torch.ones_like(weights))
        return self.spread(weights / many.clamp_min(1))


class Inputs(Protocol):
    """A split, put to the black box once."""

    def __len__(self) -> int: ...

    @property
    def probs(self) -> Tensor:
        """(N,C)"""

    def shuffled(self, size: int, seed: tuple[int, ...]) -> Sequence[Rows]:
        """The batches of an epoch."""

    def once(self, size: int) -> Sequence[Rows]:
        """Batches in which every input is read once."""

    def views(self, rows: Rows) -> Views: ...
