"""One output of a multi-label or regression model as a model of two classes, so that every explainer and audit applies.

multi-label   logits (0, z_k)           p(label k) = sigmoid(z_k)
regression    logits (0, v)             to explain: the logit of the second class is the value
              logits (0, (v − t) / s)   to audit: is the value above t?  t: threshold, s: scale
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.types import Batch
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
