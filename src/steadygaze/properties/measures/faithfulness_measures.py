"""Faithfulness: erasure, Shapley agreement, infidelity, max-sensitivity, flip radius, soft stability and F-Fidelity.

Erasure: DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4.  m(x)_j is the probability of the class j predicted on
the full text x; r is the rationale.

    comprehensiveness = m(x)_j − m(x ∖ r)_j        higher is better
    sufficiency       = m(x)_j − m(r)_j            lower is better; both may be negative
    AOPC              = mean over the rationale sizes of either
    post-hoc accuracy = [ argmax m(r) = argmax m(x) ]      higher is better; Chen et al. 2018 (arXiv:1802.07814)
    largest drop      = max(0, max over all r of either)   bounds comprehensiveness

The largest drop is near 0 if the prediction hardly depends on the words: no explanation is then comprehensive.

    full    m(x)                   (B,C)
    erased  m(x ∖ r), by size      (B,K,C)         K = 1: a single rationale
    kept    m(r), by size          (B,K,C)
    changed both                   (B,2K,C)

Shapley agreement: the Gini correlation (Schechtman & Yitzhaki 1987) of the weights w with the Shapley values φ of the
predicted probability.

    Shapley agreement = Σ_{i<j} (φ_i − φ_j) sign(w_i − w_j) / Σ_{i<j} |φ_i − φ_j|       both sums over all texts

1: no pair of words is in the wrong order; 0 in the mean of all orders, and of equal weights.  A pair counts as much as
its Shapley values differ, so that the order of words without an effect does not count.

Infidelity and max-sensitivity, as in Captum and Quantus: Yeh et al., "On the (In)fidelity and Sensitivity of
Explanations", NeurIPS 2019 (arXiv:1901.09392).

    infidelity        mean over s of (β a_s − d_s)²,     β = Σ a_s d_s / Σ a_s²
    max-sensitivity   max over s of ‖Φ(x + δ_s) − Φ(x)‖ / ‖Φ(x)‖

    a_s  the sum of the weights of the words removed in draw s
    d_s  the drop of the predicted probability without these words

β rescales the weights to the scale of the prediction: Captum's `normalize=True`.

    attributed  a (B,S)     lost  d (B,S)     distances  ‖Φ(x + δ_s) − Φ(x)‖ (B,S)     norm  ‖Φ(x)‖ (B,)

Flip radius: Yin et al., ACL 2022 (arXiv:2104.08782).  R_q is the smallest ‖δ‖_F found to change the predicted class,
with δ on the embeddings of the ⌈q·n⌉ top-weighted words only.

    flip radius        ∫ R_q dq / (q_K − q_1)           lower is better: the label depends on these words

SEAT (Hu et al. 2022) uses the same name for a measure that does not depend on the explanation:

    seat sensitivity   mean over radii r of   ½ (1 − p_adv(label)) · r/2       p_adv: all words perturbed within r

    radii  R (B,K), in mean norms of a word embedding    drawn  the same for randomly drawn words
    sizes  q (K,)                                        probs  p_adv (B,R,C), one for each r

Departs from the paper: Yin et al. released no code, so the sizes are ours; the area is divided by its width, which
makes it a radius.  SEAT sums over a batch of 32; here each text has its own value.

Soft stability: Jin et al., "Probabilistic Stability Guarantees for Feature Attributions", 2025 (arXiv:2504.13787).  Do
the selected words α carry the prediction when at most r other words are added?

    soft stability    P( f(x ⊙ α′) predicts the class of f(x ⊙ α) )        α′ uniform over { α′ ⊇ α : |α′ ∖ α| ≤ r }

    alone  f(x ⊙ α) (B,C)     extended  f(x ⊙ α′) (B,S,C)     members  the sets α′ that count (B,S)

The authors' released code draws α′ in the same way, but refuses an r above the number of other words.

Words that do not matter have a high rate as well: compare with the rate of random words.

F-Fidelity: Zheng et al., "F-Fidelity: A Robust Framework for Faithfulness Evaluation of Explainable AI", ICLR 2025
(arXiv:2410.02970).  s of the T words are the explanation.  A draw masks a random part of it, or of the other words: in
expectation at most β·T words, as many as in the texts of a model fine-tuned under random masks.

    fidelity-plus     [ f(x) = y ] − P( f(x without a part of the explanation) = y )         higher is better
    fidelity-minus    [ f(x) = y ] − P( f(x without a part of the other words) = y )         lower is better

    α⁺ = α⁻ = 0.5, β = 0.1     each word is masked with the probability min(α⁺, β·T/s), or min(α⁻, β·T/(T − s))

    full  f(x) (B,C)     part_of_top, part_of_rest  f of the draws, of all sizes s (B,S,C)

The authors' released code masks each element with the probability min(α, β·T/s) in 50 draws, α = 0.5 and β = 0.1.  It
has one s for both measures; T − s in the second is our reading of the same limit of β·T.

Departs from the paper: y is the class predicted on the full text, so that [ f(x) = y ] is 1 and no label is needed; f
is the audited model, and no copy is fine-tuned under masks.
"""

import math
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import ordered_differences
from steadygaze.properties.measures.measure import ERASER, PROBABILITY_SCALE, SEAT, SIGNED, SIZES, UNIT, Measure
from steadygaze.results.comparison import Column


def comprehensiveness(full: Tensor, erased: Tensor) -> Tensor:
    """Drop of the predicted probability when the top-weighted words are erased.  (B,C), (B,K,C) -> (B,)"""
    return aopc(probability_drops(full, erased))


def sufficiency(full: Tensor, kept: Tensor) -> Tensor:
    """Drop of the predicted probability when only the top-weighted words are left.  (B,C), (B,K,C) -> (B,)"""
    return aopc(probability_drops(full, kept))


def post_hoc_accuracy(full: Tensor, kept: Tensor) -> Tensor:
    """How often the label stays the same when only the top-weighted words are left.  (B,C), (B,K,C) -> (B,)"""
    return (kept.argmax(-1) == full.argmax(-1, keepdim=True)).to(full.dtype).mean(-1)


def largest_drop(full: Tensor, changed: Tensor) -> Tensor:
    """Largest drop of the predicted probability in any erasure; near 0: no words matter.  (B,C), (B,K,C) -> (B,)"""
    return probability_drops(full, changed).amax(-1).clamp_min(0.0)


def probability_drops(full: Tensor, changed: Tensor) -> Tensor:
    """The probability drop of the class predicted on the full text, by size.  (B,C), (B,K,C) -> (B,K)"""
    predicted = full.argmax(-1, keepdim=True)  # (B,1)
    after = changed.gather(-1, predicted.unsqueeze(-1).expand(-1, changed.shape[1], -1)).squeeze(-1)
    return full.gather(-1, predicted) - after


def aopc(drops: Tensor) -> Tensor:
    """The mean over sizes: the area over the perturbation curve.  (B,K) -> (B,)"""
    return drops.mean(-1)


def infidelity(attributed: Tensor, drops: Tensor) -> Tensor:
    """Mean squared error between the summed weights of removed words and the drop of the prediction.  (B,S) -> (B,)"""
    square = (attributed * attributed).mean(-1, keepdim=True)
    # All weights 0: β is 0.
    scale = (attributed * drops).mean(-1, keepdim=True) / torch.where(square > 0, square, 1.0)
    return ((scale * attributed - drops) ** 2).mean(-1)


def max_sensitivity(distances: Tensor, norm: Tensor) -> Tensor:
    """Largest relative change of the explanation under small changes of the embeddings.  (B,S), (B,) -> (B,)"""
    return distances.amax(-1) / norm.masked_fill(norm == 0, torch.nan)


def relative_score(own: Tensor, floor: Tensor, best: Tensor) -> float:
    """Scores between those of shuffled weights (0) and of the best known order of words (1).  (N,) each"""
    reach = (best - floor).sum()
    return float((own - floor).sum() / reach) if reach else math.nan


def shapley_agreement(x: Tensor, y: Tensor, mask: Tensor) -> float:
    """Gini correlation of weights x with exact Shapley values y, in short texts.  (N,T) each"""
    own, most = ordered_differences(x, y, mask)
    reach = most.nansum()
    return float(own.nansum() / reach) if reach else math.nan


SHARES = (0.1, 0.2, 0.5)
LARGEST = 8.0
"""Largest radius searched, in mean embedding norms.  Texts whose label does not flip count as this."""
RADII = (0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)
"""SEAT's radii, in the units of the embeddings."""


def flip_radius(radii: Tensor, sizes: tuple[float, ...] = SHARES) -> Tensor:
    """Smallest change of the top-weighted words' embeddings that flips the label, in mean embedding norms.  -> (B,)"""
    at = torch.tensor(sizes, dtype=radii.dtype, device=radii.device)
    return torch.trapezoid(radii, at) / (at[-1] - at[0])


def flip_radius_above_random(radii: Tensor, random_radii: Tensor, sizes: tuple[float, ...] = SHARES) -> Tensor:
    """Flip radius of the top-weighted words minus that of random words; below 0: better than random.  -> (B,)"""
    return flip_radius(radii, sizes) - flip_radius(random_radii, sizes)


def seat_sensitivity(probs: Tensor, label: Tensor, radii: tuple[float, ...] = RADII) -> Tensor:
    """Error of the prediction under the worst small change of all words; it ignores the explanation.  -> (B,)"""
    correct = probs.gather(-1, label.reshape(-1, 1, 1).expand(-1, len(radii), 1)).squeeze(-1)  # (B,R)
    return ((1 - correct) * torch.tensor(radii, dtype=probs.dtype, device=probs.device) / 4).mean(-1)


def soft_stability(alone: Tensor, extended: Tensor, members: Tensor) -> Tensor:
    """How often the label of the selected words alone stays when others are added.  (B,C), (B,S,C), (B,S) -> (B,)"""
    same = (extended.argmax(-1) == alone.argmax(-1, keepdim=True)) & members
    return same.sum(-1).to(alone.dtype) / members.sum(-1).to(alone.dtype)  # no set: NaN


def fidelity_plus(full: Tensor, part_of_top: Tensor) -> Tensor:
    """How often the label changes when a random part of the top-weighted words is masked.  (B,C), (B,S,C) -> (B,)"""
    return _label_changes(full, part_of_top)


def fidelity_minus(full: Tensor, part_of_rest: Tensor) -> Tensor:
    """How often the label changes when a random part of the other words is masked.  (B,C), (B,S,C) -> (B,)"""
    return _label_changes(full, part_of_rest)


def _label_changes(full: Tensor, masked: Tensor) -> Tensor:
    return (masked.argmax(-1) != full.argmax(-1, keepdim=True)).to(full.dtype).mean(-1)


ERASED = ("comprehensiveness", "sufficiency")
_ABOVE = "probability lost without the top-weighted words, minus random words"
_erasure = partial(Measure, inputs="erasure")
RELATIVE_ROWS = tuple(f"{name}/{probe}" for probe in ("relative", "relative-filled") for name in ERASED)
_TESTS = (
    "Drop without the top-weighted words, between shuffled weights (0) and the best known order (1).",
    "Probability that the top-weighted words keep alone, between shuffled weights (0) and the best known order (1).",
    "Drop when words of other texts replace the top-weighted words, between shuffled (0) and best known (1).",
    "Probability kept when words of other texts replace all but the top-weighted words, between shuffled (0) and best "
    "known (1).",
)
_LABELS = (
    "Effect of removing the highlighted words",
    "Effect of keeping only the highlighted words",
    "Effect of replacing the highlighted words",
    "Effect of replacing all other words",
)
_relative = partial(
    Measure, function=relative_score, bounds=(-math.inf, 1), direction="higher", citation=ERASER, per_example=False
)
_ENDS = "0: shuffled weights, 1: the best known order of words"
_YIN, _YEH, _ZHENG = "Yin et al. 2022", "Yeh et al. 2019", "Zheng et al. 2025"
MEASURES = (
    _erasure(
        "comprehensiveness",
        comprehensiveness,
        SIGNED,
        "higher",
        ERASER,
        identical=0,
        probes=("", "above-random", *SIZES),
        columns=(Column("comprehensiveness/above-random", "compreh. above random", _ABOVE, "higher"),),
        labels={"above-random": "Probability lost without the highlighted words, more than without random words"},
        scale=PROBABILITY_SCALE,
    ),
    _erasure("sufficiency", sufficiency, SIGNED, "lower", ERASER, identical=0, probes=("", *SIZES)),
    _erasure(
        "largest-drop",
        largest_drop,
        UNIT,
        "neither",
        identical=0,
        labels={"": "Probability lost in the erasure of words that lowers it most"},
        scale=PROBABILITY_SCALE,
    ),
    _erasure("post-hoc-accuracy", post_hoc_accuracy, UNIT, "higher", "Chen et al. 2018", identical=1),
    *(
        _relative(row, description=sentence, labels={"": label}, scale=_ENDS)
        for row, sentence, label in zip(RELATIVE_ROWS, _TESTS, _LABELS, strict=True)
    ),
    Measure(
        "shapley-agreement",
        shapley_agreement,
        SIGNED,
        "higher",
        "Schechtman & Yitzhaki 1987",
        identical=1,
        per_example=False,
        labels={"": "Agreement with exact Shapley values"},
        scale="0: any order of the words, 1: the order of the Shapley values",
    ),
    Measure("flip-radius", flip_radius, (0, LARGEST), "lower", _YIN),
    Measure("flip-radius/above-random", flip_radius_above_random, (-LARGEST, LARGEST), "lower", _YIN, identical=0),
    Measure("infidelity", infidelity, UNIT, "lower", _YEH, identical=0),
    Measure("max-sensitivity", max_sensitivity, (0, math.inf), "lower", _YEH),
    Measure(
        "soft-stability",
        soft_stability,
        UNIT,
        "higher",
        "Jin et al. 2025",
        identical=1,
        labels={"": "Label of the highlighted words alone, kept when other words are added"},
        scale="1: no added words change the label",
    ),
    Measure(
        "fidelity-plus",
        fidelity_plus,
        UNIT,
        "higher",
        _ZHENG,
        identical=0,
        labels={"": "Label changed by masking some of the highlighted words"},
        scale="0: no mask changes the label",
    ),
    Measure(
        "fidelity-minus",
        fidelity_minus,
        UNIT,
        "lower",
        _ZHENG,
        identical=0,
        labels={"": "Label changed by masking some of the other words"},
        scale="0: no mask changes the label",
    ),
    Measure("seat-sensitivity", seat_sensitivity, (0, sum(RADII) / len(RADII) / 4), "lower", SEAT),
)
