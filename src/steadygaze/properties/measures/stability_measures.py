"""Stability measures: the concentration of the attention, and its shift under a perturbation.

    normalized_entropy   H(w) / ln n        1: uniform weights; 0: all weight on one word
    distance_to_uniform  JSD(w, 1/n)        in nats
    attention_collapse   1 if the weights of a whole set are uniform or depend on position only: `maths.collapse`
    saliency_divergence  ½ KL(p‖m) + ½ KL(q‖m),  m = ½(p + q)      of two explanations, in nats: Jensen–Shannon
    total_variation      ½ Σ_t |p_t − q_t|                         of two attentions
    shared_top_k         |top_k(x) ∩ top_k(y)| / k                 of two explanations
    prediction_change    ½ Σ_c |p_c − q_c|                         of two predictions; with two classes, |Δp|
    label_flip           1 if argmax_c p_c ≠ argmax_c q_c
    words_substituted    Σ_t [ x_t ≠ x'_t ]
    kendall              τ_b = (C − D) / √(n_x n_y)                of two attentions: agreement of the order
    pearson              cov(x, y) / (σ_x σ_y)                     of two attentions: agreement of the values
    weight_correlation   the same; 1 if both are even, 0 if one is

Both correlations are NaN for fewer than three words or constant values (Jain & Wallace 2019; Kitada & Iyatomi 2021).

Departs from the papers: Jain & Wallace also report the share of texts with p < 0.05.  Published code sums ½|Δp| of one
class over the batch (Wiegreffe & Pinter 2019; Hu et al. 2022), which is half of this value for two classes and grows
with the batch.
"""

import math
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.maths.collapse import detect_collapse, distance_to_uniform, normalized_entropy
from steadygaze.core.maths.distributions import (
    jensen_shannon,
    kendall,
    normalize,
    pearson,
    top_k_overlap,
    total_variation,
)
from steadygaze.properties.measures.measure import (
    ADEBAYO,
    GRADIENTS,
    JAIN,
    LABEL_KEPT,
    OTHER_MODELS,
    PERTURBATIONS,
    PROBABILITY_SCALE,
    REPEATED,
    REWORDED,
    SEAT,
    SIGNED,
    SUBSTITUTIONS,
    UNIT,
    Measure,
)
from steadygaze.results.comparison import Column
from steadygaze.results.formatting import SHIFT_SCALE


def attention_collapse(weights: Tensor, mask: Tensor, ids: Tensor) -> float:
    """1: the weights do not depend on the text, so they are stable but explain nothing.  (N,T) -> 0 or 1"""
    if not (mask.sum(-1) > 1).any():
        raise ValueError("attention collapse needs a text with at least two words")
    return float(detect_collapse(weights, mask, ids=ids).collapsed)


def saliency_divergence(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Jensen–Shannon divergence of two normalized saliencies, in nats.  (…,T), (…,T) -> (…,)

    Positive and negative weights are separate entries: w and −w have the largest divergence, as have w and 0.
    """
    empty = [~has_weight(w, mask).unsqueeze(-1) for w in (x, y)]
    entries = torch.cat([mask, mask, torch.ones_like(empty[0])], -1)
    p, q = (
        normalize(torch.cat([w.clamp_min(0), (-w).clamp_min(0), none.to(w.dtype)], -1), entries)
        for w, none in zip((x, y), empty, strict=True)
    )
    return jensen_shannon(p, q, entries)


EVEN = 1e-6
"""Largest distance from the mean, as a share of the largest weight, of weights that do not distinguish the words."""


def weight_correlation(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Pearson correlation of two explanations; 1 if neither distinguishes the words, 0 if one does.  (B,T) -> (B,)

    It does not change with scale or an added constant; for shuffled weights its mean is 0.
    """
    first, second = is_even(x, mask), is_even(y, mask)
    values = pearson(x, y, mask).masked_fill(first | second, 0.0).masked_fill(first & second, 1.0)
    return values.masked_fill(mask.sum(-1) < FEWEST_WORDS, torch.nan)


def is_even(weights: Tensor, mask: Tensor) -> Tensor:
    """True if the weights do not distinguish the words, beyond rounding.  (B,T) -> (B,) bool"""
    present = weights.masked_fill(~mask, 0.0)
    mean = present.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp_min(1)
    distance = (present - mean).masked_fill(~mask, 0.0).abs().amax(-1)
    return distance <= EVEN * present.abs().amax(-1)


FEWEST_WORDS = 3
"""Words of a text with a correlation."""


def shared_top_k(x: Tensor, y: Tensor, mask: Tensor, k: int) -> Tensor:
    """The share of the top-k words in common; 0 if only one has any weight.  (B,T), (B,T) -> (B,)"""
    return top_k_overlap(x, y, mask, k).masked_fill(has_weight(x, mask) != has_weight(y, mask), 0.0)


def has_weight(weights: Tensor, mask: Tensor) -> Tensor:
    """True if any word has weight.  (…,T), (…,T) -> (…,) bool"""
    return ((weights != 0) & mask).any(-1)


def prediction_change(p: Tensor, q: Tensor) -> Tensor:
    """Change of the predicted probabilities: total variation.  (B,C), (B,C) -> (B,)"""
    return total_variation(p, q, torch.ones_like(p, dtype=torch.bool))


def label_flip(p: Tensor, q: Tensor) -> Tensor:
    """Share of texts whose predicted class changes.  1 or 0 for a text.  (B,C), (B,C) -> (B,)"""
    return (p.argmax(-1) != q.argmax(-1)).to(p.dtype)


def words_substituted(before: Tensor, after: Tensor, mask: Tensor) -> Tensor:
    """Number of substituted words.  (B,T) -> (B,)"""
    return ((before != after) & mask).sum(-1).double()


_NATS = (0.0, math.log(2))
_shift = partial(Measure, identical=0, symmetric=True)
_correlation = partial(_shift, bounds=SIGNED, identical=1)
_jsd = partial(Column, direction="lower", stability=True)
_ORDER = "0: unrelated, 1: the same order of words"
_FLIPS = "share of labels that change when three words are replaced"
_ENTROPY = "1: uniform weights; 0: one word has all the weight"
MEASURES = (
    _shift(
        "jensen-shannon",
        saliency_divergence,
        _NATS,
        "neither",
        "Lin 1991",
        "Shift of the explanation: Jensen–Shannon divergence in nats.",
        probes=(*PERTURBATIONS, *OTHER_MODELS, REPEATED, "trained-adversary"),
        columns=(
            _jsd("jensen-shannon/noise", "JSD noise", "shift of the weights under small noise"),
            _jsd("jensen-shannon/fgm-label", "JSD worst", "shift under FGM on the label"),
            _jsd("jensen-shannon/1-synonym", "JSD 1 synonym", "shift when one word is replaced by a synonym"),
            _jsd("jensen-shannon/3-synonyms", "JSD 3 synonyms", "shift when three words are replaced by synonyms"),
            _jsd("jensen-shannon/seeds", "JSD seeds", "divergence between models that differ only in their seed"),
        ),
        labels={
            "noise": "Shift under small random noise",
            "fgm-label": "Shift under a small change of the input against the predicted label",
            "pgd-attention": "Largest shift that a search for a small change of the input finds",
            "1-synonym": "Shift when one word is substituted by a synonym",
            "3-synonyms": "Shift when three words are substituted by synonyms",
            "seeds": "Difference between models trained with other seeds",
        },
        scale=SHIFT_SCALE,
        inputs="shift",
    ),
    _shift(
        "jensen-shannon/adversarial",
        jensen_shannon,
        _NATS,
        "lower",
        JAIN,
        "Largest divergence in nats of an attention that leaves the prediction unchanged.",
        scale=SHIFT_SCALE,
    ),
    _shift(
        "jensen-shannon/randomized",
        saliency_divergence,
        _NATS,
        "higher",
        ADEBAYO,
        "Divergence in nats from the explanation of a model with random parameters.",
        scale=SHIFT_SCALE,
    ),
    _shift(
        "total-variation",
        total_variation,
        UNIT,
        "neither",
        description="Share of the weight that shifted to other words.",
        probes=(),
    ),
    _shift(
        "top-k-overlap",
        shared_top_k,
        UNIT,
        "neither",
        SEAT,
        "Share of the top-k words that stay in the top k.",
        identical=1,
        probes=(*PERTURBATIONS, *LABEL_KEPT, *OTHER_MODELS, REPEATED),
        inputs="shift",
    ),
    _correlation(
        "kendall",
        kendall,
        direction="higher",
        citation=JAIN,
        description="Kendall rank correlation of two explanations over the words.",
        scale=_ORDER,
        probes=(*PERTURBATIONS, *LABEL_KEPT, *GRADIENTS, REPEATED),
        inputs="shift",
    ),
    _correlation(
        "weight-correlation",
        weight_correlation,
        direction="higher",
        description="Correlation of the weights of the words before and after a change, or of two models.",
        probes=(*REWORDED, *PERTURBATIONS, *OTHER_MODELS, REPEATED),
        labels={
            "noise": "Agreement of the weights under small random noise",
            "fgm-label": "Agreement of the weights under a small change of the input against the predicted label",
            "pgd-attention": "Agreement of the weights under the worst small change of the input that a search finds",
            "seeds": "Agreement of the weights between models trained with other seeds",
            "reworded": "Agreement of the weights when random words are substituted by synonyms",
            "reworded-top": "Agreement of the weights when highlighted words are substituted by synonyms",
        },
        scale="0: as shuffled weights, 1: the same weights",
        inputs="shift",
    ),
    _correlation(
        "kendall/randomized",
        kendall,
        direction="lower",
        citation=ADEBAYO,
        description="Rank correlation with the explanation of a model with random parameters.",
        labels={"": "Similarity to the explanation of a model with random parameters"},
        scale=_ORDER,
    ),
    _correlation(
        "pearson",
        pearson,
        direction="higher",
        citation="Kitada & Iyatomi 2021",
        description="Pearson correlation of two explanations over the words.",
        probes=GRADIENTS,
    ),
    _shift(
        "prediction-change",
        prediction_change,
        UNIT,
        "neither",
        JAIN,
        probes=(*PERTURBATIONS, *OTHER_MODELS, REPEATED, "trained-adversary"),
        scale=PROBABILITY_SCALE,
        inputs="predictions",
    ),
    _shift(
        "prediction-change/permuted",
        prediction_change,
        UNIT,
        "higher",
        JAIN,
        "Change of the prediction when the weights are permuted; 0 if the model does not use them.",
        labels={"": "Change of the prediction when the weights are permuted"},
        scale=PROBABILITY_SCALE,
    ),
    _shift(
        "label-flip",
        label_flip,
        UNIT,
        "neither",
        proportion=True,
        probes=(*PERTURBATIONS, REWORDED[0], *OTHER_MODELS, REPEATED),
        columns=(Column("label-flip/3-synonyms", "flips", _FLIPS, "lower"),),
        inputs="predictions",
    ),
    _shift("words-substituted", words_substituted, (0, math.inf), "neither", probes=SUBSTITUTIONS),
    Measure(
        "normalized-entropy",
        normalized_entropy,
        UNIT,
        "neither",
        description="1: all words have the same weight; 0: one word has all the weight.",
        columns=(Column("normalized-entropy", "normalized-entropy", _ENTROPY, "neither"),),
        inputs="weights",
    ),
    Measure(
        "distance-to-uniform",
        distance_to_uniform,
        _NATS,
        "neither",
        "Lin 1991",
        "Divergence of the weights from uniform weights, in nats.",
        inputs="weights",
    ),
    Measure(
        "collapsed",
        attention_collapse,
        UNIT,
        "lower",
        per_example=False,
        labels={"": "Weights that do not depend on the text"},
    ),
)
