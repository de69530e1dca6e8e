"""One output of a multi-label or regression model as a model of two classes, so that every explainer and audit applies.

multi-label   logits (0, z_k)           p(label k) = sigmoid(z_k)
regression    logits (0, v)             to explain: the logit of the second class is the value
              logits (0, (v − t) / s)   to audit: is the value above t?  t: threshold, s: scale
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.types import Batch, Label
from steadygaze.data.text_checks import is_missing
from steadygaze.models.inference import Model


class SingleOutput(Model):
    """The output at `index` of a model, as two classes."""

    def __init__(self, model: Model, index: int, threshold: float = 0.0, scale: float = 1.0) -> None:
        super().__init__()
        self.model = model
        self.capabilities = model.capabilities
        self.padding = model.padding
        self._index, self._threshold, self._scale = index, threshold, scale

    @property
    def vectors(self) -> Tensor:
        return self.model.vectors

    def embed(self, batch: Batch) -> Tensor:
        return self.model.embed(batch)

    def embed_question(self, batch: Batch) -> Tensor | None:
        return self.model.embed_question(batch)

    def clear_cache(self) -> None:
        self.model.clear_cache()

    def forward(self, batch: Batch, *vectors: Tensor | None) -> Any:
        output = self.model(batch, *vectors)
        return replace(output, logits=self._two_classes(output.logits))

    def logits(self, batch: Batch, *vectors: Tensor | None) -> Tensor:
        return self._two_classes(self.model.logits(batch, *vectors))

    def _two_classes(self, logits: Tensor) -> Tensor:
        """(B,K) -> (B,2)"""
        value = (logits[:, self._index] - self._threshold) / self._scale
        return torch.stack([torch.zeros_like(value), value], 1)


def binary_labels(labels: Iterable[Any], name: Label, index: int) -> list[Label]:
    """Whether each text has the label; rows may be sets of names, rows of 0 and 1, or 0 and 1 for this label.

    >>> binary_labels([{"toxic"}, [], [0, 1], 1], "toxic", 1)
    ['toxic', 'not toxic', 'toxic', 'toxic']
    """
    return [_binary(label, name, index) for label in labels]


def _binary(label: Any, name: Label, index: int) -> Label:
    label = label.tolist() if hasattr(label, "tolist") else label  # NumPy
    if isinstance(label, Iterable) and not isinstance(label, str):
        items = list(label)
        has_numbers = bool(items) and all(isinstance(item, int | float) for item in items)
        label = items[index] if has_numbers else str(name) in map(str, items)
    present: Label = label  # check_labels checks others
    return (str(name) if label else f"not {name}") if label in (0, 1) else present


def numbers(labels: Iterable[Any]) -> list[float]:
    """Labels of a regression model."""
    values = []
    for i, label in enumerate(labels):
        try:
            values.append(float("nan") if is_missing(label) else float(label))
        except (TypeError, ValueError):
            raise UserError(f"labels[{i}] is {label!r:.40}; a regression model needs numbers") from None
        if not np.isfinite(values[-1]):
            raise UserError(f"labels[{i}] is {label!r:.40}; a regression model needs finite numbers")
    return values
