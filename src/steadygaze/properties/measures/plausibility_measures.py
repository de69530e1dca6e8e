"""Plausibility measures: agreement with human rationales, and the size and position of a selection.

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4.1.  S: the chosen tokens; E: the rationales; w: the weights.

    precision  |S ∩ E| / |S|        recall  |S ∩ E| / |E|        F1  2 |S ∩ E| / (|S| + |E|)
    rationale mass      Σ_t e_t |w_t| / Σ_t |w_t|     e_t: 1 in E, else 0; or the graded mark of the word, 0 to 1
    average precision  Σ_i (R_i − R_{i−1}) P_i               as scikit-learn's average_precision_score
    AUPRC              Σ_i (R_i − R_{i−1}) (P_i + P_{i−1}) / 2    the trapezoid area, as in ERASER's code
                       P_i, R_i: precision and recall of {s : w_s ≥ the i-th largest weight};  R_0 = 0, P_0 = 1
    IOU-F1             F1 of spans: a run of chosen tokens and a run of rationales match if |∩| / |∪| ≥ ½
    … above random     the same minus its mean over all orders of the n words, m of them in the rationale:
                       E[AP] = 1/n · ( H_n + (m − 1)/(n − 1) · (n − H_n) ),   H_n = Σ_{i≤n} 1/i
    micro              precision, recall and F1 of the tokens of all texts together
    chance level       the mean over all choices of |S| among the n words, or over all orders of the weights:
                       E|S ∩ E| = |S| m / n,   E[rationale mass] = Σ_t e_t / n,   E[AUPRC] = ½ ( E[AP] + m / n )

    chosen    S (B,T) bool     rationales  E (B,T) bool     weights  w (B,T)     mask  (B,T) bool

An empty choice scores 0.  A text without a rationale scores NaN.

E[AP]: rank i is a rationale word with probability m/n, and then each earlier rank with (m − 1)/(n − 1).
E[AUPRC]: recall grows at those ranks; half of the height is P_i, and the other half is P_{i−1}.  The mean of P_{i−1} is
1 for rank 1 and (m − 1)/(n − 1) for the others: (1 + (n − 1)(m − 1)/(n − 1))/n = m/n.

Departs from the paper: F1 is computed for each text and averaged, not from the mean precision and recall.  Adjacent
spans form one run.  Two runs have a gap between them, so they cannot both overlap half of one run: matches are pairs.

Size and position of a selection: Yu et al. 2021 (arXiv:2110.13880), §5.  S: the selected words of a text of n words.

    share            |S| / n
    spans            runs of adjacent selected words
    first sentence   1 if S has a word of sentence 1, else 0; the mean over texts is X₁

    chosen  S (B,T) bool     first  sentence 1 (B,T) bool     mask  (B,T) bool

For selected words, first sentence is 1 if any of them lies in sentence 1 (`first_sentence_share` gives the share).
It is NaN for a text of one sentence and 0 for an empty selection.

Departs from the paper, which counts the share of the selected words in sentence 1; for one sentence both are equal.
"""

import math
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import mass, mass_share
from steadygaze.properties.measures.measure import ERASER, SIGNED, UNIT, YU, Measure


def token_precision(selected: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Share of the chosen words that are in the human rationale.  (B,T) -> (B,)"""
    return _nan_without_rationale(
        mass_share((selected & rationales & mask).sum(-1), (selected & mask).sum(-1)), rationales, mask
    )


def token_recall(selected: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Share of the human rationale that is chosen.  (B,T) -> (B,)"""
    return _nan_without_rationale(
        mass_share((selected & rationales & mask).sum(-1), (rationales & mask).sum(-1)), rationales, mask
    )


def token_f1(selected: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """F1 of the chosen words against the human rationale.  (B,T) -> (B,)"""
    total = (selected & mask).sum(-1) + (rationales & mask).sum(-1)
    return _nan_without_rationale(mass_share(2 * (selected & rationales & mask).sum(-1), total), rationales, mask)


def iou_f1(selected: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """F1 of spans that overlap by half or more.  (B,T) -> (B,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # runs skip tokens outside the mask
    selected, rationales = ((tokens & mask).gather(-1, order) for tokens in (selected, rationales))
    (selected_run, selected_start), (rationale_run, rationale_start) = _runs(selected), _runs(rationales)
    overlap = (selected_run & rationale_run).sum(-1)  # (B,T): overlap of the two runs at a token
    union = selected_run.sum(-1) + rationale_run.sum(-1) - overlap
    match = selected & rationales & (2 * overlap >= union)
    pairs = (selected_start & (selected_run & match.unsqueeze(-2)).any(-1)).sum(-1)
    f1 = mass_share(2 * pairs, selected_start.sum(-1) + rationale_start.sum(-1))
    return _nan_without_rationale(f1, rationales, mask.gather(-1, order))


def rationale_mass(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Share of the weight on the human rationale; a graded word counts by its mark.  (B,T) -> (B,)"""
    return _nan_without_rationale(mass(weights, rationales, mask), rationales, mask)


def average_precision(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """How well the weights rank the human rationale first: mean precision at its words.  (B,T) -> (B,)"""
    rationales = rationales & mask
    precision, _ = _curve(weights, rationales, mask)
    return _nan_without_rationale(
        mass_share(precision.masked_fill(~rationales, 0.0).sum(-1), rationales.sum(-1)), rationales, mask
    )


def auprc(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """How well the weights rank the human rationale first: area under the precision–recall curve.  (B,T) -> (B,)"""
    rationales = rationales & mask
    order = weights.masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    precision, recall = (values.gather(-1, order) for values in _curve(weights, rationales, mask))
    first = torch.ones_like(precision[:, :1])  # nothing chosen: recall 0, precision 1
    height = torch.cat([first, precision], -1)
    width = torch.cat([torch.zeros_like(first), recall], -1).diff(dim=-1)
    return _nan_without_rationale((width * (height[:, 1:] + height[:, :-1]) / 2).sum(-1), rationales, mask)


def _curve(weights: Tensor, rationales: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Precision and recall at the threshold of each word's weight; outside the mask recall is 1.  (B,T)"""
    above_threshold = (weights.unsqueeze(-2) >= weights.unsqueeze(-1)) & mask.unsqueeze(-2)  # (B,T,T)
    hits = (above_threshold & rationales.unsqueeze(-2)).sum(-1).to(weights.dtype)
    recall = mass_share(hits, rationales.sum(-1, keepdim=True).expand_as(hits))
    return mass_share(hits, above_threshold.sum(-1)), torch.where(mask, recall, 1.0)


def average_precision_above_random(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Average precision minus that of a random order of the words.  Below 0 for equal weights.  (B,T) -> (B,)"""
    return average_precision(weights, rationales, mask) - random_average_precision(rationales, mask).to(weights.dtype)


def random_average_precision(rationales: Tensor, mask: Tensor) -> Tensor:
    """The mean average precision over all orders of the words; NaN without a rationale.  (B,T) -> (B,)"""
    words, marked = mask.sum(-1), (rationales & mask).sum(-1).double()
    harmonic = torch.arange(mask.shape[-1] + 1, dtype=torch.float64, device=mask.device)
    harmonic[1:] = harmonic[1:].reciprocal().cumsum(0)
    first = harmonic[words]
    mean = (first + (marked - 1) / (words - 1).clamp_min(1) * (words - first)) / words.clamp_min(1)
    return _nan_without_rationale(mean, rationales, mask)


def random_auprc(rationales: Tensor, mask: Tensor) -> Tensor:
    """The mean AUPRC over all orders of the words; NaN without a rationale.  (B,T) -> (B,)"""
    return (random_average_precision(rationales, mask) + random_mass(rationales, mask)) / 2


def random_mass(rationales: Tensor, mask: Tensor) -> Tensor:
    """The mean rationale mass over all orders of the weights: the mean mark of a word.  (B,T) -> (B,)"""
    marks = rationales.double().masked_fill(~mask, 0.0).sum(-1)
    return _nan_without_rationale(mass_share(marks, mask.sum(-1)), rationales, mask)


def random_tally(selected: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """The mean of `tally` over all choices of as many words; 0 without a rationale.  (B,T) -> (B,3)"""
    counts = tally(selected, rationales, mask)
    overlap = mass_share(counts[..., 1] * counts[..., 2], mask.sum(-1))
    return torch.stack([overlap, counts[..., 1], counts[..., 2]], -1)


def token_precision_micro(selected: Tensor, rationales: Tensor, mask: Tensor) -> float:
    """Share of the chosen words that are in the human rationale, pooled over all texts.  (N,T) -> one number"""
    return micro(tally(selected, rationales, mask))[0]


def token_recall_micro(selected: Tensor, rationales: Tensor, mask: Tensor) -> float:
    """Share of the human rationales that is chosen, pooled over all texts.  (N,T) -> one number"""
    return micro(tally(selected, rationales, mask))[1]


def token_f1_micro(selected: Tensor, rationales: Tensor, mask: Tensor) -> float:
    """F1 of the chosen words, pooled over all texts.  (N,T) -> one number"""
    return micro(tally(selected, rationales, mask))[2]


def tally(selected: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Counts of tokens in both, chosen, and in the rationale; 0 without a rationale.  (B,T) -> (B,3)"""
    counts = torch.stack([(tokens & mask).sum(-1) for tokens in (selected & rationales, selected, rationales)], -1)
    return counts.double() * (counts[..., 2:] > 0)


def micro(tally: Tensor) -> tuple[float, float, float]:
    """Precision, recall and F1 pooled over these texts.  (N,3)"""
    precision, recall, f1 = rates(tally.sum(0).numpy()).tolist()
    return precision, recall, f1


def rates(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Precision, recall and F1 from the three counts of `tally`, summed over texts.  (…,3) -> (…,3)"""
    overlap, selected, marked = np.moveaxis(totals, -1, 0)
    if not marked.all():
        raise ValueError("these texts have no human rationales")
    return np.stack([overlap / np.maximum(selected, 1), overlap / marked, 2 * overlap / (selected + marked)], -1)


def _nan_without_rationale(score: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    return score.masked_fill(~((rationales > 0) & mask).any(-1), torch.nan)


def _runs(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Which pairs of tokens lie in one run of True, and where each run starts.  (B,T) -> (B,T,T) bool, (B,T) bool"""
    start = tokens & ~torch.nn.functional.pad(tokens, (1, 0))[..., :-1]
    number = start.cumsum(-1)
    same_run = number.unsqueeze(-1) == number.unsqueeze(-2)
    return same_run & tokens.unsqueeze(-1) & tokens.unsqueeze(-2), start


def share(selected: Tensor, mask: Tensor) -> Tensor:
    """Share of the words that are selected.  NaN for a text without words.  (B,T) -> (B,)"""
    words = mask.sum(-1)
    return mass_share((selected & mask).sum(-1).double(), words).masked_fill(words == 0, torch.nan)


def spans(selected: Tensor, mask: Tensor) -> Tensor:
    """Number of separate selected spans.  NaN for a text without words.  (B,T) -> (B,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # runs skip tokens outside the mask
    ordered = (selected & mask).gather(-1, order)
    starts = ordered & ~pad(ordered, (1, 0))[..., :-1]
    return starts.sum(-1).double().masked_fill(~mask.any(-1), torch.nan)


def first_sentence(selected: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """How often a word of the first sentence is selected (X₁), in texts with several sentences.  (B,T) -> (B,)"""
    has_first, has_other = (first & mask).any(-1), (~first & mask).any(-1)
    return (selected & first & mask).any(-1).double().masked_fill(~(has_first & has_other), torch.nan)


_ORDER = "0: no better than a random order of the words; higher is better"
_agreement = partial(Measure, bounds=UNIT, direction="higher", citation=ERASER, identical=1)
_chosen, _ranking = partial(_agreement, inputs="choice"), partial(_agreement, inputs="ranking")
_token = partial(_chosen, probes=("", "selected"))
_micro = partial(_token, per_example=False, inputs="")
MEASURES = (
    Measure(
        "first-sentence",
        first_sentence,
        UNIT,
        "neither",
        YU,
        identical=1,
        proportion=True,
        probes=("", "rationales", "biased", "skewed"),
    ),
    Measure("selected-share", share, UNIT, "neither", YU, inputs="selection"),
    Measure("selected-spans", spans, (0, math.inf), "neither", YU, inputs="selection"),
    _token("token-precision", token_precision),
    _token("token-recall", token_recall),
    _token("token-f1", token_f1),
    _micro("token-precision-micro", token_precision_micro),
    _micro("token-recall-micro", token_recall_micro),
    _micro("token-f1-micro", token_f1_micro),
    _chosen("iou-f1", iou_f1),
    _ranking("average-precision", average_precision, citation="—", scale=_ORDER),
    _ranking(
        "average-precision/above-random",
        average_precision_above_random,
        bounds=SIGNED,
        identical=None,
        labels={"": "Agreement with human rationales, above a random order"},
        scale=_ORDER,
    ),
    _ranking("auprc", auprc),
    _ranking("rationale-mass", rationale_mass, citation="—"),
)
