"""Which part of the weight of a text lies somewhere: the one sum that several measures share.

Whether the words an explanation points at are the ones a person marked.

DeYoung et al., ERASER, ACL 2020 (arXiv:1911.03429), §4.1.  S the chosen tokens, E the rationales, w the weights.

    precision  |S ∩ E| / |S|        recall  |S ∩ E| / |E|        F1  2 |S ∩ E| / (|S| + |E|)
    rationale mass      Σ_{t∈E} |w_t| / Σ_t |w_t|
    average precision  Σ_i (R_i − R_{i−1}) P_i               as scikit-learn's average_precision_score
    AUPRC              Σ_i (R_i − R_{i−1}) (P_i + P_{i−1}) / 2    the trapezoid area, as ERASER's own code has it
                       P_i, R_i: precision and recall of {s : w_s ≥ the i-th largest weight};  R_0 = 0, P_0 = 1
    IOU-F1             F1 of spans: a run of chosen tokens and a run of rationales match where |∩| / |∪| ≥ ½
    … above random     the same minus its mean over all orders of the n words, m of them marked:
                       E[AP] = 1/n · ( H_n + (m − 1)/(n − 1) · (n − H_n) ),   H_n = Σ_{i≤n} 1/i
    micro              precision, recall and F1 of the tokens of all texts together

    chosen    S (B,T) bool     rationales  E (B,T) bool     weights  w (B,T)     mask  (B,T) bool

Nothing chosen scores 0.  A text in which nobody marked a word has no score (NaN): leave it out, and say how many.

E[AP]: place i holds a marked word with probability m/n, and then each of the i − 1 before it with (m − 1)/(n − 1).

Departs from the paper: F1 is each text's own, to be averaged, not the F1 of the mean precision and recall.  Spans that
touch are one run.  Between two runs there is a gap, so they cannot both share half with one run of the other side:
matches are pairs.

What a selection is: how much of a text, in how many pieces, and whether it is where the text begins.

Yu et al. 2021 (arXiv:2110.13880), §5.  S the selected words of a text of n.

    share            |S| / n
    spans            runs of selected words: next to each other among the words of the text
    first sentence   1 where S has a word of sentence 1, else 0; the mean over texts is X₁

    chosen  S (B,T) bool     first  sentence 1 (B,T) bool     mask  (B,T) bool

Of whole sentences, first sentence says whether sentence 1 was taken; of single words, whether any of them lies in it
(which part does is `shortcut.first_sentence_share`).  A text of one sentence has no choice, and no number (NaN); in one
of which nothing is selected sentence 1 is not either: 0.

Precision, recall and F1 of a selection are `plausibility`'s, of S as it is: those of each text, whose mean is reported,
and micro, those of all texts together.  Of nothing selected they are 0; where nobody marked a word there are none.

Departs from the paper: it counts which part of the selected words lies in sentence 1; of one sentence that is the same.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def mass(weights: Tensor, where: Tensor, mask: Tensor) -> Tensor:
    """Σ_{t∈where} |w_t| / Σ_t |w_t| over the words, in [0, 1]; `weights` may be chosen tokens.  (B,T) -> (B,)"""
    size = weights.to(torch.promote_types(weights.dtype, torch.float32)).masked_fill(~mask, 0.0).abs()
    return mass_share(size.masked_fill(~where, 0.0).sum(-1), size.sum(-1))


def mass_share(some: Tensor, whole: Tensor) -> Tensor:
    """some / whole, and 0 of nothing."""
    return some / whole.masked_fill(whole == 0, 1)


def token_precision(chosen: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Which part of the chosen tokens is rationales, in [0, 1].  (B,T) -> (B,)"""
    return _scored(mass_share((chosen & rationales & mask).sum(-1), (chosen & mask).sum(-1)), rationales, mask)


def token_recall(chosen: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Which part of the rationales is chosen, in [0, 1].  (B,T) -> (B,)"""
    return _scored(mass_share((chosen & rationales & mask).sum(-1), (rationales & mask).sum(-1)), rationales, mask)


def token_f1(chosen: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """The harmonic mean of the two, in [0, 1].  (B,T) -> (B,)"""
    both = (chosen & mask).sum(-1) + (rationales & mask).sum(-1)
    return _scored(mass_share(2 * (chosen & rationales & mask).sum(-1), both), rationales, mask)


def iou_f1(chosen: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """F1 of runs that overlap by half or more, in [0, 1].  (B,T) -> (B,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # runs do not see unread tokens
    chosen, rationales = ((tokens & mask).gather(-1, order) for tokens in (chosen, rationales))
    (chosen_run, chosen_start), (rationale_run, evidence_start) = _runs(chosen), _runs(rationales)
    shared = (chosen_run & rationale_run).sum(-1)  # (B,T): of the two runs that meet at a token
    union = chosen_run.sum(-1) + rationale_run.sum(-1) - shared
    match = chosen & rationales & (2 * shared >= union)
    pairs = (chosen_start & (chosen_run & match.unsqueeze(-2)).any(-1)).sum(-1)
    f1 = mass_share(2 * pairs, chosen_start.sum(-1) + evidence_start.sum(-1))
    return _scored(f1, rationales, mask.gather(-1, order))


def rationale_mass(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """Which part of the weight lies on the rationales, in [0, 1].  (B,T) -> (B,)"""
    return _scored(mass(weights, rationales, mask), rationales, mask)


def average_precision(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """The mean precision at the words of the rationales, in (0, 1].  (B,T) -> (B,)"""
    rationales = rationales & mask
    precision, _ = _curve(weights, rationales, mask)
    return _scored(mass_share(precision.masked_fill(~rationales, 0.0).sum(-1), rationales.sum(-1)), rationales, mask)


def auprc(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """The area under the curve of precision by recall, by trapezoids, in (0, 1].  (B,T) -> (B,)"""
    rationales = rationales & mask
    order = weights.masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    precision, recall = (one.gather(-1, order) for one in _curve(weights, rationales, mask))
    first = torch.ones_like(precision[:, :1])  # nothing is chosen: recall 0, precision 1
    height = torch.cat([first, precision], -1)
    width = torch.cat([torch.zeros_like(first), recall], -1).diff(dim=-1)
    return _scored((width * (height[:, 1:] + height[:, :-1]) / 2).sum(-1), rationales, mask)


def _curve(weights: Tensor, rationales: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Precision and recall of the words that weigh as much as each, or more; outside the mask recall is 1.  (B,T)"""
    above = (weights.unsqueeze(-2) >= weights.unsqueeze(-1)) & mask.unsqueeze(-2)  # (B,T,T): t brings these along
    right = (above & rationales.unsqueeze(-2)).sum(-1).to(weights.dtype)
    recall = mass_share(right, rationales.sum(-1, keepdim=True).expand_as(right))
    return mass_share(right, above.sum(-1)), torch.where(mask, recall, 1.0)


def average_precision_above_random(weights: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """How much better than a random order they rank, in (−1, 1); below 0 where all weigh alike.  (B,T) -> (B,)"""
    return average_precision(weights, rationales, mask) - random_average_precision(rationales, mask).to(weights.dtype)


def random_average_precision(rationales: Tensor, mask: Tensor) -> Tensor:
    """The mean average precision of all orders of the words; no number of a text nobody marked.  (B,T) -> (B,)"""
    words, marked = mask.sum(-1), (rationales & mask).sum(-1).double()
    harmonic = torch.arange(mask.shape[-1] + 1, dtype=torch.float64, device=mask.device)
    harmonic[1:] = harmonic[1:].reciprocal().cumsum(0)
    first = harmonic[words]
    mean = (first + (marked - 1) / (words - 1).clamp_min(1) * (words - first)) / words.clamp_min(1)
    return _scored(mean, rationales, mask)


def token_precision_micro(chosen: Tensor, rationales: Tensor, mask: Tensor) -> float:
    """Precision of all texts together, in [0, 1].  (N,T) -> one number"""
    return micro(tally(chosen, rationales, mask))[0]


def token_recall_micro(chosen: Tensor, rationales: Tensor, mask: Tensor) -> float:
    """Recall of all texts together, in [0, 1].  (N,T) -> one number"""
    return micro(tally(chosen, rationales, mask))[1]


def token_f1_micro(chosen: Tensor, rationales: Tensor, mask: Tensor) -> float:
    """F1 of all texts together, in [0, 1].  (N,T) -> one number"""
    return micro(tally(chosen, rationales, mask))[2]


def tally(chosen: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    """How many tokens are both, chosen, and marked; none of a text nobody marked.  (B,T) -> (B,3)"""
    counts = torch.stack([(tokens & mask).sum(-1) for tokens in (chosen & rationales, chosen, rationales)], -1)
    return counts.double() * (counts[..., 2:] > 0)


def micro(tally: Tensor) -> tuple[float, float, float]:
    """Precision, recall and F1 of these texts together.  (N,3)"""
    return rates(*tally.sum(0).tolist())


def rates(both: float, chosen: float, marked: float) -> tuple[float, float, float]:
    """Precision, recall and F1 from the three counts of `tally`, summed over texts."""
    if not marked:
        raise ValueError("nobody marked a word in these texts")
    return both / max(chosen, 1), both / marked, 2 * both / (chosen + marked)


def _scored(score: Tensor, rationales: Tensor, mask: Tensor) -> Tensor:
    return score.masked_fill(~(rationales & mask).any(-1), torch.nan)


def _runs(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Which pairs of tokens lie in one run of True, and where each run starts.  (B,T) -> (B,T,T) bool, (B,T) bool"""
    start = tokens & ~torch.nn.functional.pad(tokens, (1, 0))[..., :-1]
    number = start.cumsum(-1)
    same = number.unsqueeze(-1) == number.unsqueeze(-2)
    return same & tokens.unsqueeze(-1) & tokens.unsqueeze(-2), start


def share(chosen: Tensor, mask: Tensor) -> Tensor:
    """In [0, 1]; NaN of a text without words.  (B,T) -> (B,)"""
    words = mask.sum(-1)
    return mass_share((chosen & mask).sum(-1).double(), words).masked_fill(words == 0, torch.nan)


def spans(chosen: Tensor, mask: Tensor) -> Tensor:
    """From 0 up; NaN of a text without words.  (B,T) -> (B,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # runs do not see unread tokens
    taken = (chosen & mask).gather(-1, order)
    begins = taken & ~pad(taken, (1, 0))[..., :-1]
    return begins.sum(-1).double().masked_fill(~mask.any(-1), torch.nan)


def first_sentence(chosen: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """0 or 1; NaN where sentence 1 is not known, or is all there is.  (B,T) -> (B,)"""
    known, others = (first & mask).any(-1), (~first & mask).any(-1)
    return (chosen & first & mask).any(-1).double().masked_fill(~(known & others), torch.nan)
