"""Counterfactual attention: adversarial, permuted, and that of a model with randomized parameters.

The hidden states h stay fixed and the decoder runs with other weights w̃.

    z(w̃) = decode(h, w̃);     linear:  z(w̃) = z(w) + Σ_t (w̃_t − w_t) A_t,   A = HΘᵀ

Adversarial attention, exact for two classes and a linear decoder (ours):

    max_w̃  JSD(w, w̃)    subject to  |p(w̃) − p(w)| ≤ ε,   p: the probability of the second class

The margin z_1 − z_0 is then linear in w̃: the constraint is l ≤ Σ_t w̃_t v_t ≤ u.  Here v_t is the margin with all
attention on token t; l and u are the margins of p − ε and p + ε.  JSD is convex in w̃, so its maximum is at a vertex of
the feasible set, which has weight on at most two tokens:

    w̃ = λ e_i + (1 − λ) e_j,    λ as large as  l ≤ λ v_i + (1 − λ) v_j ≤ u  allows,    over all ordered pairs i ≠ j
    JSD = f(w_i, λ) + f(w_j, 1 − λ) + ½ ln 2 (1 − w_i − w_j),    f(p, q) = ½ p ln(2p/(p + q)) + ½ q ln(2q/(p + q))

Otherwise by search: Jain & Wallace 2019 (arXiv:1902.10186), §4.2.2, for each text:

    max_w̃  JSD(w, w̃)    subject to  ½ Σ_c |y_c(w̃) − y_c(w)| ≤ ε                    ε = 0.05
    by descent on  500·max(0, ½ Σ |Δy| − 0.01) − JSD(w, w̃)  in the scores s,  w̃ = softmax(s)

from five starts s ~ 3·N(0, 1), 500 steps of Adam (0.01, AMSGrad).  The result is the w̃ with the largest JSD within ε at
any step of any start, or the model's own weights.  It is a lower bound of the maximum.

Departs from the paper: the starts do not repel each other, and the best step counts, not the last.

Permuted attention: Jain & Wallace 2019, §4.2.1.  The prediction under w_π(1) … w_π(n) for 100 random permutations π of
the words' weights.  Padding and special tokens keep weight 0.  The permutations depend on the text only.

Randomized parameters: Adebayo et al. 2018 (arXiv:1810.03292), §3.  An explanation that is the same for a model with
random parameters does not depend on what the model has learned.

Departs from the paper, which draws from the initializer: that of an external model is unknown.  Here the entries of
each parameter tensor are permuted, which preserves their distribution.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from steadygaze.core.maths.distributions import jensen_shannon, softmax
from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.types import Batch, Encoded, Forward
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import inference, with_gradients


@dataclass(frozen=True, slots=True)
class HiddenStates:
    """The forward pass of one batch, in double precision."""

    model: Classifier
    encoded: Encoded
    weights: Tensor  # (B,T)
    logits: Tensor  # (B,C)
    reach: Tensor | None  # (B,T,C): A, if the decoder is linear

    def read(self, weights: Tensor) -> Tensor:
        """Probabilities under K other attentions of each text.  (B,K,T) -> (B,K,C)"""
        if self.reach is None:
            logits = [self.model.decode(self.encoded, attention).double() for attention in weights.unbind(1)]
            return torch.stack(logits, 1).softmax(-1)
        return (self.logits.unsqueeze(1) + (weights - self.weights.unsqueeze(1)) @ self.reach).softmax(-1)


def hidden_states(model: Classifier, batch: Batch) -> HiddenStates:
    with inference(model):
        forward: Forward = model(batch)
        reach = model.reach(forward.encoded)
    weights, logits = forward.weights.double(), forward.logits.double()
    return HiddenStates(model, forward.encoded, weights, logits, None if reach is None else reach.double())


MAX_PAIRS = 1 << 22
"""Token pairs processed at once: about ten tensors of 32 MB."""


@dataclass(frozen=True, slots=True)
class FoundAttention:
    """A counterfactual attention of each text, in double precision."""

    weights: Tensor  # (B,T)
    distance: Tensor  # (B,) JSD from the model's own, in nats
    change: Tensor  # (B,) total variation of the prediction


def farthest_attention(
    weights: Tensor, logits: Tensor, reach: Tensor, mask: Tensor, tolerance: float
) -> FoundAttention:
    """(B,T), (B,2), (B,T,2), (B,T); the model's own attention for texts of fewer than two words."""
    size = max(1, MAX_PAIRS // max(1, mask.shape[1]) ** 2)
    chunks = [slice(start, start + size) for start in range(0, len(mask), size)]
    parts = [_farthest(weights[rows], logits[rows], reach[rows], mask[rows], tolerance) for rows in chunks]
    return FoundAttention(
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("weights", "distance", "change"))
    )


def _farthest(weights: Tensor, logits: Tensor, reach: Tensor, mask: Tensor, tolerance: float) -> FoundAttention:
    slope, margin = reach[..., 1] - reach[..., 0], logits[:, 1] - logits[:, 0]
    vertex_margin = (margin - (weights * slope).sum(-1)).unsqueeze(-1) + slope  # v
    probability = margin.sigmoid()
    low, high = (bound.clamp(0.0, 1.0).logit() for bound in (probability - tolerance, probability + tolerance))
    share = _largest_share(vertex_margin, low, high).masked_fill(~_word_pairs(mask), torch.nan)  # λ (B,T,T)
    distance = _vertex_divergence(weights, share).nan_to_num(nan=-1.0)
    best = distance.flatten(1).argmax(-1)
    row, i, j = torch.arange(len(weights), device=weights.device), best // weights.shape[1], best % weights.shape[1]
    feasible = distance[row, i, j] > 0
    found_weights = torch.zeros_like(weights)
    found_weights[row, i], found_weights[row, j] = share[row, i, j], 1 - share[row, i, j]
    found_weights = torch.where(feasible.unsqueeze(-1), found_weights, weights)
    change = (margin + ((found_weights - weights) * slope).sum(-1)).sigmoid() - probability
    return FoundAttention(found_weights, distance[row, i, j].clamp_min(0.0), change.abs())


def _largest_share(vertex_margin: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The largest λ for each pair, NaN if there is none.  (B,T), (B,), (B,) -> (B,T,T)"""
    first, second = vertex_margin.unsqueeze(-1), vertex_margin.unsqueeze(-2)  # v_i, v_j
    ends = torch.stack([(bound[:, None, None] - second) / (first - second) for bound in (low, high)])
    minimum, maximum = ends.amin(0).clamp_min(0.0), ends.amax(0).clamp_max(1.0)
    share = maximum.masked_fill(minimum > maximum, torch.nan)
    inside = (first >= low[:, None, None]) & (first <= high[:, None, None])
    return torch.where(inside, 1.0, share.masked_fill(first == second, torch.nan))


def _vertex_divergence(weights: Tensor, share: Tensor) -> Tensor:
    """JSD for each pair.  (B,T), (B,T,T) -> (B,T,T)"""
    first, second = weights.unsqueeze(-1), weights.unsqueeze(-2)
    return _divergence_term(first, share) + _divergence_term(second, 1 - share) + math.log(2) / 2 * (1 - first - second)


def _divergence_term(p: Tensor, q: Tensor) -> Tensor:
    """f(p, q); 0 if both are 0."""
    total = (p + q).clamp_min(torch.finfo(p.dtype).tiny)
    return (torch.xlogy(p, 2 * p / total) + torch.xlogy(q, 2 * q / total)) / 2


def _word_pairs(mask: Tensor) -> Tensor:
    """Pairs of two different words.  (B,T) -> (B,T,T)"""
    off_diagonal = ~torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    return mask.unsqueeze(-1) & mask.unsqueeze(-2) & off_diagonal


RESTARTS, STEPS, RATE, SPREAD = 5, 500, 0.01, 3.0
"""As in the paper's code."""
MAX_CHANGE = 0.05
"""ε: largest change of the prediction."""
PENALTY_START, PENALTY = 0.01, 500.0
"""The change at which the penalty starts, and its weight."""


def adversarial_attention(model: Classifier, batch: Batch, random_key: RandomKey) -> FoundAttention:
    """The farthest attention, exact if possible, else by search."""
    states = hidden_states(model, batch)
    if states.reach is not None and states.logits.shape[-1] == 2:
        return farthest_attention(states.weights, states.logits, states.reach, batch.mask, MAX_CHANGE)
    return search_attention(states, batch, random_key, RESTARTS, STEPS)


def search_attention(
    states: HiddenStates, batch: Batch, random_key: RandomKey, restarts: int, steps: int
) -> FoundAttention:
    mask = batch.mask.unsqueeze(1)
    starts = [
        random_key.child(i).normal(text_key(batch), batch.ids.shape[1], dtype=torch.float64) for i in range(restarts)
    ]
    scores = (SPREAD * torch.stack(starts, 1)).requires_grad_()  # (B,K,T)
    adam = torch.optim.Adam([scores], lr=RATE, amsgrad=True)
    best = FoundAttention(states.weights, torch.zeros_like(states.logits[:, 0]), torch.zeros_like(states.logits[:, 0]))
    with with_gradients(states.model):
        for _ in range(steps):
            candidates = _evaluate(states, softmax(scores, mask), mask)
            best = _better(best, candidates)
            loss = PENALTY * (candidates.change - PENALTY_START).relu() - candidates.distance
            (scores.grad,) = torch.autograd.grad(loss.sum(), scores)  # leaves the model's own gradients unchanged
            adam.step()
        with torch.no_grad():
            return _better(best, _evaluate(states, softmax(scores, mask), mask))


def _evaluate(states: HiddenStates, weights: Tensor, mask: Tensor) -> FoundAttention:
    """K attentions of each text, (B,K,T), with their distances and changes."""
    change = states.read(weights) - states.logits.softmax(-1).unsqueeze(1)
    return FoundAttention(weights, jensen_shannon(states.weights.unsqueeze(1), weights, mask), change.abs().sum(-1) / 2)


def _better(best: FoundAttention, candidates: FoundAttention) -> FoundAttention:
    """The best attention of each text, so far or among its candidates."""
    valid = candidates.distance.detach().masked_fill(candidates.change > MAX_CHANGE, -1.0)
    distance, start = valid.max(1)
    improved, row = distance > best.distance, torch.arange(len(start), device=start.device)
    return FoundAttention(
        torch.where(improved.unsqueeze(-1), candidates.weights.detach()[row, start], best.weights),
        torch.where(improved, distance, best.distance),
        torch.where(improved, candidates.change.detach()[row, start], best.change),
    )


NUMBER = 100
"""Permutations, as in the paper."""
CHUNK = 20
"""Permutations at once: 10 MB for a batch of 65,536 tokens."""


def permuted_predictions(model: Classifier, batch: Batch, random_key: RandomKey, number: int = NUMBER) -> Tensor:
    """Probabilities under each permutation.  (B,number,C)"""
    states = hidden_states(model, batch)
    with inference(model):
        return torch.cat([states.read(chunk) for chunk in _permuted(states.weights, batch, random_key, number)], 1)


def _permuted(weights: Tensor, batch: Batch, random_key: RandomKey, number: int) -> Iterator[Tensor]:
    """Random permutations of the weights, in chunks.  (B,T) -> (B,K,T)"""
    key, width = text_key(batch), batch.ids.shape[1]
    outside = ~batch.mask.unsqueeze(1)  # (B,1,T)
    original = outside.to(torch.uint8).argsort(dim=-1, stable=True)  # the words in their order, then the rest
    for start in range(0, number, CHUNK):
        count = min(CHUNK, number - start)
        sort_key = random_key.child(start).uniform(key, width, count, dtype=torch.float64).transpose(1, 2)
        order = sort_key.masked_fill(outside, 2.0).argsort(dim=-1)  # the words in a random order, then the rest
        permuted = weights.unsqueeze(1).expand_as(sort_key).gather(-1, order)
        yield torch.zeros_like(permuted).scatter(-1, original.expand_as(order), permuted)


Model = TypeVar("Model", bound=nn.Module)


def randomized_copy(model: Model, random_key: RandomKey) -> Model:
    """A copy with permuted parameters, in evaluation mode, without gradients."""
    copied = copy.deepcopy(model).eval().requires_grad_(False)
    for i, parameter in enumerate(copied.parameters()):  # tied parameters occur once
        generator = torch.Generator().manual_seed(random_key.child(i).key)
        order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
        parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return copied.to(next(copied.parameters()).device)  # `to` flattens the weights of a recurrent network again
