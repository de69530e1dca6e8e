"""The attention weights themselves: what the decoder was given of each token, whatever class is asked about."""

from typing import ClassVar

from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Ability, Reader


class Attention(Explainer):
    """Attention weights: one forward pass, sums to one."""

    by_class: ClassVar[bool] = False
    needs: ClassVar[frozenset[Ability]] = frozenset({"weights"})

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            said = model(batch, embedded)
        return Saliency(said.weights, said.logits)
