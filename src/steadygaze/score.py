"""Hidden states -> one score per token, before the attention map.  (B,T,H) -> (B,T)

    additive      s_t = v·tanh(W h_t + b [+ U q])          Bahdanau et al. 2015; H -> H/2 -> 1
    scaled dot    s_t = h_t·k / √H,   k = a learnt vector, or W q for a pair

q is the question's last state.
"""

import torch
from torch import Tensor, nn

from steadygaze.types import Encoded


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
        key = self.key(encoded.question) if isinstance(self.key, nn.Linear) else self.key  # (B,H) or (H,)
        scores: Tensor = (encoded.hidden @ key.unsqueeze(-1)).squeeze(-1) / encoded.hidden.shape[-1] ** 0.5
        return scores


SCORES = {"additive": Additive, "dot": ScaledDot}
