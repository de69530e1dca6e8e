"""Label leakage through a mask: how much more a selection tells its own partner than an independent reader.

    independent reader accuracy   [ argmax r(x ⊙ m) = argmax p(x) ]       r: trained on random masks only
    leakage gap                   [ argmax q(x ⊙ m) = argmax p(x) ]  −  independent reader accuracy

A class that shares the highest probability with others counts in part: of k equal ones, 1 / k.

p(x) is the prediction that is explained, m the selection and q the network that was trained on such selections: an
explainer's approximator, or a rationalizer's predictor.  Both read the same units.  The gap is 0 where the units
themselves carry the label, and large where the choice of units does (Bai et al. 2021, arXiv:2006.05656, §3).

Weights that make labels independent of masks.

Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021 (arXiv:2006.05656), §4.2, Fact 1:

    w(y, m)  =  P(y) / P(y|m)          E_P [w L]  =  E_Q [L]      where Q has the same masks and labels, unrelated

They need 0 < P(y|m): where the mask decides the label, every example that is seen has P(y|m) = 1, all have the same
weight P(y), and once those are made to average one, of balanced classes nothing is left of them.  Where an example is
so much of each class, p_c, and the mask decides that, w_c p_c = P(c): the mask is worth nothing any more, unless the
weights are clipped before they get there.

Departs from the paper, which is silent on it: clipped, and scaled so that the examples of a batch weigh one on average.
"""

import math

import torch
from torch import Tensor


def independent_reader_accuracy(full: Tensor, kept: Tensor) -> Tensor:
    """How often the reader gives the predicted class, over K masks of each input, in [0, 1].  (B,C), (B,K,C) -> (B,)"""
    return hits(kept, full.argmax(-1, keepdim=True).expand(kept.shape[:-1])).mean(-1)


def leakage_gap(p: Tensor, q: Tensor, y: Tensor) -> Tensor:
    """How much more often the partner (p) than the reader (q) gives the class of y, in [−1, 1].  (B,C) each -> (B,)"""
    predicted = y.argmax(-1)
    return hits(p, predicted) - hits(q, predicted)


def hits(scores: Tensor, label: Tensor) -> Tensor:
    """1 where the label has the highest score, 1 / k where k classes share it, else 0.  (…,C), (…,) -> (…,)"""
    highest = (scores == scores.amax(-1, keepdim=True)).double()
    return (highest / highest.sum(-1, keepdim=True)).gather(-1, label.unsqueeze(-1)).squeeze(-1)


def class_balanced_accuracy(values: Tensor, predicted: Tensor) -> Tensor:
    """Values whose mean is the mean over classes of the class means: each predicted class counts alike.

    A gap in a rare class would vanish in the plain mean.  NaN stays NaN and does not count.  (N,), (N,) -> (N,)
    """
    known = values.isfinite()
    codes = predicted.long()
    counts = torch.bincount(codes[known], minlength=1)
    classes = int((counts > 0).sum())
    return values * (int(known.sum()) / (max(1, classes) * counts.clamp_min(1)))[codes.clamp_max(len(counts) - 1)]


LOW, HIGH = 0.1, 10.0
"""What weights are clipped to."""
DECIDED = 0.1
"""Of the entropy of the labels: a mask that leaves less than this of it open has decided them."""


def mask_neutral_weights(
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


def is_decided(loss: float, prior: Tensor) -> bool:
    """Whether a classifier that sees masks alone, and loses so much, knows the labels."""
    return loss < DECIDED * entropy(prior)
