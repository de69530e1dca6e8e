"""What every explainer is: a model and a batch -> one number per token, with the prediction it explains.

Readings: what networks predict from the selected words alone, the independent reader among them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import one_hot

from steadygaze.core.maths.label_leakage import class_balanced_accuracy, independent_reader_accuracy, leakage_gap
from steadygaze.core.types import Batch
from steadygaze.models.model_protocol import Capability, Model, refuse_non_finite

ACCURACY, GAP = "independent-reader-accuracy", "leakage-gap"
PREDICTED = "predicted"
"""Beside measures of each input: the predicted class, as its position among the classes."""


@dataclass(frozen=True)
class SelectionPredictions:
    """What is predicted from the selected units of each input: logits or probabilities."""

    reader: Tensor  # (B,C) by the independent reader
    random: Tensor  # (B,K,C) by the reader, of K random masks of the same size
    nothing: Tensor  # (B,C) by the reader, of no unit
    own: Tensor | None = None  # (B,C) by the network that was trained on such selections
    gold: Tensor | None = None  # (B,) labels, where these and not the prediction are to be recovered
    any_selection: Tensor | None = None  # (B,) True where the own network predicts the same from random selections

    def measures(self, predicted: Tensor, black_box: Tensor | None = None) -> dict[str, Tensor]:
        """One number per input, by the names of the catalogue.

        `predicted`: the prediction that is explained.  `black_box`: what the model predicts from the selected units
        alone.  (B,C), (B,C) -> (B,) each
        """
        if self.gold is not None:
            predicted = one_hot(self.gold, predicted.shape[-1])
        found = {
            ACCURACY: independent_reader_accuracy(predicted, self.reader.unsqueeze(1)),
            f"{ACCURACY}/random-words": independent_reader_accuracy(predicted, self.random),
            f"{ACCURACY}/no-words": independent_reader_accuracy(predicted, self.nothing.unsqueeze(1)),
        }
        if self.own is not None:
            found[GAP] = leakage_gap(self.own, self.reader, predicted)
            if self.any_selection is not None:
                found[GAP] = found[GAP].masked_fill(self.any_selection, 0.0)
        if self.own is not None and black_box is not None:
            found[f"{GAP}/black-box"] = leakage_gap(self.own, black_box, predicted)
        return found


def class_balanced(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same with gaps in which each predicted class counts alike (core/maths/label_leakage.py: balanced).  (N,)
    each"""
    said = found[PREDICTED]
    return {
        name: class_balanced_accuracy(one, said) if name.startswith(GAP) else one.double()
        for name, one in found.items()
    }


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

    class_specific: ClassVar[bool] = True
    """Whether the answer depends on the class that is asked about."""
    requires: ClassVar[frozenset[Capability]] = frozenset()
    """What a model must be able to do."""
    deletes_words: ClassVar[bool] = False
    """Whether it weighs a word by deleting it alone, as an audit does: that must not be held in its favour."""
    forward_passes: ClassVar[int] = 1
    """About how often it reads a text: an audit asks an expensive one of fewer texts."""
    selects_words: bool = False
    """Whether the words it gives any weight are a selection."""

    @abstractmethod
    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        """Why the class `target` (B,), or the predicted one; of the batch, or of these vectors (B,T,E) in its place.

        Only an explainer that needs vectors or weights is ever given `embedded`.
        """

    def readings(self, model: Model, batch: Batch, saliency: Saliency) -> SelectionPredictions | None:
        """What an independent reader predicts from the words selected here (explainers/learned/independent_reader.py).

        None where no such reader was trained.
        """
        return None

    def reader_accuracy(self, model: Model) -> float | None:
        """How often an independent reader was right from the words selected of held-out texts; None: not known."""
        return None
