"""Exact Shapley values of the relevant words of a text, for the probability of a class.

    φ_j = Σ_{S ∌ j} |S|! (m − |S| − 1)! / m! · (v(S ∪ j) − v(S))        m relevant words; all others are always there

Texts with more than MOST relevant words: the mean of PERMUTATIONS marginal contributions.
"""

from math import comb

import torch
from torch import Tensor

from steadygaze.core.random_key import text_key
from steadygaze.core.types import Batch
from studies.oracles.models import OracleModel

MOST, PERMUTATIONS = 8, 60


class ExactWeights:
    """Shapley values of a model; texts are computed once."""

    def __init__(self, model: OracleModel) -> None:
        self.model = model
        self.known: dict[tuple[int, int], Tensor] = {}

    def __call__(self, batch: Batch, target: Tensor) -> Tensor:
        """(B,), -> (B,T)"""
        keys = list(zip(text_key(batch).tolist(), target.tolist(), strict=True))
        players = (self.model.relevant[batch.ids] & batch.mask).sum(-1)
        wanted = torch.tensor([key not in self.known for key in keys])
        for number in sorted(set(players[wanted].tolist())):
            rows = (wanted & (players == number)).nonzero().squeeze(-1)
            for row, weights in zip(rows.tolist(), self._compute(batch, rows, target, number), strict=True):
                self.known[keys[row]] = weights
        weights = torch.zeros(batch.ids.shape, dtype=torch.float64)
        for row, key in enumerate(keys):
            known = self.known[key]
            weights[row, batch.mask[row]] = known
        return weights

    def _compute(self, batch: Batch, rows: Tensor, target: Tensor, number: int) -> list[Tensor]:
        """The weights of the words of each of these texts, which have as many players.  (n,) each"""
        ids, mask = batch.ids[rows], batch.mask[rows]
        players = (self.model.relevant[ids] & mask).nonzero()[:, 1].view(len(rows), number)
        value = _enumerated if number <= MOST else _sampled
        shares = value(self.model, ids, mask, players, target[rows]) if number else players.double()
        spread = torch.zeros(ids.shape, dtype=torch.float64).scatter(1, players, shares)
        return [weights[words] for weights, words in zip(spread, mask, strict=True)]


def _values(model: OracleModel, ids: Tensor, mask: Tensor, players: Tensor, there: Tensor, target: Tensor) -> Tensor:
    """Probability of the class with some players only.  players (G,m), there (G,S,m) -> (G,S)"""
    size = there.shape[1]
    kept = mask.unsqueeze(1).repeat(1, size, 1).scatter(2, players.unsqueeze(1).expand(-1, size, -1), there)
    logits = model.read(ids.repeat_interleave(size, 0), kept.flatten(0, 1))
    probs = logits.softmax(-1).view(len(ids), size, -1)
    return probs.gather(-1, target.view(-1, 1, 1).expand(-1, size, 1)).squeeze(-1)


def _enumerated(model: OracleModel, ids: Tensor, mask: Tensor, players: Tensor, target: Tensor) -> Tensor:
    m = players.shape[1]
    subsets = (torch.arange(1 << m).unsqueeze(-1) >> torch.arange(m)) & 1  # (S,m)
    there = subsets.bool().unsqueeze(0).expand(len(ids), -1, -1)
    values = _values(model, ids, mask, players, there, target)
    sizes = subsets.sum(-1)
    shares = []
    for j in range(m):
        without = (subsets[:, j] == 0).nonzero().squeeze(-1)
        weight = torch.tensor([1 / (m * comb(m - 1, int(size))) for size in sizes[without]], dtype=torch.float64)
        shares.append(((values[:, without + (1 << j)] - values[:, without]) * weight).sum(-1))
    return torch.stack(shares, -1)


def _sampled(model: OracleModel, ids: Tensor, mask: Tensor, players: Tensor, target: Tensor) -> Tensor:
    m = players.shape[1]
    generator = torch.Generator().manual_seed(m)
    total = torch.zeros(players.shape, dtype=torch.float64)
    for _ in range(PERMUTATIONS):
        order = torch.randperm(m, generator=generator)
        there = torch.zeros(m + 1, m, dtype=torch.bool)
        for step, player in enumerate(order.tolist()):
            there[step + 1 :, player] = True
        values = _values(model, ids, mask, players, there.unsqueeze(0).expand(len(ids), -1, -1), target)
        total[:, order] += values.diff(dim=-1)
    return total / PERMUTATIONS
