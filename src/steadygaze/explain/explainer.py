"""What every explainer is: a model and a batch -> one number per token, with the prediction it explains."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from steadygaze.model import Classifier
from steadygaze.types import Batch


@dataclass(frozen=True, slots=True)
class Saliency:
    weights: Tensor  # (B,T), exactly 0 outside the mask
    logits: Tensor  # (B,C)


class Explainer(ABC):
    """Leaves the model as it was: mode, parameters, gradients and hooks."""

    by_class: ClassVar[bool] = True
    """Whether the answer depends on the class that is asked about."""

    @abstractmethod
    def explain(self, model: Classifier, batch: Batch, target: Tensor | None = None) -> Saliency:
        """Why the class `target` (B,), or the predicted one."""
