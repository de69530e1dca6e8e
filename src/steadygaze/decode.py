"""Hidden states and weights -> logits.  (B,T,H), (B,T) -> (B,C)

c  = Σ_t w_t h_t                            the attended context
linear    z = Θ c + b [+ Θ_q q]             linear in w: what the certificate needs, for pairs too
mlp       z = Θ tanh(W c + b [+ W_q q]) + a as Jain & Wallace's question answering
"""

from torch import Tensor, nn

from steadygaze.types import Encoded


class Linear(nn.Module):
    def __init__(self, size: int, classes: int, pair: bool) -> None:
        super().__init__()
        self.output = nn.Linear(size, classes)
        self.ask = nn.Linear(size, classes, bias=False) if pair else None

    def forward(self, encoded: Encoded, weights: Tensor) -> Tensor:
        logits: Tensor = self.output(context(encoded, weights))
        return logits if self.ask is None else logits + self.ask(encoded.question)

    def reach(self, encoded: Encoded) -> Tensor:
        """HΘᵀ: what one unit of attention on each token adds to each logit.  (B,T,H) -> (B,T,C)"""
        return encoded.hidden @ self.output.weight.T


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
