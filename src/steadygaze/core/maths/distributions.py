"""Weights of the real tokens of a text: distributions and divergences, norms, top-k tokens and rank correlations.

Over tokens: (…,T) tensors and a mask of the same shape, True on a real token.  Masked tokens affect neither values nor
gradients.  Divergences compare two tensors that sum to one over the real tokens.  Logarithms are natural: everything is
in nats.  Over classes: probabilities (B,C) and logits (B,C) -> (B,).

    unit_vector(g)    g / ‖g‖₂
    project(δ)        argmin ‖δ' − δ‖₂  over  ‖δ'‖ ≤ R
    dual_norm(a)      max  <a, δ>  over  ‖δ‖ ≤ 1:   ‖a‖₁ for the ℓ∞ ball, ‖a‖₂ for the ℓ2 ball (Hölder)

    top_k(w)    the k top-weighted real tokens; ties: the earlier
    overlap     |top_k(p) ∩ top_k(q)| / k             Hu et al. 2022 (SEAT), Definition 1
    pearson     cov(x, y) / (σ_x σ_y)
    kendall     τ_b = (C − D) / √(n_x n_y)            Kendall 1945

C, D: concordant and discordant pairs of tokens.  n_x, n_y: pairs without ties in x, y.

Differs from the paper: in a text of fewer than k words, k is the number of words.  All are over the real tokens of each
row, (B,T) -> (B,).  A correlation is NaN for fewer than three words, or if all words have the same value.
"""

from typing import Literal

import torch
from torch import Tensor

Norm = Literal["l2", "linf"]
FEWEST = 3
"""Minimum number of words for a correlation."""


def softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """exp(s) / Σ exp(s) over the real tokens, exactly 0 elsewhere; 0 in a row without any.  (…,T) -> (…,T)"""
    lowest = torch.finfo(scores.dtype).min  # not −∞: a row without real tokens would become NaN
    outside = ~mask
    return scores.masked_fill(outside, lowest).softmax(-1).masked_fill(outside, 0.0)


def normalize(weights: Tensor, mask: Tensor) -> Tensor:
    """|w| / Σ|w|: a distribution over the real tokens; uniform if all weights are 0.  (…,T) -> (…,T)"""
    size = weights.abs().masked_fill(~mask, 0.0)
    total = size.sum(-1, keepdim=True)
    uniform = mask.to(size.dtype) / mask.sum(-1, keepdim=True).clamp_min(1)
    # == 0, not <= 0: NaN must stay NaN.
    return torch.where(total == 0, uniform, size / total.clamp_min(torch.finfo(size.dtype).tiny))


def mean(values: Tensor, mask: Tensor) -> Tensor:
    """Σ v / n over the real tokens; 0 without any.  (…,T,H), (…,T) -> (…,H)"""
    total = values.masked_fill(~mask.unsqueeze(-1), 0.0).sum(-2)
    return total / mask.sum(-1, keepdim=True).clamp_min(1)


def maximum(values: Tensor, mask: Tensor) -> Tensor:
    """max over the real tokens; 0 without any.  (…,T,H), (…,T) -> (…,H)"""
    lowest = torch.finfo(values.dtype).min
    highest = values.masked_fill(~mask.unsqueeze(-1), lowest).amax(-2)
    return highest.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def mass(weights: Tensor, where: Tensor, mask: Tensor) -> Tensor:
    """Σ_t e_t |w_t| / Σ_t |w_t| over the words, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)

    where: e, the words as booleans, or their marks between 0 and 1
    """
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).masked_fill(~mask, 0.0).abs()
    return mass_share((size * where).sum(-1), size.sum(-1))


def mass_share(some: Tensor, whole: Tensor) -> Tensor:
    """some / whole; 0 if `whole` is 0."""
    return some / whole.masked_fill(whole == 0, 1)


def total_variation(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """½ Σ |p − q|   in [0, 1].  (…,T) -> (…,)"""
    return (p - q).masked_fill(~mask, 0.0).abs().sum(-1) / 2


def kl(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """Σ p (ln p − ln q)   in [0, ∞), with 0·ln 0 = 0.  The log is floored: large, but finite, if q = 0 < p."""
    p, q = p.masked_fill(~mask, 1.0), q.masked_fill(~mask, 1.0)  # ln 1 = 0
    return (p * (_log(p) - _log(q))).sum(-1)


def jensen_shannon(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """½ KL(p‖m) + ½ KL(q‖m),  m = ½(p + q)   in [0, ln 2].  Lin 1991.  (…,T) -> (…,)"""
    m = (p + q) / 2
    # Rounding can give a value just below 0.
    return ((kl(p, m, mask) + kl(q, m, mask)) / 2).clamp_min(0.0)


def entropy(p: Tensor, mask: Tensor) -> Tensor:
    """−Σ p ln p   in [0, ln n] over n real tokens.  (…,T) -> (…,)"""
    p = p.masked_fill(~mask, 1.0)
    return 0.0 - (p * _log(p)).sum(-1)  # avoids −0


def cross_entropy(target_probs: Tensor, logits: Tensor) -> Tensor:
    """−Σ_c t_c ln softmax(z)_c.  (B,C), (B,C) -> (B,)"""
    return -(target_probs * logits.log_softmax(-1)).sum(-1)


def kl_logits(target_probs: Tensor, logits: Tensor) -> Tensor:
    """Σ_c t_c (ln t_c − ln softmax(z)_c): the cross-entropy minus the entropy of the target.  (B,C), (B,C) -> (B,)"""
    return (target_probs * (_log(target_probs) - logits.log_softmax(-1))).sum(-1)


def _log(p: Tensor) -> Tensor:
    """ln p, floored at the smallest normal number: 0·ln 0 is then 0, and its gradient finite."""
    return p.clamp_min(torch.finfo(p.dtype).tiny).log()


def unit_vector(g: Tensor) -> Tensor:
    """g / ‖g‖₂ over all dimensions but the first; a row of zeros stays zero.  (B,…) -> (B,…)"""
    rest = tuple(range(1, g.dim()))
    if not g.numel():
        return g
    # Squares of gradients under 1e-23 vanish in float32.  The constant factor has no effect on the result.
    largest = torch.linalg.vector_norm(g.detach(), torch.inf, dim=rest, keepdim=True)
    g = g / largest.masked_fill(largest == 0, 1.0)
    length: Tensor = torch.linalg.vector_norm(g, dim=rest, keepdim=True)
    return g / length.clamp_min(1.0)  # at least 1, or all are 0


def project(delta: Tensor, radius: float | Tensor, norm: Norm) -> Tensor:
    """Return the nearest point of the ball around 0; radius: one for all, or (B,).  (B,…) -> (B,…)"""
    if isinstance(radius, Tensor):
        radius = radius.reshape(-1, *[1] * (delta.dim() - 1))
    if norm == "linf":
        return torch.where(delta.abs() > radius, radius * delta.sign(), delta)
    if norm == "l2":
        length = torch.linalg.vector_norm(delta, dim=tuple(range(1, delta.dim())), keepdim=True)
        return torch.where(length > radius, radius * unit_vector(delta), delta)
    raise ValueError(f"norm is {norm!r}; it must be 'l2' or 'linf'")


def dual_norm(a: Tensor, norm: Norm, mask: Tensor) -> Tensor:
    """Return the largest <a, δ> over the real tokens with ‖δ‖ ≤ 1.  (…,T), (…,T) -> (…)"""
    a = a.masked_fill(~mask, 0.0)
    if norm == "linf":
        return a.abs().sum(-1)
    if norm == "l2":
        length: Tensor = torch.linalg.vector_norm(a, dim=-1)
        return length
    raise ValueError(f"norm is {norm!r}; it must be 'l2' or 'linf'")


def top_k(weights: Tensor, mask: Tensor, k: int | Tensor) -> Tensor:
    """Return True on the top min(k, words) real tokens; k: one for all, or (B,).  (…,T), (…,T) -> (…,T) bool"""
    if isinstance(k, int) and k < 1:
        raise ValueError(f"k is {k}; it must be at least 1")
    # topk breaks ties arbitrarily, and differently on a GPU; a stable sort keeps the reading order.
    lowest = torch.finfo(weights.dtype).min  # a real token of −∞ precedes masked tokens
    order = weights.clamp_min(lowest).masked_fill(~mask, -torch.inf).sort(dim=-1, descending=True, stable=True).indices
    top = torch.arange(weights.shape[-1], device=weights.device) < _size(mask, k).unsqueeze(-1)
    return torch.zeros_like(mask).scatter(-1, order, top)


def top_k_overlap(p: Tensor, q: Tensor, mask: Tensor, k: int | Tensor) -> Tensor:
    """Return the overlap of the top tokens of p and q, in [0, 1]; 1 for a row without words.  (…,T) -> (…,)"""
    size = _size(mask, k)
    shared = (top_k(p, mask, k) & top_k(q, mask, k)).sum(-1).to(p.dtype)
    return torch.where(size > 0, shared / size.clamp_min(1), 1.0)


def pearson(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Return the Pearson correlation, in [−1, 1] or NaN.  (B,T) -> (B,)"""
    correlation = (unit_vector(_centered(x, mask)) * unit_vector(_centered(y, mask))).sum(-1).clamp(-1.0, 1.0)
    return correlation.masked_fill(~(_varied(x, mask) & _varied(y, mask)), torch.nan)


def kendall(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Return Kendall's τ_b, in [−1, 1] or NaN, without a gradient.  (B,T) -> (B,)"""
    x_order, y_order = _order(x, mask), _order(y, mask)
    agreement = (x_order * y_order).sum((-1, -2), dtype=torch.int64)
    x_pairs, y_pairs = (order.abs().sum((-1, -2), dtype=torch.int64).to(x.dtype) for order in (x_order, y_order))
    correlation = agreement / (x_pairs * y_pairs).sqrt()
    enough = mask.sum(-1) >= FEWEST
    return correlation.clamp(-1.0, 1.0).masked_fill(~enough, torch.nan)  # a constant row is 0 / 0: NaN already


def ordered_differences(x: Tensor, y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean difference of y between two real tokens, in the order of x and in the order of y.

    The first divided by the second is the Gini correlation.  NaN for fewer than two tokens.  (B,T) -> (B,), (B,)
    """
    pairs = (mask.unsqueeze(-1) & mask.unsqueeze(-2)).triu(1)
    difference = (y.unsqueeze(-1) - y.unsqueeze(-2)).masked_fill(~pairs, 0.0)
    number = pairs.sum((-1, -2))
    own = (difference * _order(x, mask)).sum((-1, -2)) / number
    return own, difference.abs().sum((-1, -2)) / number


def _size(mask: Tensor, k: int | Tensor) -> Tensor:
    words = mask.sum(-1)
    return words.clamp_max(k) if isinstance(k, int) else torch.minimum(words, k)


def _centered(x: Tensor, mask: Tensor) -> Tensor:
    x = x.masked_fill(~mask, 0.0)
    mean = x.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp_min(1)
    return (x - mean).masked_fill(~mask, 0.0)


def _varied(x: Tensor, mask: Tensor) -> Tensor:
    """Compare values, because the variance of equal values can round above 0.  (B,T) -> (B,) bool"""
    highest = x.masked_fill(~mask, -torch.inf).amax(-1)
    lowest = x.masked_fill(~mask, torch.inf).amin(-1)
    return (highest > lowest) & (mask.sum(-1) >= FEWEST)


def _order(x: Tensor, mask: Tensor) -> Tensor:
    """The sign of x_i − x_j for each pair of real tokens, else 0.  (B,T) -> (B,T,T) int8"""
    first, second = x.unsqueeze(-1), x.unsqueeze(-2)
    sign = (first > second).to(torch.int8) - (first < second).to(torch.int8)
    return sign * (mask.unsqueeze(-1) & mask.unsqueeze(-2))
