"""Subsets of k of D units: hard, relaxed with gradients, or random.

Chen, Song, Wainwright & Jordan, "Learning to Explain", ICML 2018 (arXiv:1802.07814), §3.3, after the Gumbel softmax of
Jang, Gu & Poole 2017:

    g_j   ~  Gumbel, one for each unit and each of k samples
    c_j   =  softmax((z + g_j) / τ)         approximately one unit
    m     =  max_j c_j                      approximately k units or fewer: two samples can coincide

    hard:    m is 1 on the k highest z, 0 elsewhere
    random:  m is 1 on k units sampled uniformly, independent of the input

A sample is unit d with probability softmax(z)_d, so that the units with the highest scores are sampled most often.

Differs from the paper: noise is new in every batch (the released code for words samples it once).  Ineligible units,
such as padding, are never selected.
"""

import torch
from torch import Tensor

from steadygaze.core.maths import distributions
from steadygaze.core.random_key import RandomKey

FAR = 40.0
"""Maximum distance from the best score, in nats: e⁻⁴⁰ is negligible, and denormal numbers are five times slower."""


def relaxed_k_subset(scores: Tensor, selectable: Tensor, temperature: float, drawn: Tensor) -> Tensor:
    """Return a relaxed mask, exactly 0 on ineligible units.  `drawn`: uniform samples.  (B,D), (B,D,k) -> (B,D)"""
    tiny = torch.finfo(drawn.dtype).tiny
    gumbel = -(-drawn.clamp_min(tiny).log()).clamp_min(tiny).log()
    noisy = (scores.unsqueeze(1) + gumbel.transpose(1, 2).to(scores.dtype)) / temperature  # (B,k,D)
    each = selectable.unsqueeze(1).expand_as(noisy)
    best = noisy.detach().masked_fill(~each, torch.finfo(noisy.dtype).min).amax(-1, keepdim=True)
    return distributions.softmax(noisy.maximum(best - FAR), each).amax(1)


def top_k_subset(scores: Tensor, selectable: Tensor, k: int) -> Tensor:
    """Return 1.0 on the k highest eligible units, without a gradient.  (B,D) -> (B,D)"""
    return distributions.top_k(scores.detach(), selectable, k).to(scores.dtype)


def random_k_subset(selectable: Tensor, k: int, key: RandomKey, rows: Tensor) -> Tensor:
    """Return 1.0 on k eligible units sampled uniformly.  (B,D), (B,) -> (B,D)"""
    return top_k_subset(key.uniform(rows, selectable.shape[1]), selectable, k)
