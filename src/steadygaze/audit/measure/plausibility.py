"""Whether the words an explanation points at are the ones a person marked.

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4.1.  S the chosen tokens, E the evidence, w the weights.

    precision  |S ∩ E| / |S|        recall  |S ∩ E| / |E|        F1  2 |S ∩ E| / (|S| + |E|)
    evidence mass      Σ_{t∈E} |w_t| / Σ_t |w_t|
    AUPRC              mean over t ∈ E of the precision of {s : w_s ≥ w_t}
    IOU-F1             F1 of spans: a run of chosen tokens and a run of evidence match where |∩| / |∪| ≥ ½
    first-sentence share   Σ_{t in sentence 1} |w_t| / Σ_t |w_t|     high: the place is chosen, not the words

    chosen    S (B,T) bool     evidence  E (B,T) bool     weights  w (B,T)     mask  (B,T) bool

Nothing chosen scores 0.  A text in which nobody marked a word has no score (NaN): leave it out, and say how many.

Departs from the paper: F1 is each text's own, to be averaged, not the F1 of the mean precision and recall.  Spans that
touch are one run.  Between two runs there is a gap, so they cannot both share half with one run of the other side:
matches are pairs.
"""

import torch
from torch import Tensor


def token_precision(chosen: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    """Which part of the chosen tokens is evidence, in [0, 1].  (B,T) -> (B,)"""
    return _scored(_part((chosen & evidence & mask).sum(-1), (chosen & mask).sum(-1)), evidence, mask)


def token_recall(chosen: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    """Which part of the evidence is chosen, in [0, 1].  (B,T) -> (B,)"""
    return _scored(_part((chosen & evidence & mask).sum(-1), (evidence & mask).sum(-1)), evidence, mask)


def token_f1(chosen: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    """The harmonic mean of the two, in [0, 1].  (B,T) -> (B,)"""
    both = (chosen & mask).sum(-1) + (evidence & mask).sum(-1)
    return _scored(_part(2 * (chosen & evidence & mask).sum(-1), both), evidence, mask)


def iou_f1(chosen: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    """F1 of runs that overlap by half or more, in [0, 1].  (B,T) -> (B,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # runs do not see unread tokens
    chosen, evidence = ((tokens & mask).gather(-1, order) for tokens in (chosen, evidence))
    (chosen_run, chosen_start), (evidence_run, evidence_start) = _runs(chosen), _runs(evidence)
    shared = (chosen_run & evidence_run).sum(-1)  # (B,T): of the two runs that meet at a token
    union = chosen_run.sum(-1) + evidence_run.sum(-1) - shared
    match = chosen & evidence & (2 * shared >= union)
    pairs = (chosen_start & (chosen_run & match.unsqueeze(-2)).any(-1)).sum(-1)
    f1 = _part(2 * pairs, chosen_start.sum(-1) + evidence_start.sum(-1))
    return _scored(f1, evidence, mask.gather(-1, order))


def evidence_mass(weights: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies on the evidence, in [0, 1].  (B,T) -> (B,)"""
    return _scored(_mass(weights, evidence, mask), evidence, mask)


def auprc(weights: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    """The area under precision and recall as the threshold falls (average precision), in (0, 1].  (B,T) -> (B,)"""
    evidence = evidence & mask
    above = (weights.unsqueeze(-2) >= weights.unsqueeze(-1)) & mask.unsqueeze(
        -2
    )  # (B,T,T): t, and what it brings along
    precision = _part((above & evidence.unsqueeze(-2)).sum(-1).to(weights.dtype), above.sum(-1))
    return _scored(_part(precision.masked_fill(~evidence, 0.0).sum(-1), evidence.sum(-1)), evidence, mask)


def first_sentence_share(weights: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies in the first sentence, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)"""
    return _mass(weights, first, mask)


def _mass(weights: Tensor, where: Tensor, mask: Tensor) -> Tensor:
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).masked_fill(~mask, 0.0).abs()
    return _part(size.masked_fill(~where, 0.0).sum(-1), size.sum(-1))


def _part(some: Tensor, whole: Tensor) -> Tensor:
    """some / whole, and 0 of nothing."""
    return some / whole.masked_fill(whole == 0, 1)


def _scored(score: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
    return score.masked_fill(~(evidence & mask).any(-1), torch.nan)


def _runs(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Which pairs of tokens lie in one run of True, and where each run starts.  (B,T) -> (B,T,T) bool, (B,T) bool"""
    start = tokens & ~torch.nn.functional.pad(tokens, (1, 0))[..., :-1]
    number = start.cumsum(-1)
    same = number.unsqueeze(-1) == number.unsqueeze(-2)
    return same & tokens.unsqueeze(-1) & tokens.unsqueeze(-2), start
