"""k units of D, chosen: hard, relaxed so that slopes pass through, or at random.

Chen, Song, Wainwright & Jordan, "Learning to Explain", ICML 2018 (arXiv:1802.07814), §3.3, after the Gumbel softmax of
Jang, Gu & Poole 2017:

    g_j   ~  Gumbel, one for each unit and each of k draws
    c_j   =  softmax((z + g_j) / τ)         one unit, nearly
    m     =  max_j c_j                      k of them at most, nearly: two draws may choose the same

    hard:    m is 1 on the k highest z, 0 elsewhere
    random:  m is 1 on k units drawn evenly, whatever the input

A draw chooses unit d with chance softmax(z)_d, so that what is chosen most often is what scores highest.

Departs from the paper: noise is new in every batch (the released code for words draws it once); what may not be chosen,
padding above all, never is.
"""

import torch
from torch import Tensor

from steadygaze.core.maths import masked, ranking
from steadygaze.core.random_key import RandomKey

FAR = 40.0
"""How far below the best a unit can be, in nats: e⁻⁴⁰ is nothing beside one, and a CPU takes five times as long over
numbers that are too small to be stored in full, of which a sure selector has many.
"""


def relaxed_k_subset(scores: Tensor, able: Tensor, k: int, temperature: float, drawn: Tensor) -> Tensor:
    """Between 0 and 1, with slopes; exactly 0 on what may not be chosen.  `drawn`: uniform.  (B,D), (B,D,k) -> (B,D)"""
    tiny = torch.finfo(drawn.dtype).tiny
    gumbel = -(-drawn.clamp_min(tiny).log()).clamp_min(tiny).log()
    noisy = (scores.unsqueeze(1) + gumbel.transpose(1, 2).to(scores.dtype)) / temperature  # (B,k,D)
    each = able.unsqueeze(1).expand_as(noisy)
    best = noisy.detach().masked_fill(~each, torch.finfo(noisy.dtype).min).amax(-1, keepdim=True)
    return masked.softmax(noisy.maximum(best - FAR), each).amax(1)


def top_k_subset(scores: Tensor, able: Tensor, k: int) -> Tensor:
    """1.0 on the k highest that may be chosen, or on all where they are fewer.  No slope.  (B,D) -> (B,D)"""
    return ranking.top_k(scores.detach(), able, k).to(scores.dtype)


def random_k_subset(able: Tensor, k: int, chance: RandomKey, rows: Tensor) -> Tensor:
    """1.0 on k that are drawn evenly, or on all where they are fewer.  (B,D), (B,) -> (B,D)"""
    return top_k_subset(chance.uniform(rows, able.shape[1]), able, k)
