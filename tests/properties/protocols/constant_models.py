"""Explanations and predictions that are written down beforehand, row by row: what a protocol makes of them is known."""

from typing import ClassVar

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.data.batches import Data
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import Capability, Model


class ConstantModel(Model):
    """Predicts what is written down for each row of the split."""

    def __init__(self, label: Tensor) -> None:
        super().__init__()
        self.label = label

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        logits = torch.nn.functional.one_hot(self.label[batch.index], 3).double()
        return type("Output", (), {"weights": None, "logits": logits})


class ConstantExplainer(Explainer):
    """Returns constant weights for each row of the split, as wide as the batch."""

    requires: ClassVar[frozenset[Capability]] = frozenset()

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        weights = self.weights[batch.index][:, : batch.ids.shape[1]].masked_fill(~batch.mask, 0.0)
        return Saliency(weights, model(batch, embedded).logits)


class Costly(ConstantExplainer):
    """The same, of so many passes that a sample will do."""

    forward_passes: ClassVar[int] = 1000


def laid(rows: Tensor | None, data: Data) -> Tensor | None:
    """A row of every text, as wide as the longest or wider -> end to end, as a case has it.  (N,T) -> (M,)"""
    lengths = torch.from_numpy(data.text.lengths).unsqueeze(-1)
    return None if rows is None else rows[torch.arange(rows.shape[1]) < lengths]


def tokens(*rows: str) -> Tensor:
    """`x` is True: a row of words at a glance."""
    return torch.tensor([[letter == "x" for letter in row] for row in rows])
