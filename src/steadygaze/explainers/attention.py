"""Attention weights as an explanation: the same for every class."""

from typing import ClassVar

from torch import Tensor

from steadygaze.core.types import Batch, Unit
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import Capability, Model, inference


class Attention(Explainer):
    """Attention weights: one forward pass, sums to one."""

    class_specific: ClassVar[bool] = False
    requires: ClassVar[frozenset[Capability]] = frozenset({"attention"})
    excludes: ClassVar[frozenset[Capability]] = frozenset({"selection"})

    @property
    def unit(self) -> Unit:
        return "attention"

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            output = model(batch, embedded)
        return Saliency(output.weights, output.logits)
