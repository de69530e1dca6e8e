"""Erase the top-weighted words, or all others, and predict again.

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4: for a text of n words, ⌈q·n⌉ words for each share q.  Ties are
broken at random, by the text's own key: the words of a selected sentence all have the same weight.

    removal    delete   the words are removed and the text becomes shorter
               pad      their ids become padding; the positions stay
               zero     their embeddings become 0; the positions stay

Each distinct remaining text is predicted once, in batches of similar length (timings/erasure.py).  The memory is what
`max_tokens` allows, plus about 60 bytes × 2K for each token of the batch.

The subword tokens of a word form one unit: their weights are summed and they are erased together.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import top_k
from steadygaze.core.random_key import RandomKey, pair_key, text_key
from steadygaze.core.types import Batch, Removal
from steadygaze.explainers.class_probability import logits_without
from steadygaze.models.inference import BATCH, Model
from steadygaze.perturbations.word_removal import Units, remove_words, take_rows, units_of

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of the words: ERASER's."""
ROUNDING = 1e-9
"""Tolerance of ⌈q·n⌉: 0.07 · 100 is 7.000000000000001 in double precision."""
TIE_BREAK = RandomKey(0).child(5)
REMOVED = -1
"""Id of a removed token: it differs from a padding token of the text."""


@dataclass(frozen=True)
class Erasure:
    """Settings of the erasure."""

    shares: tuple[float, ...] = SHARES
    """Shares of a text's words, K of them."""
    removal: Removal = "delete"
    """`zero` needs a model with embeddings."""
    max_tokens: int = 1 << 13
    """Tokens in one forward pass, padding and questions included.  A longer text has a pass of its own."""

    def __post_init__(self) -> None:
        if not all(0 <= share <= 1 for share in self.shares):
            raise ValueError(f"shares is {self.shares}; each share must be between 0 and 1")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; it must be at least 1")


ERASER = Erasure()


def erase_words(
    model: Model,
    batch: Batch,
    clean: Tensor,
    saliency: Tensor,
    erasure: Erasure = ERASER,
    replacements: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Probabilities without the top-weighted words, and with these words alone; `clean`: those of the full texts.

    `saliency`: (B,T), or (B,K,T) with one order for each share.  `replacements`: the ids (B,T) that take the place of
    erased words; None: they are removed.
    (B,C), (B,T) -> (B,K,C), (B,K,C)
    """
    erased = rationale_masks(batch, saliency, erasure.shares)  # (B,2K,T)
    probs = clean.to(erased.device, torch.float64).unsqueeze(1).repeat(1, erased.shape[1], 1)
    rows, number = erased.any(-1).nonzero(as_tuple=True)  # (V,)
    if len(rows):
        probs[rows, number] = predict_erased(model, batch, rows, erased[rows, number], erasure, replacements)
    without_top, top_only = probs.chunk(2, 1)
    return without_top, top_only


def predict_erased(
    model: Model,
    batch: Batch,
    rows: Tensor,
    erased: Tensor,
    erasure: Erasure = ERASER,
    replacements: Tensor | None = None,
) -> Tensor:
    """Probabilities of V texts, given by row, with erased words; equal texts are predicted once.  (V,T) -> (V,C)"""
    if replacements is None:
        texts = remove_words(take_rows(batch, rows), erased, erasure.removal, padding=REMOVED)
    else:
        texts = take_rows(batch, rows)
        texts = batch = replace(texts, ids=torch.where(erased, replacements[rows], texts.ids))
        rows, erased = torch.arange(len(rows), device=rows.device), torch.zeros_like(erased)
    first, kind = distinct_texts(texts)
    distinct: Tensor | None = None
    limits = erasure.removal, erasure.max_tokens, BATCH
    for group, logits in logits_without(model, batch, rows[first], erased[first], *limits):
        probs = logits.double().softmax(-1)
        distinct = probs.new_empty(len(first), probs.shape[-1]) if distinct is None else distinct
        distinct[group] = probs
    assert distinct is not None  # there is at least one text
    return distinct[kind]


def rationale_masks(batch: Batch, saliency: Tensor, shares: tuple[float, ...]) -> Tensor:
    """The erased tokens: for each share the top-weighted, then for each share all others.

    (B,T), or (B,K,T) -> (B,2K,T) bool
    """
    units = units_of(batch, question=False)
    counts = rationale_sizes(units.mask.sum(-1), shares)
    orders = saliency.unbind(1) if saliency.dim() == 3 else [saliency] * len(shares)
    top = top_units(text_key(batch), units, torch.stack([units.total(order) for order in orders], 1), counts)
    masks = [units.tokens(words) for words in top.unbind(1)]
    return torch.stack([*masks, *(batch.mask & ~tokens for tokens in masks)], 1)


def top_units(key: Tensor, units: Units, weight: Tensor, counts: Tensor) -> Tensor:
    """The top-weighted units of each order; `key`: of the texts, breaks ties.  (B,), (B,K,U), (B,K) -> (B,K,U) bool"""
    words = units.mask.unsqueeze(1).expand_as(weight)
    order = TIE_BREAK.uniform(key, words.shape[-1], dtype=torch.float64).argsort(-1).unsqueeze(1).expand_as(words)
    selected = top_k(weight.gather(-1, order), words.gather(-1, order), counts)
    return torch.zeros_like(words).scatter(-1, order, selected)


def rationale_sizes(words: Tensor, shares: tuple[float, ...]) -> Tensor:
    """⌈q·n⌉.  (B,) -> (B,K)"""
    sizes = torch.tensor(shares, dtype=torch.float64, device=words.device)
    return (words.unsqueeze(-1) * sizes - ROUNDING).ceil().long()


def distinct_texts(batch: Batch) -> tuple[Tensor, Tensor]:
    """The first row of each distinct text, and the index of each row's text.  V -> (D,), (V,)"""
    ids = batch.ids * 2 + batch.mask  # tells a special token from a word with the same id
    key = pair_key(replace(batch, ids=ids, word_keys=None))
    # The probability of a collision of the 64-bit keys among ten thousand texts is about 10^-11.
    kinds, kind = torch.unique(key, return_inverse=True)
    rows = torch.arange(len(key), device=key.device)
    return torch.full_like(kinds, len(key)).scatter_reduce(0, kind, rows, "amin"), kind
