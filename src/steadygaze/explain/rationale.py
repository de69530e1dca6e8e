"""What a model selected, and with what chance: the only words its prediction was made from, whatever class it is."""

from typing import ClassVar

from torch import Tensor

from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.infer import inference
from steadygaze.reader import Ability, Reader
from steadygaze.types import Batch


class Selection(Explainer):
    """What the model selected and read: one forward pass, of models that select."""

    by_class: ClassVar[bool] = False
    needs: ClassVar[frozenset[Ability]] = frozenset({"selection"})
    selects: bool = True

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            said = model(batch, embedded)
        return Saliency(said.weights, said.logits, chances=said.probability)
