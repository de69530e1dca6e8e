"""Synonym substitution and nearest neighbors of words.

Nearest neighbors are not synonyms: vectors learned from context put "good" beside "bad".  Synonyms come from a table
only.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from steadygaze.core.random_key import RandomKey

MAX_SYNONYMS = 8
"""Maximum number of synonyms of a word, the closest first."""
BLOCK = 1 << 24
"""Number of cosines in memory at once: 64 MB."""


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Table of synonyms: for every id of a vocabulary, the ids that may replace it."""

    table: Tensor  # (V,K) long, the closest first; only the first `count` of a row mean anything
    count: Tensor  # (V,) long
    continues: Tensor  # (V,) bool: a subword piece that continues the preceding word
    words: Tensor | None = None  # (V,) bool: ids that may occur in a text; None: all
    origin: Literal["table", "verified", "none"] = "table"
    """`verified`: a verified table (data/verified_tables.py); `none`: no table, and no word has a synonym."""
    special: Tensor | None = None  # (V,) bool: <unk>, <s>, [CLS], [PAD] …; None: unknown

    def __post_init__(self) -> None:
        if self.table.shape[:1] != self.count.shape or self.count.shape != self.continues.shape:
            raise ValueError("Synonyms: table, count and continues must have the same length, one row per id")

    def to(self, device: Any) -> "Synonyms":
        values = ((name, getattr(self, name)) for name in self.__slots__)
        moved: dict[str, Any] = {name: value.to(device) for name, value in values if isinstance(value, Tensor)}
        return replace(self, **moved)

    def swappable(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return True on whole words that have a synonym.  (B,T), (B,T) -> (B,T)"""
        continued = self.continues[ids.roll(-1, 1)] & mask.roll(-1, 1)
        continued[:, -1] = False
        return mask & (self.count[ids] > 0) & ~self.continues[ids] & ~continued


def substitute_words(
    ids: Tensor, mask: Tensor, synonyms: Synonyms, key: RandomKey, rows: Tensor, *, share: float | Tensor
) -> Tensor:
    """Replace each swappable word, with probability `share` (one, or (B,)), by a random synonym.  (B,T) -> (B,T)"""
    uniform = key.child(1).uniform(rows, ids.shape[1])
    replaced = uniform < (share.to(uniform.dtype).unsqueeze(1) if isinstance(share, Tensor) else share)
    choice = (key.child(2).uniform(rows, ids.shape[1]) * synonyms.count[ids]).long()  # floor: < count
    synonym = synonyms.table[ids].gather(-1, choice.unsqueeze(-1)).squeeze(-1)
    return torch.where(replaced & synonyms.swappable(ids, mask), synonym, ids)


def substitute_some_words(
    ids: Tensor, mask: Tensor, synonyms: Synonyms, key: RandomKey, rows: Tensor, *, number: int
) -> Tensor:
    """Replace up to `number` random swappable words by their closest synonyms."""
    swappable = synonyms.swappable(ids, mask)
    order = key.uniform(rows, ids.shape[1], dtype=torch.float64).masked_fill(~swappable, 2.0)  # 2: sorted last
    rank = order.argsort(dim=-1, stable=True).argsort(-1)
    return torch.where(swappable & (rank < number), synonyms.table[ids, 0], ids)


def substitute_top_words(
    ids: Tensor, mask: Tensor, synonyms: Synonyms, key: RandomKey, rows: Tensor, *, scores: Tensor, number: Tensor
) -> Tensor:
    """Replace the `number` (B,) swappable words with the largest scores (B,T) by random synonyms, or all if fewer."""
    swappable = synonyms.swappable(ids, mask)
    order = scores.double().masked_fill(~swappable, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    replaced = swappable & (order.argsort(-1) < number.unsqueeze(-1))
    choice = (key.uniform(rows, ids.shape[1], dtype=torch.float64) * synonyms.count[ids]).long()  # floor: < count
    return torch.where(replaced, synonyms.table[ids].gather(-1, choice.unsqueeze(-1)).squeeze(-1), ids)


def nearest_words(vectors: Tensor, k: int, candidates: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the k nearest `candidates` neighbors of every word and their cosines, the closest first.  (V,E) -> (V,k)

    If fewer than k words are allowed, the cosine of the rest is −∞.
    """
    directions = normalize(vectors.detach().float(), dim=-1)
    size = len(directions)
    forbidden = torch.zeros(size, dtype=torch.bool, device=vectors.device) if candidates is None else ~candidates
    blocks: list[tuple[Tensor, Tensor]] = []
    for rows in torch.arange(size, device=vectors.device).split(max(1, BLOCK // size)):  # type: ignore[no-untyped-call]
        block = directions[rows] @ directions.T
        block[:, forbidden] = -torch.inf
        block[torch.arange(len(rows), device=vectors.device), rows] = -torch.inf
        cosines, ids = block.topk(min(k, size), dim=-1)
        blocks.append((ids, cosines))
    return torch.cat([ids for ids, _ in blocks]), torch.cat([cosines for _, cosines in blocks])


def without_synonyms(size: int, continues: Tensor, words: Tensor, special: Tensor | None = None) -> Synonyms:
    zeros = torch.zeros(size, dtype=torch.long)
    return Synonyms(zeros.unsqueeze(-1), zeros, continues, words, "none", special)
