"""Label leakage by content: does what an explanation shows tell the predicted label beyond what its words do?

A reader predicts the predicted class c from what the explanation shows: the shown words, and the signs, size, number
and shape of the weights.  Shown are the words whose weight exceeds the median of the text by at least a tenth of the
distance to the largest; weights that do not distinguish the words show none.

    content leak       1/C Σ_c mean over class c of   a · (q(c | shown) − q(c | length))
    value leak         the same of   q(c | shown) − f(c | words)                          for selections of words
    label unaccounted  the same of   a, with p* of any number of words
    encode-meter       mean of   ln q(c | shown) − ln f(c | words)                        Puli et al. 2024
    stripe-x           mean of   ln f(c | words), minus STRIPE · max(0, encode-meter)

    q     the reader's probability, by cross-validation
    p     the model's probability, with words of other texts in place of those that are not shown
    f     how often the model then predicts c
    a     (p* − p) / (p* − p₀), in [0, 1]       p*: the best known words, as many     p₀: none
          0 if p* ≈ p₀ and the model predicts c without any of them: a default class needs no words

The label of an accounted text cannot leak: its words give the model the prediction themselves.  A reader of few texts
misses codes that it has not seen often enough; hence `label unaccounted` bounds what any reader could find.

    reader    product of two experts, both by cross-validation, with the factor g chosen on the other folds
              ln q = ln q_shape + g Σ_{shown words} ln P(word | c)      + constant
              q_shape   ridge-penalized logistic regression of the features of `shape_features`
              P         smoothed share of the texts of class c that show the word

Puli et al., "Explanations that reveal all through the definition of encoding", NeurIPS 2024 (arXiv:2411.02664); the
model's own answer takes the place of EVAL-X (Jethani et al., AISTATS 2021, arXiv:2103.01890).  The weighting by a, the
reader and STRIPE are ours.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.maths.distributions import normalize, pearson
from steadygaze.core.maths.ridge_classifier import balanced_folds, cross_validated
from steadygaze.properties.measures.measure import SIGNED, UNIT, Measure
from steadygaze.properties.measures.stability_measures import is_even

Values = NDArray[np.float64]
SHOWN = 0.1
"""Least weight of a shown word, from the median (0) to the largest (1)."""
FEWEST = 8
"""Distinct texts that a class needs."""
STRENGTH = 0.3
"""C of the regression."""
SMOOTHING = 0.5
"""Texts of each word that are added to its counts, shared by the classes."""
WORD_FOLDS = 20
FACTORS = (0.0, *np.geomspace(0.02, 2.0, 20))
LEAST_REACH = 0.05
"""Least difference of probability between the best known words and none for a class that is predicted without them."""
ROUNDING = 1e-9
"""The same for other classes: a model with probabilities near 1/C may have labels that its words decide."""
CERTAIN = 0.01
"""Least probability in a logarithm."""
STRIPE = 20.0


def shown_words(weights: Tensor, mask: Tensor) -> Tensor:
    """True on the words that an explanation shows.  (B,U), (B,U) -> (B,U) bool"""
    present = weights.double().masked_fill(~mask, torch.nan)
    middle = present.nanquantile(0.5, dim=-1, keepdim=True)
    largest = weights.double().masked_fill(~mask, -torch.inf).amax(-1, keepdim=True)
    exceeds: Tensor = weights - middle > SHOWN * (largest - middle)
    even = is_even(weights.double(), mask)
    return mask & exceeds & ~even.unsqueeze(-1)


def shape_features(weights: Tensor, shown: Tensor, number: Tensor, mask: Tensor) -> Tensor:
    """Signs, size, number and shape of the weights, and their order by the number of the word.  (B,U) -> (B,F)

    NaN where the logarithm of a size is not defined.
    """
    weights = weights.double().masked_fill(~mask, 0.0)
    words, count, even = mask.sum(-1).clamp_min(1), shown.sum(-1).double(), is_even(weights, mask)
    size = weights.abs()
    largest, total = size.amax(-1), size.sum(-1)
    low, high = (
        getattr(weights.masked_fill(~mask, fill), kind)(-1)
        for fill, kind in ((torch.inf, "amin"), (-torch.inf, "amax"))
    )
    reach = (high - low).masked_fill(even, torch.nan)
    share = ((weights - low.unsqueeze(-1)) / reach.unsqueeze(-1)).nan_to_num(0.0).masked_fill(~mask, 0.0)
    order = torch.cat([share, share.new_zeros(len(share), 3)], -1).sort(dim=-1, descending=True).values
    least = size.masked_fill(~mask, torch.inf).amin(-1)
    by_number = pearson(weights, number.double(), shown).nan_to_num(0.0)
    deviation = ((share - share.sum(-1, keepdim=True) / words.unsqueeze(-1)) ** 2).masked_fill(~mask, 0.0)
    columns = [
        (weights.sign().sum(-1) / words, weights.sum(-1) / total.clamp_min(1e-300)),
        (value.log().masked_fill(value == 0, torch.nan) for value in (largest, total, reach)),
        (count, count.log1p(), count / words),
        (_entropy(normalize(size, mask), words), _entropy(normalize(share, mask), words)),
        (order[:, 1], order[:, 2], share.sum(-1) / words, (deviation.sum(-1) / words).sqrt()),
        (least / largest.clamp_min(1e-300), even.double(), by_number),
    ]
    return torch.stack([column for group in columns for column in group], -1)


def _entropy(share: Tensor, words: Tensor) -> Tensor:
    """1 for uniform shares.  (B,U), (B,) -> (B,)"""
    total: Tensor = torch.special.entr(share).sum(-1)
    return total / words.clamp_min(2).double().log()


@dataclass(frozen=True)
class ShownTexts:
    """What the explanations of N texts show."""

    features: Tensor  # (N,F) of `shape_features`
    text: Tensor  # (P,) the text of each shown word
    word: Tensor  # (P,) the word
    length: Tensor  # (N,) words
    predicted: Tensor  # (N,) the predicted class
    key: Tensor  # (N,) a number for each text: its fold does not depend on its position in the split


@dataclass(frozen=True)
class Readings:
    """The reader's probability of the predicted class; NaN for classes with fewer than FEWEST distinct texts."""

    shown: Tensor  # (N,) from what the explanation shows
    length: Tensor  # (N,) from the length of the text alone


def read_labels(texts: ShownTexts) -> Readings:
    """Cross-validated readings; copies of a text are read once."""
    nothing = torch.full(texts.predicted.shape, torch.nan, dtype=torch.float64)
    pairs = torch.stack([texts.predicted, texts.key], -1).cpu().numpy()
    distinct, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    classes, counts = np.unique(distinct[:, 0], return_counts=True)
    frequent = classes[counts >= FEWEST]
    if len(frequent) < 2:
        return Readings(nothing, nothing.clone())
    chosen = np.isin(distinct[:, 0], frequent)
    rows, kind = first[chosen], np.searchsorted(frequent, distinct[chosen, 0])
    shape, length, words = _experts(texts, rows, kind)
    fold = np.arange(len(kind)), kind
    read = np.full((len(distinct), 2), np.nan)
    read[chosen, 0], read[chosen, 1] = _product(shape, words, kind), length[fold]
    shown, alone = torch.from_numpy(read[inverse.reshape(-1)]).unbind(-1)
    return Readings(shown, alone)


def _experts(texts: ShownTexts, rows: NDArray[np.int64], kind: NDArray[np.int64]) -> tuple[Values, Values, Values]:
    """Probabilities from shape and length, from the length alone, and log-odds from words.  (n,C) each"""
    length = texts.length[torch.from_numpy(rows)].double().log1p().numpy()[:, None]
    features = texts.features[torch.from_numpy(rows)].numpy()
    missing = np.isnan(features)
    means = np.nansum(features, 0) / np.maximum((~missing).sum(0), 1)
    features = np.concatenate([length, np.where(missing, means, features)], 1)
    fold = balanced_folds(kind)
    shape, alone = (cross_validated(x, kind, fold, strength=STRENGTH) for x in (features, length))
    place = np.full(len(texts.predicted), -1)
    place[rows] = np.arange(len(rows))
    text, word = place[texts.text.numpy()], texts.word.numpy()
    return shape, alone, word_scores(text[text >= 0], word[text >= 0], kind)


def word_scores(text: NDArray[np.int64], word: NDArray[np.int64], kind: NDArray[np.int64]) -> Values:
    """Σ ln P(word | c) over the distinct words of each text, from the texts of other folds.  (P,), (P,), (n,) -> (n,C)

    Each of WORD_FOLDS folds has its share of each class, so that leaving one out shifts no class.
    """
    classes, parts = int(kind.max()) + 1, min(WORD_FOLDS, int(np.bincount(kind).min()))
    fold = (np.arange(len(kind)) - np.searchsorted(kind, kind)) % parts
    scores = np.zeros((len(kind), classes))
    if not len(text):
        return scores
    text, word = np.unique(np.stack([text, np.unique(word, return_inverse=True)[1]]), axis=1)
    counts = np.zeros((parts, int(word.max()) + 1, classes))
    np.add.at(counts, (fold[text], word, kind[text]), 1.0)
    totals = np.zeros((parts, classes))
    np.add.at(totals, (fold, kind), 1.0)
    other, all_texts = (counts.sum(0)[word] - counts[fold[text], word]), totals.sum(0) - totals
    share = (other + SMOOTHING / classes) / (all_texts[fold[text]] + SMOOTHING)
    np.add.at(scores, text, np.log(share / share.mean(1, keepdims=True)))
    return scores


def _product(shape: Values, words: Values, kind: NDArray[np.int64]) -> Values:
    """Probability of the own class from both experts; the factor of the words is the best of the other folds."""
    own, fold = np.arange(len(kind)), balanced_folds(kind)
    candidates = []
    for factor in FACTORS:
        scores = np.log(np.maximum(shape, 1e-12)) + factor * words
        likely = np.exp(scores - scores.max(1, keepdims=True))
        candidates.append(likely[own, kind] / likely.sum(1))
    probabilities, read = np.stack(candidates), np.empty(len(kind))
    logs = np.log(np.maximum(probabilities, 1e-12))
    weight = 1 / np.bincount(kind)[kind]  # every class counts the same
    for index in range(int(fold.max()) + 1):
        best = (logs[:, fold != index] * weight[fold != index]).sum(1).argmax()
        read[fold == index] = probabilities[best, fold == index]
    return read


def label_unaccounted(answer: Tensor, best_answer: Tensor, no_answer: Tensor, no_label: Tensor) -> Tensor:
    """Share of the label that the shown words do not account for: the most that can leak.  (N,) -> (N,)

    0 if the shown words give the model the prediction as the best known words do; 1 if as no words do.
    `no_label`: how often the model predicts the class without any of the words.
    """
    best = torch.maximum(best_answer, answer)
    reach = best - no_answer
    least = torch.where(no_label >= 1, LEAST_REACH, ROUNDING)
    return ((best - answer) / reach).clamp(0, 1).masked_fill(reach <= least, 0.0)


def balance_classes(values: Tensor, predicted: Tensor) -> Tensor:
    """Weight each value so that the mean over all is the mean of the class means; NaN is left out.  (N,) -> (N,)"""
    defined = values.isfinite()
    counts = predicted[defined].bincount(minlength=int(predicted.max()) + 1)
    return values * defined.sum() / ((counts > 0).sum() * counts[predicted].clamp_min(1))


def content_leak(reading: Tensor, baseline: Tensor, missing: Tensor, predicted: Tensor) -> float:
    """How much better the label is read from what is shown than from the length, where it is unaccounted.  (N,) each"""
    return float(balance_classes(missing * (reading - baseline), predicted).nanmean())


def value_leak(reading: Tensor, answer: Tensor, predicted: Tensor) -> float:
    """How much better the label is read from a selection than the model predicts it from the words.  (N,) each"""
    return float(balance_classes(reading - answer, predicted).nanmean())


def encode_meter(reading: Tensor, answer: Tensor) -> Tensor:
    """Log-probability of the label read from what is shown, minus the model's from the words, in nats.  (N,)"""
    return reading.clamp_min(CERTAIN).log() - answer.clamp_min(CERTAIN).log()


def stripe_x(reading: Tensor, answer: Tensor) -> float:
    """Log-probability of the label from the shown words, minus a penalty for encoding: it ranks explainers."""
    meter = float(encode_meter(reading, answer).nanmean())
    return float(answer.clamp_min(CERTAIN).log().nanmean()) - STRIPE * max(0.0, meter)


PULI = "Puli et al. 2024"
_leak = partial(Measure, direction="lower", citation=PULI, per_example=False, scale="0: nothing, 1: every label")
MEASURES = (
    _leak(
        "content-leak",
        content_leak,
        SIGNED,
        identical=0,
        labels={"": "Label that a reader recovers from what is highlighted, where the words do not account for it"},
    ),
    _leak(
        "value-leak",
        value_leak,
        SIGNED,
        identical=0,
        labels={"": "Label that a reader recovers from the selected words, more than the model from their values"},
    ),
    _leak(
        "label-unaccounted",
        label_unaccounted,
        UNIT,
        per_example=True,
        identical=0,
        labels={"": "Label that the highlighted words do not account for"},
    ),
    _leak(
        "encode-meter",
        encode_meter,
        (-np.inf, np.inf),
        per_example=True,
        identical=0,
        scale="nats; above 0: the selection tells more than its words",
    ),
    _leak("stripe-x", stripe_x, (-np.inf, 0), direction="higher", scale="nats, to rank explainers"),
)
