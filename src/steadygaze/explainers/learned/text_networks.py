"""Networks for texts, as in L2X and Bai et al. (Table 6); each has its own word vectors.

    selector             vectors 50 → convolution 100×3 → maximum over words, and two more 100×3 → score
                         with ŷ: the prediction passes three layers and is concatenated with the maximum
    bag                  mean vector of the selected words → 250 → classes
    convolution          the network of Table 6, which also depends on positions

The weights are initialized as in Keras, which the papers used: vectors within ±0.05, layers after Glorot & Bengio 2010,
biases 0.  Vectors of rare words change little in training and must start near 0.

Differences from the papers: edges are padded, so that a text may be shorter than a kernel.  The default has no dropout
(Bai et al., A.1, advise against it).  The bag is divided by the number of selected words, not by k.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from steadygaze.core.maths import distributions
from steadygaze.explainers.learned.l2x import InputBatch

WIDTH = 3
INNER = 250
"""Width of the approximators' hidden layers."""
NEAR_ZERO = 0.05
Net = TypeVar("Net", bound=nn.Module)


class Selector(nn.Module):
    def __init__(self, words: int, query: int, dimension: int, hidden: int, dropout: float = 0.0) -> None:
        """`query`: number of classes if conditioned on the prediction, else 0."""
        super().__init__()
        self.vectors = nn.Embedding(words, dimension, padding_idx=0)
        self.first = nn.Conv1d(dimension, hidden, WIDTH, padding="same")
        self.whole = nn.Linear(hidden, hidden)
        self.near = nn.ModuleList(nn.Conv1d(hidden, hidden, WIDTH, padding="same") for _ in range(2))
        self.query_layers = _query_layers(query, hidden) if query else None
        self.drop = nn.Dropout(dropout)
        self.inner = nn.Linear(hidden * (3 if query else 2), hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, views: InputBatch, query: Tensor | None = None) -> Tensor:
        """(B,T), (B,C) -> (B,T)"""
        present = views.x != 0
        hidden = _convolved(self.first, self.vectors(views.x), present)
        context = [self.whole(distributions.maximum(hidden, present)).relu()]
        if self.query_layers is not None and query is not None:
            context.append(self.query_layers(query.to(hidden.dtype)))
        for layer in self.near:
            hidden = _convolved(layer, hidden, present)  # type: ignore[arg-type]
        wide = [part.unsqueeze(1).expand(-1, hidden.shape[1], -1) for part in context]
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
        weights = views.spread(mask).to(self.inner.weight.dtype)
        total = (weights.unsqueeze(1) @ self.vectors(views.x)).squeeze(1)
        logits: Tensor = self.out(self.inner(total / weights.sum(-1, keepdim=True).clamp_min(1.0)).relu())
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
        selected = self.vectors(views.x) * views.spread(mask).unsqueeze(-1)
        logits: Tensor = self.out(
            self.inner(distributions.maximum(_convolved(self.kernel, selected, present), present)).relu()
        )
        return logits


def _query_layers(query: int, hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(query, hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
    )


def _convolved(kernel: nn.Conv1d, hidden: Tensor, present: Tensor) -> Tensor:
    """0 on padding, as beyond the edge.  (B,T,E) -> (B,T,H)

    One matrix product of all windows: on a CPU its gradient takes half to a third of the time of `conv1d`'s.
    """
    words, edges = hidden.shape[1], pad(hidden, (0, 0, WIDTH // 2, WIDTH // 2))
    windows = torch.cat([edges[:, place : place + words] for place in range(WIDTH)], -1)
    return linear(windows, kernel.weight.transpose(1, 2).flatten(1), kernel.bias).relu() * present.unsqueeze(-1)


def as_keras(net: Net) -> Net:
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
