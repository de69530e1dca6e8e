"""Models whose explanations are known: a straight line of a bag of words, and whatever is small enough to enumerate."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import torch
from captum.attr import LimeBase
from torch import Tensor

from contract.tiny import batch, split
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import take_rows

VECTORS = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 2.0], [0.5, -0.5], [2.0, 0.0]]
"""Of ids 0 (padding) to 6."""
SLOPE = (0.03, -0.04)
WORTH = [0.0, 0.03, -0.04, -0.01, -0.11, 0.035, 0.06]
"""What each id adds to the probability of class 1: its vector times SLOPE."""


class Line(Model):
    """p(class 1) = ½ + Σ vector · SLOPE over all present tokens.  The softmax of ln p is p, so it is exactly that."""

    capabilities = frozenset({"embeddings"})

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding.from_pretrained(torch.tensor(VECTORS, dtype=torch.float64))
        self.read: list[Batch] = []

    def embed(self, batch: Batch) -> Tensor:
        return self.table(batch.ids)

    @property
    def vectors(self) -> Tensor:
        return self.table.weight

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> SimpleNamespace:
        self.read.append(batch)
        vectors = self.embed(batch) if embedded is None else embedded
        probability = 0.5 + ((vectors @ torch.tensor(SLOPE, dtype=vectors.dtype)) * batch.present).sum(-1)
        return SimpleNamespace(weights=None, logits=torch.stack([1 - probability, probability], -1).log())


def texts(*rows: Sequence[int], specials: bool = False) -> Batch:
    """Ids as a padded batch; with `specials` the first of each row is no word."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    present = torch.arange(width) < torch.tensor([[len(row)] for row in rows])
    words = present & (torch.arange(width) > 0) if specials else present
    return Batch(ids, present, words, torch.arange(len(rows)))


def random_texts(*lengths: int) -> Batch:
    """Texts of the tiny models, one special token before the words of each."""
    return batch(split(["s" + "w" * length for length in lengths]))


def game(model: Model, text: Batch, aim: int) -> Callable[[frozenset[int]], float]:
    """The prediction of a model for one text with only some of its words, by their positions: without code of ours."""
    words = text.mask[0].nonzero().flatten().tolist()

    def value(kept: frozenset[int]) -> float:
        left = [
            t for t in range(text.ids.shape[1]) if text.present[0, t] and (t not in words or words.index(t) in kept)
        ]
        ids, mask = text.ids[:, left], text.mask[:, left]
        with torch.no_grad():
            logits = model(Batch(ids, torch.ones_like(mask), mask, text.index)).logits
        return float(logits.double().softmax(-1)[0, aim])

    return value


def captum_weights(
    value: Callable[[frozenset[int]], float], subsets: Tensor, line: Any, weight: Callable[..., float]
) -> Tensor:
    """The weights by Captum from these subsets.  (S,n) -> (n,)"""

    def one_by_one(*_: Any, **__: Any) -> Iterator[Tensor]:
        yield from subsets.unsqueeze(1)

    base = LimeBase(
        lambda z: torch.tensor([value(frozenset(mask.nonzero().flatten().tolist())) for mask in z]),
        line,
        weight,
        one_by_one,
        True,
        lambda z, *_: z,
        None,
    )
    return base.attribute(torch.ones(1, subsets.shape[1]), n_samples=len(subsets)).flatten()


def subsets_of(words: int) -> list[frozenset[int]]:
    return [frozenset(some) for size in range(words + 1) for some in combinations(range(words), size)]


def row(texts: Batch, place: int) -> Batch:
    """One text by itself, without padding."""
    text = take_rows(texts, torch.tensor([place]))
    length = int(text.present.sum())
    return Batch(text.ids[:, :length], text.present[:, :length], text.mask[:, :length], text.index)
