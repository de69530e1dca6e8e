"""Explainers that delete words: from the outputs of texts without some of their units, a weight for each unit.

A unit is all tokens of a word, or a segment of words (perturbations/word_removal.py).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Unit
from steadygaze.explainers.class_probability import CleanPrediction, Output, clean_prediction, predict_without
from steadygaze.explainers.explainer import Explainer, Saliency, unit_saliency
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import MAX_UNITS, Units, row_chunks, take_rows, units_of, warn_segments

MOST_SAMPLES = 100_000
"""Most subsets of a text: a hundred times LIME's default."""
PER_WORD = 4
"""Fewest subsets per word: with fewer than one, the regression is underdetermined."""
ENTRIES = 1 << 21
"""Subsets × tokens in memory, in double precision."""


@settings
class WordDeletion(Explainer):
    """Base of explainers that weigh the units of a text by deleting them."""

    deletes_words: ClassVar[bool] = True

    max_units: Annotated[int, Field(ge=1)] = MAX_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""
    output: Output = "probability"
    """The explained output: the probability or the logit of the class."""

    @property
    def unit(self) -> Unit:
        return self.output

    @abstractmethod
    def weigh(self, model: Model, batch: Batch, clean: CleanPrediction, units: Units) -> Tensor:
        """Weight of each unit.  (B,U)"""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        clean = clean_prediction(model, batch, target, output=self.output)
        units = units_of(batch, max_units=self.max_units)
        warn_segments(units, self.max_units)
        return unit_saliency(units, self.weigh(model, batch, clean, units), batch, clean.logits)


@dataclass(frozen=True, slots=True)
class Subsets:
    units: Units
    masks: Tensor  # (B,S,U) bool
    share: Tensor  # (B,S) sums to one in each text with subsets; 0: unused

    def read(self, model: Model, batch: Batch, aim: Tensor, output: Output) -> Tensor:
        """Output of the explained class for each subset.  (B,S), 0 for unused ones"""
        values = torch.zeros_like(self.share)
        for rows, number in chunks(self.share != 0, self.units.number.shape[1]):
            removed = self.units.tokens(~self.masks[rows, number], rows)
            values[rows, number] = predict_without(model, batch, rows, removed, aim, output)
        return values


@settings
class SubsetExplainer(WordDeletion):
    """Base of explainers that solve a regression on subsets of the units."""

    seed: Annotated[int, Field(ge=0)] = 0
    """Random seed."""
    samples: int
    """Forward passes with deleted words per text."""

    @abstractmethod
    def subsets(self, batch: Batch) -> Subsets:
        """Subsets of each text."""

    def solve_groups(
        self,
        model: Model,
        batch: Batch,
        clean: CleanPrediction,
        units: Units,
        solve: Callable[[Subsets, Tensor, Tensor], Tensor],
    ) -> Tensor:
        """Weights of all units, (B,U).  `solve`: from subsets, their outputs (G,S) and their rows (G,) -> (G,U)"""
        weights = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows in groups(batch, self.samples):
            part = take_rows(batch, rows)
            subsets = self.subsets(part)
            solution = solve(subsets, subsets.read(model, part, clean.target_class[rows], self.output), rows)
            weights[rows, : solution.shape[1]] = solution
        return weights


def chunks(mask: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Positions that are True, in chunks for which a row of `width` tokens each fits in memory.  (B,N)"""
    rows, number = mask.nonzero(as_tuple=True)
    size = max(1, ENTRIES // width)
    for start in range(0, len(rows), size):
        yield rows[start : start + size], number[start : start + size]


def groups(batch: Batch, samples: int) -> Iterator[Tensor]:
    """Rows of texts to process together: memory does not grow with the batch."""
    width = batch.ids.shape[1] + (0 if batch.question_mask is None else batch.question_mask.shape[1])
    return row_chunks(batch, max(1, ENTRIES // (width * max(samples, PER_WORD * width))))
