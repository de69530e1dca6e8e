"""A black box whose words multiply the probability of a class: the loss without one is a logarithm worked by hand."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from steadygaze.core.ragged import TokenArray, row_starts
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data
from steadygaze.explainers.learned.black_box_queries import query
from steadygaze.explainers.learned.text_inputs import Table, TextInputs
from steadygaze.models.inference import Model

BASE = 0.1125
TIMES = [1.0, 2.0, 4.0, 8 / 9, 1.0, 0.5]
"""By id: 0 is padding, 5 what stands for padding in a text."""
A, B, C, PLAIN, STANDS = 1, 2, 3, 4, 5


class Products(Model):
    """p(class 1) = BASE · the product of TIMES over all present tokens; counts its queries, and can fail."""

    def __init__(self, fails_after: int | None = None) -> None:
        super().__init__()
        self.read: list[Batch] = []
        self.fails_after = fails_after
        self.padding = STANDS

    @property
    def query_count(self) -> int:
        return sum(map(len, self.read))

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> SimpleNamespace:
        if self.fails_after is not None and len(self.read) >= self.fails_after:
            raise RuntimeError("out of luck")
        self.read.append(batch)
        times = torch.tensor(TIMES, dtype=torch.float64)[batch.ids].masked_fill(~batch.present, 1.0)
        probability = BASE * times.prod(-1)
        return SimpleNamespace(weights=None, logits=torch.stack([1 - probability, probability], -1).log())


class Changing(Products):
    """The same, after so many calls changed."""

    def __init__(self, change: Callable[[Tensor], Tensor], after: int) -> None:
        super().__init__()
        self.change, self.after = change, after

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> SimpleNamespace:
        output = super().forward(batch).logits
        return SimpleNamespace(weights=None, logits=self.change(output) if len(self.read) > self.after else output)


def data_of(*texts: Sequence[int], specials: bool = False) -> Data:
    """Ids as a split; with `specials` the first of each text is no word."""
    starts = row_starts(np.array([len(text) for text in texts]))
    words = np.ones(starts[-1], np.bool_)
    if specials:
        words[starts[:-1]] = False
    ids = np.array([index for text in texts for index in text], np.int32)
    return Data(TokenArray(ids, words, starts, np.zeros(len(texts), np.bool_)))


def table(many: int = len(TIMES), continues: Sequence[int] = ()) -> Table:
    """Every id by its own number; `continues`: ids that go on with a word."""
    goes_on = torch.zeros(many, dtype=torch.bool)
    goes_on[list(continues)] = True
    return Table(torch.arange(many) + 1, goes_on if continues else None)


def inputs_of(data: Data, model: Model | None = None, known: Table | None = None) -> TextInputs:
    """Put to the black box."""
    return TextInputs(data, query(model or Products(), data), known or table(), torch.device("cpu"))
