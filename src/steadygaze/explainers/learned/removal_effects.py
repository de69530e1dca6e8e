"""Does the black box say the same of what is selected alone, and of the rest?

Chen et al. 2018 (arXiv:1802.07814), §4: post-hoc accuracy.  Of a selection that explains it does, of the rest it
need not.

    delete   what is not looked at is taken out and the text closes up
    pad      its id becomes that of padding; places stay (the papers' way)

What each unit is worth to a black box: how much worse it does without it.

Schwab & Karlen, "CXPlain: Causal explanations for model interpretation under uncertainty", NeurIPS 2019
(arXiv:1910.12336), §3:

    Δ_i = max(ℓ(f(x ∖ i)) − ℓ(f(x)), ε)        ℓ(p) = −ln p_y
    Ω_i = Δ_i / Σ_j Δ_j

A unit that helps when it is gone gets ε, not less than nothing.  Differences are kept as they were measured; ε and the
shares come when they are read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.maths import masked
from steadygaze.core.ragged import row_starts
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, collate
from steadygaze.explainers.class_probability import max_tokens
from steadygaze.explainers.learned.answer_cache import AnswerCache, Lines
from steadygaze.explainers.learned.black_box_queries import (
    BlackBoxQuery,
    Watch,
    check_probabilities,
    check_repeatable,
    query_batch,
    silent,
)
from steadygaze.explainers.learned.selector import Rows
from steadygaze.explainers.learned.text_inputs import Table
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import MOST_UNITS, delete_words, take_rows

Removal = Literal["delete", "pad"]


def predict_selected(model: Model, batch: Batch, kept: Tensor, removal: Removal = "delete") -> Tensor:
    """Logits of the texts of which only these words are left.  (B,T) -> (B,C)"""
    gone = batch.mask & ~kept
    if removal == "delete":
        rest = delete_words(batch, gone)
    else:
        rest = replace(batch, ids=batch.ids.masked_fill(gone, model.padding))
    with inference(model):
        logits: Tensor = model(rest).logits
    return logits


def remainder_agreement(model: Model, batch: Batch, rest: Tensor, said: Tensor, removal: Removal = "delete") -> Tensor:
    """1 where it still says the same of these words, nan where there are none.  (B,T), (B,) -> (B,)"""
    same = (predict_selected(model, batch, rest, removal).argmax(-1) == said).double()
    return torch.where(rest.any(-1), same, torch.nan)


TOGETHER = 32
"""Texts whose differences are kept at once: what a black box that fails costs, at most."""


@dataclass(frozen=True)
class RemovalQuery:
    """A black box and a split, of whose inputs any one unit can be taken out."""

    say: Callable[[Rows], Iterator[tuple[Tensor, Tensor]]]
    """Of these n inputs, first unit to last, a few at a time: which of the n (K,), and the probabilities without the
    unit (K,C)."""
    cut: Callable[[Rows], Iterable[Rows]]
    """Which inputs are kept together."""


@dataclass(frozen=True)
class RemovalEffects:
    """What each unit of each input of a split is worth."""

    values: NDArray[np.float64]  # all units end to end: loss without it, less the loss of the whole
    starts: NDArray[np.int64]  # (N+1,)

    def shares(self, rows: Rows, able: Tensor, epsilon: float) -> Tensor:
        """Ω of these inputs, whose units are those that can be selected.  (B,D) -> (B,D)"""
        lengths = np.diff(self.starts)[rows]
        starts = row_starts(lengths)
        source = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        floored = torch.from_numpy(np.maximum(self.values[source], epsilon)).to(able.device)
        worth = torch.zeros(able.shape, dtype=torch.float64, device=able.device)
        return masked.normalize(worth.masked_scatter(able, floored), able)


def removal_effects(
    removing: RemovalQuery, probs: Tensor, aim: Tensor, kept: AnswerCache | None = None, watch: Watch = silent
) -> RemovalEffects:
    """By what the black box says of the whole (N,C), and the class whose loss counts (N,)."""
    whole = _loss(probs, aim)

    def say(rows: Rows) -> Lines:
        owners, lost = [rows[:0]], [whole[:0]]
        for of, found in removing.say(rows):
            those = torch.from_numpy(rows)[of.cpu()]
            without = torch.from_numpy(check_probabilities(found, len(those), probs.shape[1]))
            owners.append(those.numpy())
            lost.append(_loss(without, aim[those]) - whole[those])
        return np.concatenate(owners), torch.cat(lost).unsqueeze(-1).numpy()

    question = BlackBoxQuery("leaving out one after the other", say, removing.cut)
    owners, values = query_batch(question, len(probs), AnswerCache() if kept is None else kept, watch)
    return RemovalEffects(values.reshape(-1), row_starts(np.bincount(owners, minlength=len(probs))))


def text_removal(
    model: Model, data: Data, table: Table, removal: Removal = "delete", max_units: int = MOST_UNITS
) -> RemovalQuery:
    """Words taken out of texts one by one; of a text of n > `max_units` words, segments of ⌈n / max_units⌉ words."""
    known = table.to(model.device)

    def say(rows: Rows) -> Iterator[tuple[Tensor, Tensor]]:
        batch = replace(collate(data, rows), label=None, weight=None).to(model.device)
        views = known.views(batch, torch.empty(len(rows), 0))
        asked = 0 if batch.question_ids is None else batch.question_ids.shape[1]
        many = max(1, max_tokens(batch.ids) // (batch.ids.shape[1] + asked))
        segment = _segments(views.able, max_units)
        number = segment if views.owner is None else segment.gather(-1, views.owner)  # of each token
        of, one = torch.arange(int(segment.amax()) + 1, device=segment.device).le(segment.amax(-1, True)).nonzero().T
        for some, gone in zip(torch.split(of, many), torch.split(one, many), strict=True):
            logits = predict_selected(model, take_rows(batch, some), number[some] != gone.unsqueeze(-1), removal)
            yield some, logits.double().softmax(-1)

    return RemovalQuery(say, lambda rows: check_repeatable(data, rows, TOGETHER))


def per_word(found: RemovalEffects, words: NDArray[np.int64], max_units: int) -> RemovalEffects:
    """The worth of each segment in equal parts on its words; `words`: how many each text has (N,)."""
    segments, size = np.diff(found.starts), _size(words, max_units)
    widths = np.repeat(size, segments)
    last = found.starts[1:][segments > 0] - 1
    widths[last] -= (segments * size - words)[segments > 0]
    return RemovalEffects(np.repeat(found.values / widths, widths), row_starts(words))


def _segments(able: Tensor, max_units: int) -> Tensor:
    """The segment of each unit, −1 where it cannot be selected.  (B,D) bool -> (B,D)"""
    size = torch.from_numpy(_size(able.sum(-1).cpu().numpy(), max_units)).to(able.device)
    place = able.long().cumsum(-1) - 1
    return torch.div(place, size.unsqueeze(-1), rounding_mode="floor").masked_fill(~able, -1)


def _size(words: NDArray[np.int64], max_units: int) -> NDArray[np.int64]:
    """Words of a segment: ⌈n / max_units⌉, at least 1."""
    return np.maximum(1, -(-words // max_units))


def _loss(probs: Tensor, aim: Tensor) -> Tensor:
    """−ln p of a class, finite even where it has no chance.  (N,C), (N,) -> (N,)"""
    chance = probs.double().gather(-1, aim.unsqueeze(-1)).squeeze(-1)
    return -chance.clamp_min(torch.finfo(torch.float64).tiny).log()
