"""Hidden states held, to be read with other attention weights than the model's own.

    z(w̃) = decode(h, w̃);     linear:  z(w̃) = z(w) + Σ_t (w̃_t − w_t) A_t,   A = HΘᵀ

The encoder reads each text once, however many weights are tried; of a linear decoder (T,C) numbers a text are enough.

The attention farthest from the model's own that leaves a prediction of two classes where it was.  Exact.

    max_w̃  JSD(w, w̃)    subject to  |p(w̃) − p(w)| ≤ ε,   p the probability of the second class

With a linear decoder the margin z_1 − z_0 is linear in w̃: the constraint is l ≤ Σ_t w̃_t v_t ≤ u, v_t the margin with
all attention on token t, l and u the margins of p − ε and p + ε.  JSD is convex in w̃, so that it is largest at a
corner
of what the simplex and the two bounds leave; and such a corner has weight on two tokens at most:

    w̃ = λ e_i + (1 − λ) e_j,    λ as large as  l ≤ λ v_i + (1 − λ) v_j ≤ u  allows,    over all ordered pairs i ≠ j
    JSD = f(w_i, λ) + f(w_j, 1 − λ) + ½ ln 2 (1 − w_i − w_j),    f(p, q) = ½ p ln(2p/(p + q)) + ½ q ln(2q/(p + q))

Ours; what audit/probes/counterfactual_attention.py searches for.  Pinned by tests/audit/probe/test_adversary.py.

Attention as unlike the model's own as can be found, under which its prediction stays the same.

Jain & Wallace 2019 (arXiv:1902.10186), §4.2.2: for each text, hidden states held,

    max_w̃  JSD(w, w̃)    subject to  ½ Σ_c |y_c(w̃) − y_c(w)| ≤ ε                    ε = 0.05
    by descent on  500·max(0, ½ Σ |Δy| − 0.01) − JSD(w, w̃)  in the scores s,  w̃ = softmax(s)

from five starts s ~ 3·N(0, 1), 500 steps of Adam (0.01, AMSGrad).  Kept is the w̃ of the largest JSD on any of the five
ways that is within ε; where there is none the model's own, at a distance of 0.  What is found is a lower end of the
maximum; with two classes and a linear decoder the maximum itself is known (audit/probes/counterfactual_attention.py),
and taken.

Departs from the paper: the starts are not pushed apart from one another, since the best alone is kept; and the best of
the way is kept, not its end.  Pinned by tests/audit/probe/test_adversary.py.

The attention weights of each text dealt out anew among its words: does the prediction notice?

Jain & Wallace 2019 (arXiv:1902.10186), §4.2.1: of a hundred permutations π, the prediction under w_π(1) … w_π(n).  If
it stays the same whichever word gets which weight, the weights do not say what the prediction rests on.

Only words change places: padding and special tokens keep their 0.  Which permutations is the text's own chance.

Departs from the paper: nothing known.  Pinned by tests/audit/probe/test_permute.py.

A copy of the model that has learnt nothing: what would be highlighted then?

Adebayo et al. 2018 (arXiv:1810.03292), §3: an explanation that is the same of a model with random parameters is not
about what the model has learnt.

The entries of each tensor of parameters, word vectors too, are dealt out anew among its places.

Departs from the paper, which draws from the initialiser: that of somebody else's model is not known.  Dealt out anew
they are still as large and as spread as training left them, so that the copy is no tamer than the model.  The model is
never touched; the copy takes as much memory again.  Pinned by tests/audit/probe/test_randomise.py.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from steadygaze.core.maths.divergence import jensen_shannon
from steadygaze.core.maths.masked import softmax
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch, Encoded, Forward
from steadygaze.models.attention_layers import Linear
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import inference, with_gradients
from steadygaze.techniques.perturbations.word_removal import text_key


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """Of one batch, in double precision."""

    model: Classifier
    encoded: Encoded
    weights: Tensor  # (B,T)
    logits: Tensor  # (B,C)
    reach: Tensor | None  # (B,T,C): A, where the decoder is linear

    def read(self, weights: Tensor) -> Tensor:
        """Probabilities under so many other weights of each text.  (B,K,T) -> (B,K,C)"""
        if self.reach is None:
            logits = [self.model.decode(self.encoded, one).double() for one in weights.unbind(1)]
            return torch.stack(logits, 1).softmax(-1)
        return (self.logits.unsqueeze(1) + (weights - self.weights.unsqueeze(1)) @ self.reach).softmax(-1)


def hidden_states(model: Classifier, batch: Batch) -> HiddenStates:
    with inference(model):
        forward: Forward = model(batch)
        reach = model.decoder.reach(forward.encoded).double() if isinstance(model.decoder, Linear) else None
    return HiddenStates(model, forward.encoded, forward.weights.double(), forward.logits.double(), reach)


MOST = 1 << 22
"""Pairs of tokens at once: 32 MB of doubles, and some ten of those."""


@dataclass(frozen=True, slots=True)
class FoundAttention:
    """Another attention of each text, in double precision."""

    weights: Tensor  # (B,T)
    distance: Tensor  # (B,) JSD from the model's own, in nats
    change: Tensor  # (B,) how far the prediction moved


def farthest_attention(weights: Tensor, logits: Tensor, reach: Tensor, mask: Tensor, allowed: float) -> FoundAttention:
    """(B,T), (B,2), (B,T,2), (B,T); the model's own where a text has no two words."""
    many = max(1, MOST // max(1, mask.shape[1]) ** 2)
    parts = [slice(start, start + many) for start in range(0, len(mask), many)]
    found = [_farthest(weights[some], logits[some], reach[some], mask[some], allowed) for some in parts]
    return FoundAttention(
        *(torch.cat([getattr(one, name) for one in found]) for name in ("weights", "distance", "change"))
    )


def _farthest(own: Tensor, logits: Tensor, reach: Tensor, mask: Tensor, allowed: float) -> FoundAttention:
    pull, margin = reach[..., 1] - reach[..., 0], logits[:, 1] - logits[:, 0]
    corner = (margin - (own * pull).sum(-1)).unsqueeze(-1) + pull  # v
    chance = margin.sigmoid()
    low, high = (edge.clamp(0.0, 1.0).logit() for edge in (chance - allowed, chance + allowed))
    share = _share(corner, low, high).masked_fill(~_pairs(mask), torch.nan)  # λ (B,T,T)
    distance = _apart(own, share).nan_to_num(nan=-1.0)
    best = distance.flatten(1).argmax(-1)
    row, i, j = torch.arange(len(own), device=own.device), best // own.shape[1], best % own.shape[1]
    some = distance[row, i, j] > 0
    weights = torch.zeros_like(own)
    weights[row, i], weights[row, j] = share[row, i, j], 1 - share[row, i, j]
    weights = torch.where(some.unsqueeze(-1), weights, own)
    moved = (margin + ((weights - own) * pull).sum(-1)).sigmoid() - chance
    return FoundAttention(weights, distance[row, i, j].clamp_min(0.0), moved.abs())


def _share(corner: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The largest λ for each pair, NaN where there is none.  (B,T), (B,), (B,) -> (B,T,T)"""
    first, second = corner.unsqueeze(-1), corner.unsqueeze(-2)  # v_i, v_j
    ends = torch.stack([(edge[:, None, None] - second) / (first - second) for edge in (low, high)])
    least, most = ends.amin(0).clamp_min(0.0), ends.amax(0).clamp_max(1.0)
    found = most.masked_fill(least > most, torch.nan)
    inside = (first >= low[:, None, None]) & (first <= high[:, None, None])
    return torch.where(inside, 1.0, found.masked_fill(first == second, torch.nan))


def _apart(own: Tensor, share: Tensor) -> Tensor:
    """(B,T), (B,T,T) -> (B,T,T)"""
    first, second = own.unsqueeze(-1), own.unsqueeze(-2)
    return _half(first, share) + _half(second, 1 - share) + math.log(2) / 2 * (1 - first - second)


def _half(p: Tensor, q: Tensor) -> Tensor:
    """f(p, q), 0 where both are."""
    both = (p + q).clamp_min(torch.finfo(p.dtype).tiny)
    return (torch.xlogy(p, 2 * p / both) + torch.xlogy(q, 2 * q / both)) / 2


def _pairs(mask: Tensor) -> Tensor:
    """Two words, not one twice.  (B,T) -> (B,T,T)"""
    other = ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    return mask.unsqueeze(-1) & mask.unsqueeze(-2) & other


RESTARTS, STEPS, RATE, SPREAD = 5, 500, 0.01, 3.0
"""The paper's code's."""
ALLOWED = 0.05
"""ε: how far the prediction may move."""
AIMED, PENALTY = 0.01, 500.0
"""Where the search begins to mind, and how much."""


def adversarial_attention(model: Classifier, batch: Batch, chance: RandomKey) -> FoundAttention:
    """The farthest attention where it is known, else what a search finds."""
    held = hidden_states(model, batch)
    if held.reach is not None and held.logits.shape[-1] == 2:
        return farthest_attention(held.weights, held.logits, held.reach, batch.mask, ALLOWED)
    return search_attention(held, batch, chance, RESTARTS, STEPS)


def search_attention(held: HiddenStates, batch: Batch, chance: RandomKey, restarts: int, steps: int) -> FoundAttention:
    mask = batch.mask.unsqueeze(1)
    starts = [chance.child(i).normal(text_key(batch), batch.ids.shape[1], dtype=torch.float64) for i in range(restarts)]
    scores = (SPREAD * torch.stack(starts, 1)).requires_grad_()  # (B,K,T)
    adam = torch.optim.Adam([scores], lr=RATE, amsgrad=True)
    best = FoundAttention(held.weights, torch.zeros_like(held.logits[:, 0]), torch.zeros_like(held.logits[:, 0]))
    with with_gradients(held.model):
        for _ in range(steps):
            here = _measured(held, softmax(scores, mask), mask)
            best = _better(best, here)
            loss = PENALTY * (here.change - AIMED).relu() - here.distance
            (scores.grad,) = torch.autograd.grad(loss.sum(), scores)  # the model's own gradients stay as they are
            adam.step()
        with torch.no_grad():
            return _better(best, _measured(held, softmax(scores, mask), mask))


def _measured(held: HiddenStates, weights: Tensor, mask: Tensor) -> FoundAttention:
    """(B,K,T) -> the same of K attentions of each text."""
    moved = held.read(weights) - held.logits.softmax(-1).unsqueeze(1)
    return FoundAttention(weights, jensen_shannon(held.weights.unsqueeze(1), weights, mask), moved.abs().sum(-1) / 2)


def _better(best: FoundAttention, here: FoundAttention) -> FoundAttention:
    """The best so far of each text, or the best of its ways here."""
    valid = here.distance.detach().masked_fill(here.change > ALLOWED, -1.0)
    distance, way = valid.max(1)
    better, row = distance > best.distance, torch.arange(len(way), device=way.device)
    return FoundAttention(
        torch.where(better.unsqueeze(-1), here.weights.detach()[row, way], best.weights),
        torch.where(better, distance, best.distance),
        torch.where(better, here.change.detach()[row, way], best.change),
    )


NUMBER = 100
"""Permutations: the paper's."""
CHUNK = 20
"""Permutations at once: 65,536 tokens, a large batch, are then 10 MB of doubles."""


def permuted_predictions(model: Classifier, batch: Batch, chance: RandomKey, number: int = NUMBER) -> Tensor:
    """Probabilities under each permutation.  (B,number,C)"""
    held = hidden_states(model, batch)
    with inference(model):
        return torch.cat([held.read(some) for some in _dealt(held.weights, batch, chance, number)], 1)


def _dealt(weights: Tensor, batch: Batch, chance: RandomKey, number: int) -> Iterator[Tensor]:
    """The weights in other orders, some at a time.  (B,T) -> (B,K,T)"""
    key, width = text_key(batch), batch.ids.shape[1]
    outside = ~batch.mask.unsqueeze(1)  # (B,1,T)
    reading = outside.to(torch.uint8).argsort(dim=-1, stable=True)  # the words in their order, then the rest
    for start in range(0, number, CHUNK):
        many = min(CHUNK, number - start)
        drawn = chance.child(start).uniform(key, width, many, dtype=torch.float64).transpose(1, 2)
        order = drawn.masked_fill(outside, 2.0).argsort(dim=-1)  # the words in a random order, then the rest
        moved = weights.unsqueeze(1).expand_as(drawn).gather(-1, order)
        yield torch.zeros_like(moved).scatter(-1, reading.expand_as(order), moved)


Model = TypeVar("Model", bound=nn.Module)


def randomized_copy(model: Model, chance: RandomKey) -> Model:
    """In evaluation mode, without gradients."""
    other = copy.deepcopy(model).eval().requires_grad_(False)
    for i, parameter in enumerate(other.parameters()):  # each once, tied ones too
        drawn = torch.Generator().manual_seed(chance.child(i).key)
        order = torch.randperm(parameter.numel(), generator=drawn).to(parameter.device)
        parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return other.to(next(other.parameters()).device)  # `to` packs a recurrent network's weights together again
