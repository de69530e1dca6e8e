"""Weights that make labels independent of masks.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §4.2, Fact 1:

    w(y, m)  =  P(y) / P(y|m)          E_P [w L]  =  E_Q [L]      where Q has the same masks and labels, unrelated

They need 0 < P(y|m): where the mask decides the label, every example that is seen has P(y|m) = 1, all have the same
weight P(y), and once those are made to average one, of balanced classes nothing is left of them.  Where an example is
so much of each class, p_c, and the mask decides that, w_c p_c = P(c): the mask is worth nothing any more, unless the
weights are clipped before they get there.

Departs from the paper, which is silent on it: clipped, and scaled so that the examples of a batch weigh one on average.
"""

import math

from torch import Tensor

LOW, HIGH = 0.1, 10.0
"""What weights are clipped to."""
DECIDED = 0.1
"""Of the entropy of the labels: a mask that leaves less than this of it open has decided them."""


def weights(
    prior: Tensor, given: Tensor, target: Tensor, low: float = LOW, high: float = HIGH, scaled: bool = True
) -> Tensor:
    """Of each class, how much it counts in an example; without slope.

    `prior`: P(y), (C,).  `given`: log P(y|m), (B,C).  `target`: how much of the example each class is.  (B,C) -> (B,C)
    """
    ratio = (prior.log() - given.detach()).clamp(math.log(low), math.log(high)).exp()
    if not scaled:
        return ratio
    return ratio / (ratio * target).sum(-1).mean().clamp_min(low)


def entropy(prior: Tensor) -> float:
    """Of the labels, in nats: what a classifier that knows nothing loses."""
    return float(-(prior * prior.clamp_min(1e-12).log()).sum())


def decided(loss: float, prior: Tensor) -> bool:
    """Whether a classifier that sees masks alone, and loses so much, knows the labels."""
    return loss < DECIDED * entropy(prior)
