"""Explainers of word vectors: a text, and what Captum takes its slopes by.

    f(x) = p_c(x)         how likely the class asked about is, x (T,E) the vectors of the words

Of a pair x has the vectors of the question after those of the text: T + Q = W.  Where something is to be put in a
word's place, it is the vector of padding; other tokens than words stay as they are.  Texts of like length are read
together, so that little of a pass is padding.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from steadygaze.explain.chances import SLOPED, clean, of_vectors
from steadygaze.explain.explainer import Saliency
from steadygaze.explain.together import NEAR, grouped
from steadygaze.infer import inference, slopes
from steadygaze.perturb.texts import narrowed, taken
from steadygaze.perturb.units import words_of
from steadygaze.reader import Reader
from steadygaze.types import Batch


@dataclass(frozen=True, slots=True)
class Asked:
    """Some texts as a method of Captum sees them."""

    f: Callable[[Tensor, Tensor], Tensor]  # (K,W,E), (K,) rows -> (K,)
    vectors: Tensor  # (B,W,E)
    baseline: Tensor  # (B,W,E) with padding in place of words
    rows: Tensor  # (B,) which Captum repeats with the vectors, so that f knows whose they are


def slopes_by(
    method: Callable[[Asked], Tensor],
    model: Reader,
    batch: Batch,
    target: Tensor | None,
    embedded: Tensor | None,
    near: float = NEAR,
) -> Saliency:
    """What a method that draws nothing, (B,W,E) -> (B,W), makes of each word's vector; 0 outside the mask.

    `near`: how short a text may be beside the longest; 1 where one text fills a pass, so that padding is only a cost.
    """
    seen = clean(model, batch, target, embedded)
    weights = torch.zeros(batch.ids.shape, dtype=torch.float64, device=batch.ids.device)
    question = None if batch.question_mask is None else weights.new_zeros(batch.question_mask.shape)
    with slopes(model):
        for rows, _ in grouped(lengths(batch), SLOPED, near=near):
            part = shortest(taken(batch, rows))
            width = part.ids.shape[1]
            own = None if embedded is None else embedded[rows, :width].detach()
            found = method(asked_of(model, part, seen.aim[rows], own)).detach().double()
            weights[rows, :width] = found[:, :width]
            if question is not None:
                question[rows, : found.shape[1] - width] = found[:, width:]
    if question is not None and batch.question_mask is not None:
        question = question.masked_fill(~batch.question_mask, 0.0)
    return Saliency(weights.masked_fill(~batch.mask, 0.0), seen.logits, question=question)


def lengths(batch: Batch) -> Tensor:
    """Tokens of each text, those of its question included.  (B,)"""
    own = batch.present.sum(-1)
    return own if batch.question_present is None else own + batch.question_present.sum(-1)


def shortest(batch: Batch) -> Batch:
    """As wide as the longest text and the longest question."""
    asked = None if batch.question_present is None else max(1, int(batch.question_present.sum(-1).max()))
    return narrowed(batch, max(1, int(batch.present.sum(-1).max())), asked)


def asked_of(model: Reader, batch: Batch, aim: Tensor, embedded: Tensor | None = None) -> Asked:
    """`embedded`: vectors of the texts (B,T,E) in place of their own."""
    vectors, nothing = own_vectors(model, batch, embedded), own_vectors(model, _blank(batch, model.padding))
    baseline = torch.where(words_of(batch).unsqueeze(-1), nothing, vectors)
    rows = torch.arange(len(batch), device=vectors.device)
    return Asked(of_vectors(model, batch, aim), vectors.clone().requires_grad_(), baseline, rows)


def own_vectors(model: Reader, batch: Batch, embedded: Tensor | None = None) -> Tensor:
    """(B,W,E), without dropout and apart from the parameters"""
    with inference(model):
        vectors = model.embed(batch) if embedded is None else embedded
        if batch.question_mask is None:
            return vectors
        asked = model.embed_question(batch)
        return vectors if asked is None else torch.cat([vectors, asked], 1)


def at_once(vectors: Tensor) -> int:
    """Texts that can be read at once with slopes.  (B,W,E) -> number"""
    return max(1, SLOPED // vectors.shape[1])


def _blank(batch: Batch, padding: int) -> Batch:
    """With padding in place of every word."""
    blank = replace(batch, ids=batch.ids.masked_fill(batch.mask, padding))
    if batch.question_ids is None or batch.question_mask is None:
        return blank
    return replace(blank, question_ids=batch.question_ids.masked_fill(batch.question_mask, padding))
