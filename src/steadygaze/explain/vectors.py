"""Explainers of word vectors: a text, and what Captum takes its slopes by.

    f(x) = p_c(x)         how likely the class asked about is, x (T,E) the vectors of the words

Where something is to be put in a word's place, it is the vector of padding; other tokens than words stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from steadygaze.explain.chances import SLOPED, Clean, clean, of_vectors
from steadygaze.infer import inference, slopes
from steadygaze.perturb.texts import parts, taken
from steadygaze.reader import Reader
from steadygaze.types import Batch


@dataclass(frozen=True, slots=True)
class Asked:
    """Some texts as a method of Captum sees them."""

    f: Callable[[Tensor, Tensor], Tensor]  # (K,T,E), (K,) rows -> (K,)
    vectors: Tensor  # (B,T,E)
    baseline: Tensor  # (B,T,E) with padding in place of words
    rows: Tensor  # (B,) which Captum repeats with the vectors, so that f knows whose they are


def slopes_by(
    method: Callable[[Asked], Tensor],
    model: Reader,
    batch: Batch,
    target: Tensor | None,
    embedded: Tensor | None,
) -> tuple[Tensor, Clean]:
    """What a method that draws nothing makes of each entry of each word's vector.  (B,T,E), 0 outside the mask"""
    seen = clean(model, batch, target, embedded)
    vectors = own_vectors(model, batch) if embedded is None else embedded.detach()
    found = []
    with slopes(model):
        for rows in parts(batch, at_once(vectors)):
            part = taken(batch, rows)
            found.append(method(asked_of(model, part, seen.aim[rows], vectors[rows])).detach().double())
    return torch.cat(found).masked_fill(~batch.mask.unsqueeze(-1), 0.0), seen


def asked_of(model: Reader, batch: Batch, aim: Tensor, vectors: Tensor) -> Asked:
    padding = replace(batch, ids=batch.ids.masked_fill(batch.mask, model.padding))
    baseline = torch.where(batch.mask.unsqueeze(-1), own_vectors(model, padding), vectors)
    rows = torch.arange(len(batch), device=vectors.device)
    return Asked(of_vectors(model, batch, aim), vectors.clone().requires_grad_(), baseline, rows)


def own_vectors(model: Reader, batch: Batch) -> Tensor:
    """(B,T,E), without dropout and apart from the parameters"""
    with inference(model):
        return model.embed(batch)


def at_once(vectors: Tensor) -> int:
    """Texts that can be read at once with slopes.  (B,T,E) -> number"""
    return max(1, SLOPED // vectors.shape[1])
