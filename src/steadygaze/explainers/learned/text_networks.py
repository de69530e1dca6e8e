"""Networks for texts, as L2X and Bai et al. (Table 6) have them.  All over word vectors of their own.

    selector             which words?   vectors 50 → convolution 100×3 → the maximum of all, and two more 100×3 → score
                         with ŷ: what the black box says goes in beside the maximum, through three layers
    bag                  what do the selected words say?   their mean vector → 250 → classes
    convolution          the same with the network of Table 6: it also sees where they stand

Fresh weights are drawn as Keras, which the papers used, draws them: vectors within ±0.05, layers after Glorot & Bengio
2010, biases 0.  It matters: a rare word's vector moves little in training, and must not begin far out.

Departs from the papers: edges are padded, so that a text may be shorter than a kernel; no dropout unless it is asked
for (Bai et al., A.1, advise against it); the bag is divided by the words selected, not by k.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn

from steadygaze.core.maths import masked
from steadygaze.explainers.learned.selector import InputBatch

WIDTH = 3
INNER = 250
"""Units of the approximators' inner layers."""
NEAR_ZERO = 0.05
Net = TypeVar("Net", bound=nn.Module)


class Selector(nn.Module):
    def __init__(self, words: int, query: int, dimension: int, hidden: int, dropout: float = 0.0) -> None:
        """`query`: how many numbers the black box says of a text; 0: it is not asked."""
        super().__init__()
        self.vectors = nn.Embedding(words, dimension, padding_idx=0)
        self.first = nn.Conv1d(dimension, hidden, WIDTH, padding="same")
        self.whole = nn.Linear(hidden, hidden)
        self.near = nn.ModuleList(nn.Conv1d(hidden, hidden, WIDTH, padding="same") for _ in range(2))
        self.said = _said(query, hidden) if query else None
        self.drop = nn.Dropout(dropout)
        self.inner = nn.Linear(hidden * (3 if query else 2), hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, views: InputBatch, query: Tensor | None = None) -> Tensor:
        """(B,T), (B,C) -> (B,T)"""
        present = views.x != 0
        hidden = _convolved(self.first, self.vectors(views.x), present)
        known = [self.whole(masked.maximum(hidden, present)).relu()]
        if self.said is not None and query is not None:
            known.append(self.said(query.to(hidden.dtype)))
        for layer in self.near:
            hidden = _convolved(layer, hidden, present)
        wide = [part.unsqueeze(1).expand(-1, hidden.shape[1], -1) for part in known]
        scores: Tensor = self.score(self.inner(self.drop(torch.cat([*wide, hidden], -1))).relu()).squeeze(-1)
        return scores


class BagOfWords(nn.Module):
    def __init__(self, words: int, classes: int, dimension: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(words, dimension, padding_idx=0)
        self.inner = nn.Linear(dimension, INNER)
        self.out = nn.Linear(INNER, classes)

    def forward(self, views: InputBatch, mask: Tensor) -> Tensor:
        """(B,T), (B,D) -> (B,C)"""
        taken = views.spread(mask)
        total = (taken.unsqueeze(1) @ self.vectors(views.x)).squeeze(1)
        logits: Tensor = self.out(self.inner(total / taken.sum(-1, keepdim=True).clamp_min(1.0)).relu())
        return logits


class Convolution(nn.Module):
    def __init__(self, words: int, classes: int, dimension: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(words, dimension, padding_idx=0)
        self.kernel = nn.Conv1d(dimension, INNER, WIDTH, padding="same")
        self.inner = nn.Linear(INNER, INNER)
        self.out = nn.Linear(INNER, classes)

    def forward(self, views: InputBatch, mask: Tensor) -> Tensor:
        """(B,T), (B,D) -> (B,C)"""
        present = views.x != 0
        taken = self.vectors(views.x) * views.spread(mask).unsqueeze(-1)
        logits: Tensor = self.out(self.inner(masked.maximum(_convolved(self.kernel, taken, present), present)).relu())
        return logits


def _said(query: int, hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(query, hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
    )


def _convolved(kernel: nn.Module, hidden: Tensor, present: Tensor) -> Tensor:
    """0 on padding, which looks like the edge.  (B,T,E) -> (B,T,H)"""
    found: Tensor = kernel(hidden.transpose(1, 2)).relu()
    return found.transpose(1, 2) * present.unsqueeze(-1)


def as_keras(net: Net) -> Net:
    """The same network with weights as Keras draws them."""
    for part in net.modules():
        if isinstance(part, nn.Embedding):
            nn.init.uniform_(part.weight, -NEAR_ZERO, NEAR_ZERO)
            if part.padding_idx is not None:
                nn.init.zeros_(part.weight[part.padding_idx].data)
        elif isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return net


APPROXIMATORS = {"simple": BagOfWords, "cnn": Convolution}
