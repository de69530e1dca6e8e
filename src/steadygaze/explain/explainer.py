"""What every explainer is: a model and a batch -> one number per token, with the prediction it explains."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from steadygaze.explain.readings import Readings
from steadygaze.reader import Ability, Reader, refuse_non_finite
from steadygaze.types import Batch


@dataclass(frozen=True, slots=True)
class Saliency:
    weights: Tensor  # (B,T), exactly 0 outside the mask; signed where the explainer can tell for from against
    logits: Tensor  # (B,C)
    bounds: tuple[Tensor, Tensor] | None = None  # (B,T), (B,T): between which each weight is, where that is known
    chances: Tensor | None = None  # (B,T) how likely each token was to be selected, where that is known
    question: Tensor | None = None  # (B,Q) weights of the question's words, where the explainer covers them


def finite_weights(saliency: Saliency, batch: Batch) -> Tensor:
    """(B,T) the weights of the words in double precision; NaN or infinity is refused, and the text is named."""
    refuse_non_finite(batch, saliency.weights.masked_fill(~batch.mask, 0.0))
    return saliency.weights.double()


class Explainer(ABC):
    """Leaves the model as it was: mode, parameters, gradients and hooks.  What it draws belongs to the text."""

    by_class: ClassVar[bool] = True
    """Whether the answer depends on the class that is asked about."""
    needs: ClassVar[frozenset[Ability]] = frozenset()
    """What a model must be able to do."""
    deletes_words: ClassVar[bool] = False
    """Whether it weighs a word by deleting it alone, as an audit does: that must not be held in its favour."""
    passes: ClassVar[int] = 1
    """About how often it reads a text: an audit asks an expensive one of fewer texts."""
    selects: bool = False
    """Whether the words it gives any weight are a selection."""

    @abstractmethod
    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        """Why the class `target` (B,), or the predicted one; of the batch, or of these vectors (B,T,E) in its place.

        Only an explainer that needs vectors or weights is ever given `embedded`.
        """

    def readings(self, model: Reader, batch: Batch, saliency: Saliency) -> Readings | None:
        """What an independent reader predicts from the words selected here (explain/learned/independent_reader.py).

        None where no such reader was trained.
        """
        return None

    def reader_accuracy(self, model: Reader) -> float | None:
        """How often an independent reader was right from the words selected of held-out texts; None: not known."""
        return None
