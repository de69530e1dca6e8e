"""What a model selected, and with what chance: the only words its predictor read, whatever class it is."""

from typing import ClassVar

from torch import Tensor

from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.rationale_reader import rationale_readings
from steadygaze.explain.readings import Readings
from steadygaze.infer import inference
from steadygaze.rationaliser import Rationaliser
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

    def readings(self, model: Reader, batch: Batch, saliency: Saliency) -> Readings | None:
        if not isinstance(model, Rationaliser):
            return None
        return rationale_readings(model, batch, saliency.weights > 0, saliency.logits)

    def reader_accuracy(self, model: Reader) -> float | None:
        return model.reader.accuracy if isinstance(model, Rationaliser) and model.reader is not None else None
