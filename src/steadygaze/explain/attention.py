"""The attention weights themselves: what the decoder was given of each token, whatever class is asked about."""

from typing import ClassVar

from torch import Tensor

from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.infer import inference
from steadygaze.model import Classifier
from steadygaze.types import Batch


class Attention(Explainer):
    """Attention weights: one forward pass, sums to one."""

    by_class: ClassVar[bool] = False

    def explain(self, model: Classifier, batch: Batch, target: Tensor | None = None) -> Saliency:
        with inference(model):
            forward = model(batch)
        return Saliency(forward.weights, forward.logits)
