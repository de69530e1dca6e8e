"""Base class of explainers: a model and a batch -> one weight per token, with the explained prediction."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import one_hot

from steadygaze.core.errors import UserError
from steadygaze.core.maths.label_leakage import (
    MIN_AGREEMENT,
    arbitrary_selection,
    class_balanced_accuracy,
    independent_reader_accuracy,
    leakage_gap,
)
from steadygaze.core.types import Batch, Unit
from steadygaze.models.inference import MISSING_CAPABILITY, Capability, Model, refuse_non_finite
from steadygaze.perturbations.word_removal import Units

ACCURACY, GAP = "independent-reader-accuracy", "leakage-gap"
ARBITRARY = "arbitrary-selection"
PREDICTED = "predicted"
"""Key of the predicted class, as a class index, in the measures of an input."""


@dataclass(frozen=True)
class SelectionPredictions:
    """Predictions from the selected units of each input: logits or probabilities."""

    reader: Tensor  # (B,C) by the independent reader
    random: Tensor  # (B,K,C) by the reader, from K random masks of the same size
    no_words: Tensor  # (B,C) by the reader, without any unit
    approximator: Tensor | None = None  # (B,C) by the network that was trained on such selections
    gold: Tensor | None = None  # (B,) labels, if these and not the prediction are to be recovered
    agreement: Tensor | None = None  # (B,) share of random selections from which the own network predicts the same
    exempt: bool = False
    """True if a text has no gap if any selection gives the same prediction."""

    def measures(self, predicted: Tensor, black_box: Tensor | None = None) -> dict[str, Tensor]:
        """One number per input, by measure name.

        `predicted`: the explained prediction.  `black_box`: the model's prediction from the selected units alone.
        (B,C), (B,C) -> (B,) each
        """
        if self.gold is not None:
            predicted = one_hot(self.gold, predicted.shape[-1])
        values = {
            ACCURACY: independent_reader_accuracy(predicted, self.reader.unsqueeze(1)),
            f"{ACCURACY}/random-words": independent_reader_accuracy(predicted, self.random),
            f"{ACCURACY}/no-words": independent_reader_accuracy(predicted, self.no_words.unsqueeze(1)),
        }
        if self.approximator is None:
            return values
        values[GAP] = gap = leakage_gap(self.approximator, self.reader, predicted)
        if self.agreement is not None:
            if self.exempt:
                values |= {GAP: gap.masked_fill(self.agreement >= MIN_AGREEMENT, 0.0), f"{GAP}/raw": gap}
            values[ARBITRARY] = arbitrary_selection(self.agreement, gap)
        if black_box is not None:
            values[f"{GAP}/black-box"] = leakage_gap(self.approximator, black_box, predicted)
        return values


def class_balanced(measures: dict[str, Tensor]) -> dict[str, Tensor]:
    """The measures with class-balanced gaps (`class_balanced_accuracy`).  (N,) each"""
    predicted = measures[PREDICTED]
    return {
        name: class_balanced_accuracy(values, predicted) if name.startswith(GAP) else values.double()
        for name, values in measures.items()
    }


@dataclass(frozen=True, slots=True)
class Saliency:
    """Weights of the tokens of a batch, with the explained prediction."""

    weights: Tensor
    """(B,T), exactly 0 outside the mask; signed if the explainer separates positive and negative evidence."""
    logits: Tensor
    """(B,C) the prediction."""
    bounds: tuple[Tensor, Tensor] | None = None
    """(B,T), (B,T): lower and upper bound of each weight, if known."""
    chances: Tensor | None = None
    """(B,T) selection probability of each token, if known."""
    sentences: Tensor | None = None
    """(B,) number of sentences, if one of them is selected."""
    question: Tensor | None = None
    """(B,Q) weights of the question's words, if the explainer covers them."""


def unit_saliency(units: Units, weights: Tensor, batch: Batch, logits: Tensor) -> Saliency:
    """Assign the weights of units (B,U) to their first tokens; those of the question are separate."""
    token_weights, width = units.on_first(weights), batch.ids.shape[1]
    question = token_weights[:, width:] if token_weights.shape[1] > width else None
    return Saliency(token_weights[:, :width], logits, question=question)


def finite_weights(saliency: Saliency, batch: Batch) -> Tensor:
    """(B,T) the weights of the words in double precision; NaN and infinity raise an error that names the text."""
    refuse_non_finite(batch, saliency.weights.masked_fill(~batch.mask, 0.0))
    return saliency.weights.double()


@dataclass(frozen=True)
class ReaderFacts:
    """Results of the independent reader on held-out selections."""

    accuracy: float | None = None
    """Share of right predictions; None: not known."""
    arbitrary: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For predicted classes: texts with an arbitrary selection, and all texts.  Empty: none, or not known."""


class Explainer(ABC):
    """Base class of explainers: a subclass defines `explain` and is registered in `EXPLAINERS`.

    An explainer does not change the model's mode, parameters, gradients or hooks.  Its random draws depend on the text
    alone.
    """

    class_specific: ClassVar[bool] = True
    """True if the weights depend on the explained class."""
    requires: ClassVar[frozenset[Capability]] = frozenset()
    """Capabilities that the model must have."""
    excludes: ClassVar[frozenset[Capability]] = frozenset()
    """Capabilities that the model must not have."""
    deletes_words: ClassVar[bool] = False
    """True if it weighs a word by deleting it, as audits do: such agreement is not counted in its favor."""
    forward_passes: ClassVar[int] = 1
    """Approximate forward passes per text: audits use fewer texts for an expensive explainer."""
    selects_words: bool = False
    """True if the words with nonzero weight are a selection."""

    def passes(self, words: float) -> float:
        """Forward passes of a text of this many words, about.

        Parameters
        ----------
        words : float
            Number of words.

        Returns
        -------
        float
            `forward_passes`, unless an explainer needs as many as there are words.
        """
        return self.forward_passes

    @property
    def unit(self) -> Unit:
        """The quantity that a weight measures; unless it is a change of an output, a share of all weight is drawn."""
        return "selection" if self.selects_words else "relative"

    @abstractmethod
    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        """Return the weights of the tokens of a batch.

        Parameters
        ----------
        model : Model
            The model; it has the capabilities in `requires`.
        batch : Batch
            Texts, as padded ids.
        target : Tensor, default=None
            Index of the explained class of each text, (B,); None: the predicted class.
        embedded : Tensor, default=None
            Word vectors (B,T,E) that replace those of the batch.  Only explainers that need vectors or weights get
            them.

        Returns
        -------
        Saliency
            Weights and logits.
        """

    def readings(self, model: Model, batch: Batch, saliency: Saliency) -> SelectionPredictions | None:
        """Return predictions of the independent reader from the selected words.

        Parameters
        ----------
        model : Model
            The explained model.
        batch : Batch
            Texts, as padded ids.
        saliency : Saliency
            Their weights.

        Returns
        -------
        SelectionPredictions or None
            None: no reader was trained.
        """
        return None

    def reader_facts(self, model: Model) -> ReaderFacts:
        """Return the results of the independent reader on held-out selections.

        Parameters
        ----------
        model : Model
            The explained model.

        Returns
        -------
        ReaderFacts
            Its accuracy, and how often the selection is arbitrary, if known.
        """
        return ReaderFacts()


SELECTS = "the model selects words and has a rationale, not attention"


def missing_capability(explainer: Explainer, model: Model | type[Model]) -> str:
    """The reason why the explainer cannot explain the model; '': it can."""
    if explainer.excludes & model.capabilities:
        return SELECTS
    lacking = explainer.requires - model.capabilities
    return MISSING_CAPABILITY[max(lacking)] if lacking else ""


def check_distinct(names: Sequence[str]) -> None:
    """Refuse explainers of the same name, whose results would have the same key."""
    if len(set(names)) < len(names):
        raise UserError(f"two of the explainers {', '.join(names):.99} have the same name; pass them in separate calls")
