"""Shortcut measures: label leakage through positions, default tokens and the first sentence.

The formulas for label leakage through a mask are in `core/maths/label_leakage.py`.

Class gap: the distance between the class-mean attentions over positions that are the same in every text.  Bai et al.
2021 plot these means; the distance is ours.

    class gap = mean over pairs of classes c, d of   ½ Σ_t |w̄_c,t − w̄_d,t|        w̄_c: mean attention of class c

Position leak: how well the attention positions alone predict the label (Bai et al. 2021: combinatorial shortcuts).  A
model can attend to the first word for one class and to the second for another, whatever the words are.  A logistic
regression predicts the predicted class c from position features.

    leak = 1/C Σ_c  mean over the texts of class c of   q(c | u, s) − q(c | u)

    s    the saliency's shares on the first 8 words, on the last 8, and in each tenth of the text
    u    the same for uniform weights, which depend on the text's length only
    q    the regression's probability, by five-fold cross-validation

0: positions add nothing to the length.  1 − 1/C: they determine the label.  The measure uses probabilities, not the
most likely class: without leakage the latter varies by ±0.07 over 300 texts.  With two classes, an accuracy of
about ½ + √(leak/2) corresponds to the leak: 66 % for 0.05, 72 % for 0.10.

The regression is linear: it does not detect a pattern in odd and even positions.  The interval over texts ignores the
variance of the regression, which adds about half as much.  The measure is ours.

Weight on default tokens and on the first sentence:

    default mass           Σ_{t∈D} |w_t| / Σ_t |w_t|             D: tokens without content            Bai et al. 2021
    … above share          the same minus |D| / n, the mass under uniform weights
    first-sentence share   Σ_{t in sentence 1} |w_t| / Σ_t |w_t|
    … above rationales     the same minus the larger of two shares of sentence 1: of the rationale and of all words
    first-sentence pick    1 if the top-weighted word is in sentence 1; for ties, the share that is       (X₁ %)

    weights  w (B,T)     blank  D (B,T) bool     first  sentence 1 (B,T) bool     rationales, mask  (B,T) bool

The share of all words corrects for short texts, where random weights often fall into sentence 1.

Departs from the paper: Bai et al. add four default tokens to every text; here D are tokens of the text itself.
Yu et al. 2021 evaluate models that select whole sentences; here the sentence of the top-weighted word counts.
"""

from functools import partial
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import mass, mass_share
from steadygaze.core.maths.label_leakage import arbitrary_selection, independent_reader_accuracy, leakage_gap
from steadygaze.core.maths.ridge_classifier import balanced_folds, cross_validated
from steadygaze.properties.measures.measure import BAI, SIGNED, UNIT, WEIGHT_SCALE, YU, Measure


def class_gap(weights: Tensor, label: Tensor, mask: Tensor) -> float:
    """Distance between the mean attentions of the classes, over positions that every text has.  -> one number

    0 for one class.  Texts without words are ignored.  (N,T), (N,), (N,T)
    """
    nonempty = mask.any(-1)
    size = weights.masked_fill(~mask, 0.0).double().abs()
    means = [size[nonempty & (label == value)].mean(0) for value in label[nonempty].unique()]  # type: ignore[no-untyped-call]
    gaps = [(p - q).abs().sum() / 2 for p, q in combinations(means, 2)]
    return float(torch.stack(gaps).mean()) if gaps else 0.0


END_WORDS = 8
"""Words at each end of a text with a feature of their own."""
PARTS = 10
REGULARIZATION = 0.03
"""C of the regression, half of it for two classes.  With 150 texts and two classes, the leak is 0.00 ± 0.012 for
uninformative positions and 0.33 of 0.50 for positions that determine the label.  With 300 texts, it is 0.00 ± 0.008
and 0.39."""
FEWEST = 20
"""Distinct texts that a class needs."""


def position_leak(weights: Tensor, predicted: Tensor, mask: Tensor, key: Tensor) -> float:
    """How much better the predicted label can be inferred from the positions of the weight than from the text length.

    Pass the whole set.  (N,T), (N,), (N,T), (N,) -> one number
    """
    leaks = position_leaks(position_features(weights, mask), predicted, key)
    if leaks.isnan().all():
        raise ValueError(f"position leak needs two classes with at least {FEWEST} distinct texts each")
    return float(leaks.nanmean())


def position_features(weights: Tensor, mask: Tensor) -> Tensor:
    """u and s of each text; NaN for a text without words.  The weights sum to 1.  (B,T), (B,T) -> (B,2F)"""
    words = mask.sum(-1, keepdim=True)
    features = torch.cat([profile(mask / words.clamp_min(1).double(), mask), profile(weights.double(), mask)], -1)
    return features.masked_fill(words == 0, torch.nan)


def position_leaks(features: Tensor, predicted: Tensor, key: Tensor) -> Tensor:
    """q(c | u, s) − q(c | u) of each text, weighted so that the mean is the leak; NaN if undefined.  -> (N,)

    seen    position features of all texts, (N,2F)
    key     a number for each text: its fold does not depend on its position in the split

    Duplicates of a text count once: the regression is fitted to one, and the copies share its weight.
    """
    valid = label_predictable(predicted, ~features.isnan().any(-1), key)
    leaks = torch.full(predicted.shape, torch.nan, dtype=torch.float64)
    if not valid.any():
        return leaks
    pairs = torch.stack([predicted[valid], key[valid]], -1).cpu().numpy()  # sorted by class, then by key
    distinct, first, inverse, copies = np.unique(
        pairs, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    _, kind, size = np.unique(distinct[:, 0], return_inverse=True, return_counts=True)
    first_features = features[valid].cpu().numpy()[first]
    gain = _class_probability(first_features, kind) - _class_probability(
        first_features[:, : first_features.shape[1] // 2], kind
    )
    leaks[valid] = torch.from_numpy((gain * len(inverse) / (len(size) * size[kind] * copies))[inverse.reshape(-1)])
    return leaks


def distinct_texts(predicted: Tensor, worded: Tensor, key: Tensor, classes: int) -> Tensor:
    """The number of distinct texts with words of each predicted class.  (N,), (N,), (N,) -> (C,)"""
    distinct = torch.stack([predicted[worded].cpu(), key[worded].cpu()], -1).unique(dim=0)[:, 0]  # type: ignore[no-untyped-call]
    counts: Tensor = distinct.bincount(minlength=classes)
    return counts


def label_predictable(predicted: Tensor, worded: Tensor, key: Tensor) -> Tensor:
    """Texts with words, of a class with FEWEST distinct texts; all False without two such classes.  -> (N,) bool"""
    frequent = distinct_texts(predicted, worded, key, int(predicted.max()) + 1).to(predicted.device) >= FEWEST  # (C,)
    return worded & frequent[predicted] if frequent.sum() > 1 else torch.zeros_like(worded)


def profile(weights: Tensor, mask: Tensor) -> Tensor:
    """The weight on the first words, on the last words, and in each tenth of the text.  (N,T), (N,T) -> (N,F)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # words to the front
    weights = pad(weights.masked_fill(~mask, 0.0).gather(-1, order), (0, END_WORDS))
    words = mask.sum(-1, keepdim=True)
    last = words - 1 - torch.arange(END_WORDS, device=mask.device)
    last_weights = weights.gather(-1, last.clamp_min(0)).masked_fill(last < 0, 0.0)
    tenths = torch.arange(PARTS + 1, dtype=torch.float64, device=mask.device)
    edges = words * tenths / PARTS  # a word across an edge is split
    up_to = pad(weights.cumsum(-1), (1, 0)).gather(-1, edges.long())
    cumulative = up_to + edges.frac() * weights.gather(-1, edges.long())
    return torch.cat([weights[:, :END_WORDS], last_weights, cumulative.diff(dim=-1)], -1)


def _class_probability(features: NDArray[np.float64], kind: NDArray[np.int64]) -> NDArray[np.float64]:
    """The cross-validated probability of each text's own class.  (N,F), (N,) -> (N,)"""
    strength = REGULARIZATION / 2 if kind.max() == 1 else REGULARIZATION
    probabilities = cross_validated(features, kind, balanced_folds(kind), strength=strength)
    return np.asarray(probabilities[np.arange(len(kind)), kind])


def default_mass(weights: Tensor, blank: Tensor, mask: Tensor) -> Tensor:
    """Share of the weight on tokens without content.  (B,T) -> (B,)"""
    return mass(weights, blank, mask)


def default_mass_above_share(weights: Tensor, blank: Tensor, mask: Tensor) -> Tensor:
    """Share of the weight on tokens without content, minus the share under uniform weights.  (B,T) -> (B,)"""
    return mass(weights, blank, mask) - mass_share((blank & mask).sum(-1).double(), mask.sum(-1))


def first_sentence_share(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Share of the weight in the first sentence.  `weights` may be chosen tokens.  (B,T) -> (B,)"""
    return mass(weights, first, mask)


def first_sentence_above_rationale(weights: Tensor, rationales: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Share of the weight in the first sentence, minus the share of the human rationale there.  (B,T) -> (B,)

    NaN without a rationale, or if sentence 1 is unknown or is the whole text.
    """
    expected = torch.maximum(mass(rationales.double(), first, mask), mass(mask.double(), first, mask))
    defined = (rationales & mask).any(-1) & (first & mask).any(-1) & (~first & mask).any(-1)
    return (mass(weights, first, mask) - expected).masked_fill(~defined, torch.nan)


def first_sentence_pick(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """How often the top-weighted word is in the first sentence.  (B,T) -> (B,)"""
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).abs().masked_fill(~mask, -1.0)
    top = (size == size.amax(-1, keepdim=True)) & mask
    return mass_share((top & first).sum(-1).to(size.dtype), top.sum(-1))


_place = partial(Measure, bounds=UNIT, direction="neither", citation=YU, identical=1, inputs="place")
MEASURES = (
    Measure(
        "position-leak",
        position_leak,
        SIGNED,
        "lower",
        BAI,
        per_example=False,
        probes=("", "shuffled", "unaccounted"),
        labels={
            "shuffled": "Predicted label revealed by the positions of the weight, with shuffled words",
            "unaccounted": "The same, where the highlighted words do not account for the label",
        },
        scale="0: no better than guessing, 1: every predicted label",
    ),
    Measure(
        "default-mass",
        default_mass,
        UNIT,
        "lower",
        BAI,
        identical=1,
        probes=("", "default-tokens"),
        scale=WEIGHT_SCALE,
    ),
    Measure(
        "default-mass/above-share",
        default_mass_above_share,
        SIGNED,
        "lower",
        BAI,
        labels={"": "Weight on punctuation and other tokens without content, above their share"},
        scale=WEIGHT_SCALE,
    ),
    Measure("class-gap", class_gap, UNIT, "lower", BAI, per_example=False, probes=("default-tokens",)),
    Measure(
        "independent-reader-accuracy",
        independent_reader_accuracy,
        UNIT,
        "higher",
        BAI,
        "How often a classifier trained on random words predicts the same class from the selected words.",
        identical=1,
        probes=("", "random-words", "no-words", "by-class"),
    ),
    Measure(
        "leakage-gap",
        leakage_gap,
        SIGNED,
        "lower",
        BAI,
        "How much more often a classifier trained on the selections predicts the same class.",
        identical=0,
        probes=("", "raw", "black-box"),
        labels={"": "Label recovered from the selection alone, more often than by an independent reader"},
        scale="0.1: ten percent of the texts",
    ),
    Measure(
        "arbitrary-selection",
        arbitrary_selection,
        UNIT,
        "lower",
        BAI,
        "Share of texts for which any selection gives the prediction, and the selected words do not carry it.",
        proportion=True,
        probes=("", "by-class"),
    ),
    _place("first-sentence-share", first_sentence_share, scale=WEIGHT_SCALE),
    Measure(
        "first-sentence-share/above-rationale",
        first_sentence_above_rationale,
        SIGNED,
        "lower",
        YU,
        labels={"": "Weight on the first sentence, above what its length or people explain"},
        scale=WEIGHT_SCALE,
    ),
    _place("first-sentence-pick", first_sentence_pick, proportion=True),
)
