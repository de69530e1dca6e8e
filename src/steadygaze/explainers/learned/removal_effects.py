"""Predictions of a black box from selected words alone, and the effect of removing each unit.

Post-hoc accuracy: agreement of the predictions from the selected words and from the whole text.  Chen et al. 2018
(arXiv:1802.07814), §4.

    delete   unselected words are deleted
    pad      unselected words are replaced by padding; positions stay (as in the papers)

Removal effects: Schwab & Karlen, "CXPlain: Causal explanations for model interpretation under uncertainty", NeurIPS
2019 (arXiv:1910.12336), §3:

    Δ_i = max(ℓ(f(x ∖ i)) − ℓ(f(x)), ε)        ℓ(p) = −ln p_y
    Ω_i = Δ_i / Σ_j Δ_j

The cache has the raw differences; ε and the normalization are applied afterward.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.maths import distributions
from steadygaze.core.ragged import Ragged, row_starts
from steadygaze.core.types import Batch, OnProgress, Removal, no_progress
from steadygaze.data.batches import Data, collate
from steadygaze.explainers.class_probability import max_tokens, predict_rest
from steadygaze.explainers.learned.answer_cache import AnswerCache, Lines
from steadygaze.explainers.learned.black_box_queries import check_probabilities, check_repeatable, query_batch
from steadygaze.explainers.learned.l2x import Rows
from steadygaze.explainers.learned.text_inputs import Table
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import MAX_UNITS, take_rows


def predict_selected(model: Model, batch: Batch, selected: Tensor, removal: Removal = "delete") -> Tensor:
    """Logits of the texts reduced to these words.  (B,T) -> (B,C)"""
    return predict_rest(model, batch, batch.mask & ~selected, removal)


def remainder_agreement(
    model: Model, batch: Batch, remaining: Tensor, predicted: Tensor, removal: Removal = "delete"
) -> Tensor:
    """1 if the prediction from these words is the same; NaN: there are none.  (B,T), (B,) -> (B,)"""
    remaining = remaining & batch.mask
    agrees = (predict_selected(model, batch, remaining, removal).argmax(-1) == predicted).double()
    return torch.where(remaining.any(-1), agrees, torch.nan)


INPUTS_PER_BATCH = 32
"""Texts per cache entry: the most that a failure of the black box loses."""


@dataclass(frozen=True)
class RemovalQuery:
    """A black box and a split whose units can be removed one at a time."""

    answer: Callable[[Rows], Iterator[tuple[Tensor, Tensor]]]
    """n inputs, first unit to last, in chunks -> index of the input (K,) and probabilities without the unit (K,C)."""
    batches: Callable[[Rows], Iterable[Rows]]
    """Splits the inputs into cache entries."""


@dataclass(frozen=True)
class RemovalEffects(Ragged):
    """Effect of removing each unit of each input of a split."""

    values: NDArray[np.float64]  # all units, concatenated: loss without the unit minus the loss of the whole
    starts: NDArray[np.int64]  # (N+1,)

    def shares(self, rows: Rows, selectable: Tensor, epsilon: float) -> Tensor:
        """Ω of these inputs; `selectable`: units that can be selected.  (B,D) -> (B,D)"""
        floored = torch.from_numpy(np.maximum(self.values[self.indices(rows)], epsilon)).to(selectable.device)
        effects = torch.zeros(selectable.shape, dtype=torch.float64, device=selectable.device)
        return distributions.normalize(effects.masked_scatter(selectable, floored), selectable)


def removal_effects(
    removing: RemovalQuery,
    probs: Tensor,
    aim: Tensor,
    cache: AnswerCache | None = None,
    on_progress: OnProgress = no_progress,
) -> RemovalEffects:
    """`probs`: predictions for the whole inputs (N,C); `aim`: class of the loss (N,)."""
    full_loss = _loss(probs, aim)

    def answer(rows: Rows) -> Lines:
        owners, loss_parts = [rows[:0]], [full_loss[:0]]
        for index, predictions in removing.answer(rows):
            inputs = torch.from_numpy(rows)[index.cpu()]
            reduced_probs = torch.from_numpy(check_probabilities(predictions, len(inputs), probs.shape[1]))
            owners.append(inputs.numpy())
            loss_parts.append(_loss(reduced_probs, aim[inputs]) - full_loss[inputs])
        return np.concatenate(owners), torch.cat(loss_parts).unsqueeze(-1).numpy()

    cache = AnswerCache() if cache is None else cache
    owners, values = query_batch("removing units", answer, removing.batches, len(probs), cache, on_progress)
    return RemovalEffects(values.reshape(-1), row_starts(np.bincount(owners, minlength=len(probs))))


def text_removal(
    model: Model, data: Data, table: Table, removal: Removal = "delete", max_units: int = MAX_UNITS
) -> RemovalQuery:
    """Removal of single words; in a text of n > `max_units` words, of segments of ⌈n / max_units⌉ words."""
    device_table = table.to(model.device)

    def answer(rows: Rows) -> Iterator[tuple[Tensor, Tensor]]:
        batch = replace(collate(data, rows), label=None, weight=None).to(model.device)
        views = device_table.views(batch, torch.empty(len(rows), 0))
        question_length = 0 if batch.question_ids is None else batch.question_ids.shape[1]
        chunk_size = max(1, max_tokens(batch.ids) // (batch.ids.shape[1] + question_length))
        segment = _segments(views.selectable, max_units)
        number = segment if views.owner is None else segment.gather(-1, views.owner)  # of each token
        segments = torch.arange(int(segment.amax()) + 1, device=segment.device)
        index, unit = segments.le(segment.amax(-1, True)).nonzero().T
        for chunk, removed in zip(torch.split(index, chunk_size), torch.split(unit, chunk_size), strict=True):
            logits = predict_selected(model, take_rows(batch, chunk), number[chunk] != removed.unsqueeze(-1), removal)
            yield chunk, logits.double().softmax(-1)

    return RemovalQuery(answer, partial(check_repeatable, data, batch_size=INPUTS_PER_BATCH))


def per_word(effects: RemovalEffects, words: NDArray[np.int64], max_units: int) -> RemovalEffects:
    """Divide the effect of each segment equally among its words; `words`: number per text (N,)."""
    segments, size = effects.lengths, _size(words, max_units)
    widths = np.repeat(size, segments)
    last = effects.starts[1:][segments > 0] - 1
    widths[last] -= (segments * size - words)[segments > 0]
    return RemovalEffects(np.repeat(effects.values / widths, widths), row_starts(words))


def _segments(selectable: Tensor, max_units: int) -> Tensor:
    """The segment of each unit, −1 where it cannot be selected.  (B,D) bool -> (B,D)"""
    size = torch.from_numpy(_size(selectable.sum(-1).cpu().numpy(), max_units)).to(selectable.device)
    position = selectable.long().cumsum(-1) - 1
    return torch.div(position, size.unsqueeze(-1), rounding_mode="floor").masked_fill(~selectable, -1)


def _size(words: NDArray[np.int64], max_units: int) -> NDArray[np.int64]:
    """Words of a segment: ⌈n / max_units⌉, at least 1."""
    return np.maximum(1, -(-words // max_units))


def _loss(probs: Tensor, aim: Tensor) -> Tensor:
    """−ln p of a class, finite for p = 0.  (N,C), (N,) -> (N,)"""
    probability = probs.double().gather(-1, aim.unsqueeze(-1)).squeeze(-1)
    return -probability.clamp_min(torch.finfo(torch.float64).tiny).log()
