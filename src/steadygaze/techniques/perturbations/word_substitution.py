"""Words that may stand for each other, and texts in which some do.

    nearest      every word's closest words by the cosine of their vectors
    swap         some words of a text, drawn at random, replaced by one of their synonyms

Nearest words are not synonyms: vectors learned from context put "good" beside "bad".  Synonyms come from a table only.
"""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from steadygaze.core.random_key import RandomKey

MOST = 8
"""Synonyms kept of a word, the closest first."""
BLOCK = 1 << 24
"""Cosines held at once: 64 MB."""


@dataclass(frozen=True, slots=True)
class Synonyms:
    """For every id of a vocabulary the ids that may stand in its place."""

    table: Tensor  # (V,K) long, the closest first; only the first `count` of a row mean anything
    count: Tensor  # (V,) long
    continues: Tensor  # (V,) bool: a piece that goes on with the word before it, and is no word on its own
    words: Tensor | None = None  # (V,) bool: ids that may stand in a text; None: all
    origin: Literal["table", "none"] = "table"
    """`none`: no table was given, and no word has a synonym."""
    special: Tensor | None = None  # (V,) bool: <unk>, <s>, [CLS], [PAD] …; None: not known

    def __post_init__(self) -> None:
        if self.table.shape[:1] != self.count.shape or self.count.shape != self.continues.shape:
            raise ValueError("Synonyms: table, count and continues must speak of the same ids")

    def to(self, device: Any) -> "Synonyms":
        words, special = (None if one is None else one.to(device) for one in (self.words, self.special))
        ids = (self.table.to(device), self.count.to(device), self.continues.to(device))
        return Synonyms(*ids, words, self.origin, special)

    def swappable(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Whole words that have a synonym.  (B,T), (B,T) -> (B,T)"""
        continued = self.continues[ids.roll(-1, 1)] & mask.roll(-1, 1)
        continued[:, -1] = False
        return mask & (self.count[ids] > 0) & ~self.continues[ids] & ~continued


def substitute_words(
    ids: Tensor, mask: Tensor, synonyms: Synonyms, chance: RandomKey, rows: Tensor, *, share: float
) -> Tensor:
    """Each swappable word with probability `share` becomes one of its synonyms, all alike likely.  (B,T) -> (B,T)"""
    whether = chance.child(1).uniform(rows, ids.shape[1]) < share
    which = (chance.child(2).uniform(rows, ids.shape[1]) * synonyms.count[ids]).long()  # floor: < count
    other = synonyms.table[ids].gather(-1, which.unsqueeze(-1)).squeeze(-1)
    return torch.where(whether & synonyms.swappable(ids, mask), other, ids)


def substitute_some_words(
    ids: Tensor, mask: Tensor, synonyms: Synonyms, chance: RandomKey, rows: Tensor, *, number: int
) -> Tensor:
    """`number` swappable words drawn at random, or all where there are fewer, become their closest synonym."""
    free = synonyms.swappable(ids, mask)
    lot = chance.uniform(rows, ids.shape[1], dtype=torch.float64).masked_fill(~free, 2.0)  # 2: after every real lot
    place = lot.argsort(dim=-1, stable=True).argsort(-1)
    return torch.where(free & (place < number), synonyms.table[ids, 0], ids)


def nearest_words(vectors: Tensor, k: int, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The k closest others of every word, and their cosines, the closest first; only `allowed` words.  (V,E) -> (V,k)

    Where fewer are allowed than asked for, the cosine of the rest is −∞.
    """
    directions = normalize(vectors.detach().float(), dim=-1)
    size = len(directions)
    forbidden = torch.zeros(size, dtype=torch.bool, device=vectors.device) if allowed is None else ~allowed
    found: list[tuple[Tensor, Tensor]] = []
    for some in torch.arange(size, device=vectors.device).split(max(1, BLOCK // size)):  # type: ignore[no-untyped-call]
        block = directions[some] @ directions.T
        block[:, forbidden] = -torch.inf
        block[torch.arange(len(some), device=vectors.device), some] = -torch.inf
        cosines, ids = block.topk(min(k, size), dim=-1)
        found.append((ids, cosines))
    return torch.cat([ids for ids, _ in found]), torch.cat([cosines for _, cosines in found])


def without_synonyms(size: int, continues: Tensor, words: Tensor, special: Tensor | None = None) -> Synonyms:
    """A vocabulary of which nobody knows the synonyms."""
    nothing = torch.zeros(size, dtype=torch.long)
    return Synonyms(nothing.unsqueeze(-1), nothing, continues, words, "none", special)
