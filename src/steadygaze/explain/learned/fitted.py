"""Fitted: a selector as an explainer, one forward pass beside the black box's own."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from steadygaze.attend import k_subset
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.learned.independent_reader import read, uniform_subsets
from steadygaze.explain.learned.selecting import Selecting
from steadygaze.explain.learned.texts import Seeing
from steadygaze.explain.learned.views import Views
from steadygaze.explain.readings import Readings
from steadygaze.infer import inference
from steadygaze.maths import masked
from steadygaze.reader import Reader
from steadygaze.types import Batch


class Fitted(Explainer):
    """A fitted selector: the k words it takes, each with the chance of being drawn first; no other word has any."""

    by_class: ClassVar[bool] = False
    selects = True

    def __init__(
        self, name: str, how: Selecting, nets: nn.ModuleDict, table: Seeing, accuracy: float | None = None
    ) -> None:
        """`accuracy`: of the independent reader on held-out texts, where it is known."""
        self.name, self.how, self.nets, self.table, self.accuracy = name, how, nets, table, accuracy

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits: Tensor = model(batch).logits
        views, scores = self._scores(batch, logits)
        floor = torch.finfo(torch.float64).tiny  # selected is selected, however sure the selector is of another
        shares = masked.softmax(scores.double(), views.able).clamp_min(floor)
        return Saliency(views.dealt(shares * k_subset.hard(scores, views.able, self.how.k)) * batch.mask, logits)

    def own(self, batch: Batch, saliency: Saliency) -> Tensor:
        """What the approximator predicts from the selected words.  (B,C)"""
        views, chosen = self._selected(batch, saliency)
        with inference(self.nets):
            found: Tensor = self.nets["approximator"](views, chosen)
        return found

    def readings(self, model: Reader, batch: Batch, saliency: Saliency) -> Readings | None:
        if "reader" not in self.nets:  # a folder of version 0.1.0
            return None
        draw = uniform_subsets(self.how.k)
        return read(self.nets["reader"], *self._selected(batch, saliency), draw, self.own(batch, saliency))

    def reader_accuracy(self, model: Reader) -> float | None:
        return self.accuracy

    def told(self, batch: Batch, saliency: Saliency) -> Tensor:
        """log P(y|m): what the mask alone tells of each class.  (B,C)"""
        with inference(self.nets):
            found: Tensor = self.nets["judge"](self._selected(batch, saliency)[1])
        return found

    def _selected(self, batch: Batch, saliency: Saliency) -> tuple[Views, Tensor]:
        """What the networks see, and 1.0 on the units that are selected, padding among them if it can be.  (B,D)"""
        views, scores = self._scores(batch, saliency.logits)
        return views, k_subset.hard(scores, views.able, self.how.k)

    def _scores(self, batch: Batch, logits: Tensor) -> tuple[Views, Tensor]:
        """What the selector gives each unit.  (B,D)"""
        views = self.views(batch, logits)
        with inference(self.nets):
            scores: Tensor = self.nets["selector"](views, views.probs if self.how.query else None)
        return views, scores

    def views(self, batch: Batch, logits: Tensor) -> Views:
        """A batch of the black box's, as the networks see it."""
        return self.table.views(batch, logits.double().softmax(-1).float())
