"""What the prediction loses when the rationale is erased, or keeps when only the rationale is left.

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4.  m(x)_j is the probability of the class j predicted on the full
text x; r the rationale.

    comprehensiveness = m(x)_j − m(x ∖ r)_j        higher is better
    sufficiency       = m(x)_j − m(r)_j            lower is better; both may be negative
    AOPC              = mean over the rationale sizes of either
    post-hoc accuracy = [ argmax m(r) = argmax m(x) ]      higher is better; Chen et al. 2018 (arXiv:1802.07814)

    full    m(x)                   (B,C)
    erased  m(x ∖ r), by size      (B,K,C)         K = 1: a single rationale
    kept    m(r), by size          (B,K,C)

All take probabilities already computed: nothing here calls a model, or knows how a word was erased.

Departs from the paper: nothing known.
"""

from torch import Tensor


def comprehensiveness(full: Tensor, erased: Tensor) -> Tensor:
    """The mean loss without the rationale, in [−1, 1].  (B,C), (B,K,C) -> (B,)"""
    return aopc(drops(full, erased))


def sufficiency(full: Tensor, kept: Tensor) -> Tensor:
    """The mean loss with the rationale alone, in [−1, 1].  (B,C), (B,K,C) -> (B,)"""
    return aopc(drops(full, kept))


def post_hoc_accuracy(full: Tensor, kept: Tensor) -> Tensor:
    """How often the label stays when only the rationale is left, in [0, 1].  (B,C), (B,K,C) -> (B,)"""
    return (kept.argmax(-1) == full.argmax(-1, keepdim=True)).to(full.dtype).mean(-1)


def drops(full: Tensor, changed: Tensor) -> Tensor:
    """What the class predicted on the full text loses at each size.  (B,C), (B,K,C) -> (B,K)"""
    predicted = full.argmax(-1, keepdim=True)  # (B,1): of the full text, whatever is predicted afterwards
    after = changed.gather(-1, predicted.unsqueeze(-1).expand(-1, changed.shape[1], -1)).squeeze(-1)
    return full.gather(-1, predicted) - after


def aopc(drops: Tensor) -> Tensor:
    """The mean over sizes: the area over the perturbation curve.  (B,K) -> (B,)"""
    return drops.mean(-1)
