"""Scorers, attention maps and decoders.

Scorers: hidden states -> one score per token.  (B,T,H) -> (B,T); q is the question's last state

    additive      s_t = v·tanh(W h_t + b [+ U q])          Bahdanau et al. 2015; H -> H/2 -> 1
    scaled dot    s_t = h_t·k / √H,   k = a learned vector, or W q for a pair

Attention maps: scores -> weights.  (B,T) -> (B,T)

    softmax       every word gets a weight above 0
    sparsemax     argmax_p  <p, s> + H_α(p) over the simplex, α = 2; most weights are exactly 0
    entmax15      the same with α = 1.5, between sparsemax and softmax
    uniform       w_t = 1/n over the n words, independent of the scores

Sparsemax: Martins & Astudillo 2016 (arXiv:1602.02068).  Entmax: Peters, Niculae & Martins 2019 (arXiv:1905.05702).
Both come from the `entmax` package.
Uniform: Wiegreffe & Pinter 2019 (arXiv:1908.04626), §3.1, a baseline.  If it predicts as well, attention is not needed
and explains little.  The gradient of the scores is exactly 0, so that the scorer keeps its initial weights.

Decoders: hidden states and weights -> logits.  (B,T,H), (B,T) -> (B,C)

    c  = Σ_t w_t h_t                                 the attended context
    linear        z = Θ c + b [+ Θ_q q]              linear in w, which the certificate needs
    mlp           z = Θ tanh(W c + b [+ W_q q]) + a  as Jain & Wallace's question answering
"""

import torch
from entmax import entmax15, sparsemax
from torch import Tensor, nn

from steadygaze.core.maths import distributions
from steadygaze.core.types import Encoded


class Additive(nn.Module):
    def __init__(self, size: int, pair: bool) -> None:
        super().__init__()
        self.project = nn.Linear(size, size // 2)
        self.ask = nn.Linear(size, size // 2, bias=False) if pair else None
        self.weigh = nn.Linear(size // 2, 1, bias=False)

    def forward(self, encoded: Encoded) -> Tensor:
        inner = self.project(encoded.hidden)  # (B,T,H/2)
        if self.ask is not None:
            inner = inner + self.ask(encoded.question).unsqueeze(1)
        scores: Tensor = self.weigh(inner.tanh()).squeeze(-1)
        return scores


class ScaledDot(nn.Module):
    def __init__(self, size: int, pair: bool) -> None:
        super().__init__()
        self.key: nn.Linear | nn.Parameter
        if pair:
            self.key = nn.Linear(size, size, bias=False)
        else:
            self.key = nn.Parameter(torch.empty(size).uniform_(-(size**-0.5), size**-0.5))

    def forward(self, encoded: Encoded) -> Tensor:
        key = self.key if isinstance(self.key, nn.Parameter) else self.key(encoded.question)  # (H,) or (B,H)
        scores: Tensor = (encoded.hidden @ key.unsqueeze(-1)).squeeze(-1) / encoded.hidden.shape[-1] ** 0.5
        return scores


SCORES = {"additive": Additive, "dot": ScaledDot}


class Softmax(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        return distributions.softmax(scores, mask)


class Sparsemax(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights: Tensor = sparsemax(_hide(scores, mask), dim=-1)
        return weights.masked_fill(~mask, 0.0)


class Entmax15(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        weights: Tensor = entmax15(_hide(scores, mask), dim=-1)
        return weights.masked_fill(~mask, 0.0)


def _hide(scores: Tensor, mask: Tensor) -> Tensor:
    """Set scores outside the mask to −∞, except in rows without real tokens, which would be undefined."""
    hidden = ~mask & mask.any(-1, keepdim=True)
    return scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(hidden, -torch.inf)


class Uniform(nn.Module):
    """(B,T), (B,T) -> (B,T): sums to one over the mask, exactly 0 elsewhere."""

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        wide = torch.promote_types(scores.dtype, torch.float32)  # half precision is too coarse
        uniform = mask.to(wide) / mask.sum(-1, keepdim=True).clamp_min(1)
        # Scores stay in the graph, so that their gradient is 0 and not an error.
        return uniform + scores.masked_fill(torch.ones_like(mask), 0.0)


ATTENTIONS: dict[str, type[nn.Module]] = {
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "entmax15": Entmax15,
    "uniform": Uniform,
}


class Logits(nn.Linear):
    """The last layer of the linear decoder."""

    def product(self, values: Tensor) -> Tensor:
        """Return xΘᵀ, without the bias.  (…,H) -> (…,C)"""
        return values @ self.weight.T


class Linear(nn.Module):
    def __init__(self, size: int, classes: int, pair: bool) -> None:
        super().__init__()
        self.output = Logits(size, classes)
        self.ask = nn.Linear(size, classes, bias=False) if pair else None

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        logits: Tensor = self.output(context(encoded, weights))
        return logits if self.ask is None else logits + self.ask(encoded.question)

    def reach(self, encoded: Encoded) -> Tensor:
        """Return HΘᵀ: the change of each logit per unit of attention on each token.  (B,T,H) -> (B,T,C)"""
        return self.output.product(encoded.hidden)


class MLP(nn.Module):
    def __init__(self, size: int, classes: int, pair: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(size, size // 2)
        self.ask = nn.Linear(size, size // 2, bias=False) if pair else None
        self.output = nn.Linear(size // 2, classes)

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        inner = self.inner(context(encoded, weights))
        logits: Tensor = self.output((inner if self.ask is None else inner + self.ask(encoded.question)).tanh())
        return logits


def context(encoded: Encoded, weights: Tensor) -> Tensor:
    """c = Σ_t w_t h_t.  (B,T,H), (B,T) -> (B,H)"""
    return (weights.to(encoded.hidden.dtype).unsqueeze(1) @ encoded.hidden).squeeze(1)


DECODERS = {"linear": Linear, "mlp": MLP}
