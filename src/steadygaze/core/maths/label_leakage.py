"""Label leakage through a mask, and the mask-neutral weights against it.

    independent reader accuracy   [ argmax r(x ⊙ m) = argmax p(x) ]       r: trained on random masks only
    leakage gap                   [ argmax q(x ⊙ m) = argmax p(x) ]  −  independent reader accuracy

    arbitrary selection           [ share of random m' with argmax q(x ⊙ m') = argmax q(x ⊙ m)  ≥  7/8 ]
                                  · [ leakage gap > 0 ]

If k classes share the highest probability, each counts 1 / k.

p(x) is the explained prediction, m the selection and q the network that was trained on such selections: an explainer's
approximator, or a rationalizer's predictor.  Both read the same units.  The gap is 0 if the units themselves carry the
label, and large if the choice of units does (Bai et al. 2021, arXiv:2006.05656, §3).  A selection is arbitrary if q
predicts the same from nearly any selection of the text, although the units do not carry the label for r (ours).

Mask-neutral weights, Bai et al., "Why Attentions May Not Be Interpretable?", KDD 2021, §4.2, Fact 1:

    w(y, m)  =  P(y) / P(y|m)          E_P [w L]  =  E_Q [L]      where masks and labels are independent under Q

They need 0 < P(y|m).  If the mask determines the label, every example has P(y|m) = 1 and the weight P(y).  With
balanced classes, all weights are then 1 after scaling.  With soft targets p_c, w_c p_c = P(c): the mask carries no
information, unless the weights are clipped first.

Differs from the paper, which does not specify this: weights are clipped, and scaled to a mean of 1 per batch.
"""

import math

import torch
from torch import Tensor


def independent_reader_accuracy(full: Tensor, kept: Tensor) -> Tensor:
    """Return how often the reader predicts the class, over K masks per input, in [0, 1].  (B,C), (B,K,C) -> (B,)"""
    return hits(kept, full.argmax(-1, keepdim=True).expand(kept.shape[:-1])).mean(-1)


def leakage_gap(p: Tensor, q: Tensor, y: Tensor) -> Tensor:
    """Return the hits of the predictor (p) minus those of the reader (q) on y, in [−1, 1].  (B,C) each -> (B,)"""
    predicted = y.argmax(-1)
    return hits(p, predicted) - hits(q, predicted)


MIN_AGREEMENT = 7 / 8
"""Share of random selections."""


def arbitrary_selection(agreement: Tensor, gap: Tensor) -> Tensor:
    """Return 1 if random selections agree with q and there is a leakage gap, else 0.  (B,), (B,) -> (B,)"""
    return ((agreement >= MIN_AGREEMENT) & (gap > 0)).double()


def hits(scores: Tensor, label: Tensor) -> Tensor:
    """Return 1 if the label has the highest score, 1 / k if k classes share it, else 0.  (…,C), (…,) -> (…,)"""
    highest = (scores == scores.amax(-1, keepdim=True)).double()
    return (highest / highest.sum(-1, keepdim=True)).gather(-1, label.unsqueeze(-1)).squeeze(-1)


def class_balanced_accuracy(values: Tensor, predicted: Tensor) -> Tensor:
    """Reweight values so that their mean is the mean over the predicted classes of the class means.

    NaN stays NaN and does not count.  (N,), (N,) -> (N,)
    """
    known = values.isfinite()
    codes = predicted.long()
    counts = torch.bincount(codes[known], minlength=1)
    classes = int((counts > 0).sum())
    return values * (int(known.sum()) / (max(1, classes) * counts.clamp_min(1)))[codes.clamp_max(len(counts) - 1)]


LOW, HIGH = 0.1, 10.0
"""Bounds of the weights."""
DECIDED = 0.1
"""Share of the label entropy; if the probe's loss is lower, the mask determines the labels."""


def mask_neutral_weights(
    prior: Tensor, mask_log_probs: Tensor, target: Tensor, low: float = LOW, high: float = HIGH, scaled: bool = True
) -> Tensor:
    """Return the weight of each class in an example, without a gradient.

    `prior`: P(y), (C,).  `mask_log_probs`: log P(y|m), (B,C).  `target`: target probabilities of the example, (B,C).
    """
    ratio = (prior.log() - mask_log_probs.detach()).clamp(math.log(low), math.log(high)).exp()
    if not scaled:
        return ratio
    return ratio / (ratio * target).sum(-1).mean().clamp_min(low)


def entropy(prior: Tensor) -> float:
    """Return the entropy of the labels in nats, the loss of a constant classifier."""
    return float(-(prior * prior.clamp_min(1e-12).log()).sum())


def is_decided(loss: float, prior: Tensor) -> bool:
    """Return True if a classifier of masks with this loss predicts the labels."""
    return loss < DECIDED * entropy(prior)
