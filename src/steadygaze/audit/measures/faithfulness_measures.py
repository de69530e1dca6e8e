"""Whether two saliencies of one text agree: attention and gradient (Jain & Wallace 2019; Kitada & Iyatomi 2021).

    pearson    cov(x, y) / (σ_x σ_y)           do they give the same words the same share?
    kendall    τ_b = (C − D) / √(n_x n_y)      do they put the words in the same order?

Both over the words of each text, (B,T), (B,T), (B,T) -> (B,); NaN where fewer than three words, or words all of one
value, say nothing: whoever takes the mean counts those and says how many.

Departs from the paper: Jain & Wallace report the share of texts with p < 0.05 beside τ; here is τ alone.

What the prediction loses when the rationale is erased, or keeps when only the rationale is left.

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

Infidelity and max-sensitivity, as Captum and Quantus have them.

Yeh et al., "On the (In)fidelity and Sensitivity of Explanations", NeurIPS 2019 (arXiv:1901.09392).

    infidelity        mean over s of (β a_s − d_s)²,     β = Σ a_s d_s / Σ a_s²
    max-sensitivity   max over s of ‖Φ(x + δ_s) − Φ(x)‖ / ‖Φ(x)‖

    a_s  what the explanation says the words removed in draw s are worth: the sum of their weights
    d_s  what the prediction loses without them

β brings weights of any scale, attention above all, to that of the prediction: Captum's `normalize=True`.

    attributed  a (B,S)     lost  d (B,S)     distances  ‖Φ(x + δ_s) − Φ(x)‖ (B,S)     norm  ‖Φ(x)‖ (B,)

Departs from the paper: nothing known.  The words that are removed are this package's choice (protocol/infidelity.py).

How little must the vectors of the heaviest words move to turn the label?

Yin et al., ACL 2022 (arXiv:2104.08782).  R_q is the smallest ‖δ‖_F, δ on the vectors of the ⌈q·n⌉ heaviest words alone,
found to change the predicted class.

    flip radius        ∫ R_q dq / (q_K − q_1)           lower is better: these are the words that the label hangs on

Hu et al. 2022 (SEAT) report under the same name what does not look at the explanation at all:

    seat sensitivity   mean over radii r of   ½ (1 − p_adv(label)) · r/2       p_adv: all words moved to the worst by r

    radii  R (B,K), in mean lengths of a word vector     drawn  the same of words drawn at random
    sizes  q (K,)                                        probs  p_adv (B,R,C), one for each r

Departs from the paper: Yin et al. released no code, and their sizes are not known here; the area is divided by its
width, so that it is a radius.  SEAT's sum over a batch of 32 is here the number of one text.
"""

import torch
from torch import Tensor

from steadygaze.core.maths.ranking import kendall, pearson

__all__ = ["kendall", "pearson"]


def comprehensiveness(full: Tensor, erased: Tensor) -> Tensor:
    """The mean loss without the rationale, in [−1, 1].  (B,C), (B,K,C) -> (B,)"""
    return aopc(probability_drops(full, erased))


def sufficiency(full: Tensor, kept: Tensor) -> Tensor:
    """The mean loss with the rationale alone, in [−1, 1].  (B,C), (B,K,C) -> (B,)"""
    return aopc(probability_drops(full, kept))


def post_hoc_accuracy(full: Tensor, kept: Tensor) -> Tensor:
    """How often the label stays when only the rationale is left, in [0, 1].  (B,C), (B,K,C) -> (B,)"""
    return (kept.argmax(-1) == full.argmax(-1, keepdim=True)).to(full.dtype).mean(-1)


def probability_drops(full: Tensor, changed: Tensor) -> Tensor:
    """What the class predicted on the full text loses at each size.  (B,C), (B,K,C) -> (B,K)"""
    predicted = full.argmax(-1, keepdim=True)  # (B,1): of the full text, whatever is predicted afterwards
    after = changed.gather(-1, predicted.unsqueeze(-1).expand(-1, changed.shape[1], -1)).squeeze(-1)
    return full.gather(-1, predicted) - after


def aopc(drops: Tensor) -> Tensor:
    """The mean over sizes: the area over the perturbation curve.  (B,K) -> (B,)"""
    return drops.mean(-1)


def infidelity(attributed: Tensor, lost: Tensor) -> Tensor:
    """How far what the weights promise is from what the prediction loses, in [0, 1].  (B,S), (B,S) -> (B,)"""
    square = (attributed * attributed).mean(-1, keepdim=True)
    # Weights of nothing but 0 promise nothing, at any scale.
    scale = (attributed * lost).mean(-1, keepdim=True) / torch.where(square > 0, square, 1.0)
    return ((scale * attributed - lost) ** 2).mean(-1)


def max_sensitivity(distances: Tensor, norm: Tensor) -> Tensor:
    """How far the explanation moves at most, in lengths of itself; NaN where it has none.  (B,S), (B,) -> (B,)"""
    return distances.amax(-1) / norm.masked_fill(norm == 0, torch.nan)


SHARES = (0.1, 0.2, 0.5)
LARGEST = 8.0
"""Mean lengths of a word vector beyond which nobody looks: texts that are not turned by then count as this."""
RADII = (0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)
"""SEAT's, of the vectors' own scale."""


def flip_radius(radii: Tensor, sizes: tuple[float, ...] = SHARES) -> Tensor:
    """The mean radius over the sizes, as the area under the curve has it.  (B,K) -> (B,)"""
    at = torch.tensor(sizes, dtype=radii.dtype, device=radii.device)
    return torch.trapezoid(radii, at) / (at[-1] - at[0])


def flip_radius_above_random(radii: Tensor, drawn: Tensor, sizes: tuple[float, ...] = SHARES) -> Tensor:
    """The same minus that of as many words drawn at random: below 0 is better than chance.  (B,K), (B,K) -> (B,)"""
    return flip_radius(radii, sizes) - flip_radius(drawn, sizes)


def seat_sensitivity(probs: Tensor, label: Tensor, radii: tuple[float, ...] = RADII) -> Tensor:
    """How wrong the worst change of all words makes the prediction, weighted by its size.  (B,R,C), (B,) -> (B,)"""
    right = probs.gather(-1, label.reshape(-1, 1, 1).expand(-1, len(radii), 1)).squeeze(-1)  # (B,R)
    return ((1 - right) * torch.tensor(radii, dtype=probs.dtype, device=probs.device) / 4).mean(-1)
