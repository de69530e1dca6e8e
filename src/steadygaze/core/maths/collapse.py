"""Collapse detection: attention that is stable but does not explain anything.

    uniform     the same weight on every word
    constant    the same weight at the same position of every text, such as its first, last or middle word

    normalized entropy           H(w) / ln n   n: the words of the text; 1: equal weights; 0: one word has all weight
    distance to uniform          JSD(w, 1/n)
    distance to positional mean  JSD(w, h)     h: the mean weight at each position over the texts that reach it, cut to
                                               n positions and normalized; positions count from the start, the end or
                                               the middle, whichever is nearest

Attention on a random word is not detected: it is not stable, and other measures cover it.

JSD is to second order a squared distance.  The ratio of the two distances is therefore about 1 − R²: the part of the
deviation from uniform weights that position alone does not explain.

Relative positions, such as a third of the text, are covered by a profile of KNOTS values; a word contributes to its two
nearest knots.  The same ratio applies to the profiles, if they explain most of the distance to uniform.  Otherwise the
words of a long text would average out in them.

For selected sentences, the unit is the sentence: its words have equal weights, and the first sentence of each text is a
position.  A model with a free number of selected words can also select all or none.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import entropy, jensen_shannon, top_k_overlap
from steadygaze.core.ragged import RaggedTensor
from steadygaze.core.rounding import percent

UNEVEN = 0.005
"""Distance in nats below which weights are uniform.  Vanilla attention on real reviews has 0.1 to 0.3."""
SHARE = 0.05
"""The same threshold relative to the reference's distance (5 % of 0.1 is UNEVEN).  Also the threshold of the
unexplained part: below it, position explains 95 % of the weights."""
KNOTS = 10
MOST = 0.5
"""Share of the distance to uniform that profiles must explain.  For weight on one word they explain at least 0.58, for
ordinary attention to long texts at most 0.2."""
DISTINCT = 8
"""Minimum number of different texts for the detection of constant attention."""
SAME = 1e-5
"""Tolerance for equal weights: the same text in another batch differs by rounding."""
NONE, ALL = 0.001, 0.95
"""Share of selected words below which the selection counts as empty, and above which as everything."""


@dataclass(frozen=True)
class Collapse:
    """Collapse statistics: means over the texts of two words or more."""

    normalized_entropy: float
    distance_to_uniform: float
    distance_to_positional_mean: float
    overlap: float | None
    """Top-k overlap with the reference."""
    unexplained: float
    """Part of the deviation from uniform weights that position does not explain."""
    uniform: bool
    constant: bool
    unit: str = "word"
    """Unit of the weights: word or sentence."""
    selected: float | None = None
    """Share of selected words, if the model is free in their number."""

    @property
    def collapsed(self) -> bool:
        return self.uniform or self.constant or self.all_or_none

    @property
    def all_or_none(self) -> bool:
        """True if all words are selected, or none."""
        return self.selected is not None and not NONE <= self.selected <= ALL

    @property
    def reason(self) -> str:
        if self.selected is not None and self.all_or_none:
            extent = "All or nearly all words are" if self.selected > ALL else "No or almost no word is"
            return f"{extent} selected ({percent(self.selected, 1)})."
        if self.uniform:
            value = self.distance_to_uniform
            distance = f"{'less than 0.0001' if value < 0.0001 else f'{value:.4f}'} nats from uniform"
            return f"The weights are nearly the same for every {self.unit} ({distance})."
        if self.constant:
            left = percent(self.unexplained, 1)
            summary = f"The weights follow the position of a {self.unit}, not the text"
            return f"{summary} (position leaves {left} of them unexplained)."
        return ""


def normalized_entropy(w: Tensor, mask: Tensor) -> Tensor:
    """Return H(w) / ln n in [0, 1]; 1 for a text of one word or none.  (B,T), (B,T) -> (B,)"""
    words = mask.sum(-1)
    even = entropy(w, mask) / words.clamp_min(2).to(w.dtype).log()
    return torch.where(words > 1, even, 1.0).clamp_max(1.0)


def distance_to_uniform(w: Tensor, mask: Tensor) -> Tensor:
    """Return JSD(w, 1/n) in [0, ln 2).  (B,T), (B,T) -> (B,)"""
    return jensen_shannon(w, mask / mask.sum(-1, keepdim=True).clamp_min(1).to(w.dtype), mask)


def detect_collapse(
    weights: Tensor, mask: Tensor, reference: Tensor | None = None, k: int = 7, *, ids: Tensor | None = None
) -> Collapse:
    """Detect collapsed weights of a set of texts; all (N,T).  `ids` identify the texts that differ."""
    telling = mask.sum(-1) > 1
    weights, mask = weights[telling], mask[telling]
    others = [column[telling][mask] for column in (reference, ids) if column is not None]
    collapse = detect_ragged_collapse(RaggedTensor(weights[mask].double(), mask.sum(-1)), *others)
    if reference is None:
        return collapse
    usual = float(distance_to_uniform(reference[telling], mask).mean())
    return replace(
        collapse,
        overlap=float(top_k_overlap(weights, reference[telling], mask, k).mean()),
        uniform=collapse.uniform or collapse.distance_to_uniform < SHARE * usual,  # a reference can only be stricter
    )


def detect_ragged_collapse(ragged: RaggedTensor, *others: Tensor) -> Collapse:
    """Detect collapse of concatenated weights of texts of two words or more; `others` (M,) identify the texts."""
    w = ragged.values
    spread = ragged.jensen_shannon(1 / ragged.text_length).mean()
    from_positional_mean = distance_to_positional_mean(ragged).mean()
    left, profile, even = from_positional_mean / spread, _profile(ragged, w), _profile(ragged, 1 / ragged.text_length)
    inside = torch.ones_like(profile, dtype=torch.bool)
    held = jensen_shannon(profile, even, inside).mean()
    if held > MOST * spread:
        habit = profile.mean(0, keepdim=True).expand_as(profile)
        left = torch.minimum(left, jensen_shannon(profile, habit, inside).mean() / held)
    return Collapse(
        normalized_entropy=float((ragged.sums(-torch.xlogy(w, w)) / ragged.lengths.log()).clamp(0.0, 1.0).mean()),
        distance_to_uniform=float(spread),
        distance_to_positional_mean=float(from_positional_mean),
        overlap=None,
        unexplained=float(left),
        uniform=bool(spread < UNEVEN),
        constant=bool(left < SHARE) and _differ(ragged, *others),
    )


def detect_sentence_collapse(ragged: RaggedTensor, numbers: Tensor, ids: Tensor) -> Collapse:
    """Detect collapse of sentence weights in texts of two sentences or more; numbers (M,): sentence of each word."""
    begins = (ragged.position == 0) | (numbers != numbers.roll(1))
    unit, many = begins.cumsum(0) - 1, ragged.sums(begins.long())
    columns = [
        column.new_zeros(int(begins.sum())).index_add(0, unit, column) for column in (ragged.values, ids.double())
    ]
    telling = many > 1
    weight, id_sums = (column[telling.repeat_interleave(many)] for column in columns)
    return replace(detect_ragged_collapse(RaggedTensor(weight, many[telling]), id_sums), unit="sentence")


def selected_share(weights: Tensor, mask: Tensor) -> float | None:
    """Return the share of words with a weight, in texts of two words or more; None without any.  (N,T), (N,T)"""
    inside = mask & (mask.sum(-1, keepdim=True) > 1)
    return float((weights[inside] > 0).double().mean()) if inside.any() else None


def distance_to_positional_mean(ragged: RaggedTensor) -> Tensor:
    """Return the smallest distance, with positions from the start, the end and either middle word.  -> (N,)"""
    position, length = ragged.position, ragged.text_length
    counts = (position, length - 1 - position, position - length // 2, position - (length - 1) // 2)
    return torch.stack([ragged.jensen_shannon(_positional_mean(ragged, count)) for count in counts]).amin(0)


def _positional_mean(ragged: RaggedTensor, place: Tensor) -> Tensor:
    """Return the mean weight of each position, normalized per text.  (M,) -> (M,)"""
    _, at, reach = place.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
    total = ragged.values.new_zeros(len(reach)).index_add(0, at, ragged.values)
    return ragged.normalize((total / reach)[at])


def _profile(ragged: RaggedTensor, weights: Tensor) -> Tensor:
    """Return the weights by relative position, interpolated between two knots.  (M,) -> (N,KNOTS)"""
    way = (ragged.position + 0.5) / ragged.text_length * (KNOTS - 1)
    before = way.long()
    cell, after = ragged.text * KNOTS + before, (way - before).to(weights.dtype)
    profile = weights.new_zeros(len(ragged.lengths) * KNOTS)
    return profile.index_add(0, cell, weights * (1 - after)).index_add(0, cell + 1, weights * after).view(-1, KNOTS)


def _differ(ragged: RaggedTensor, *others: Tensor) -> bool:
    """Return True if at least DISTINCT texts differ: each round removes one and all texts like it."""
    left = torch.ones_like(ragged.lengths, dtype=torch.bool)
    for _ in range(DISTINCT):
        if not left.any():
            return False
        left &= ~ragged.equal_texts(int(left.to(torch.uint8).argmax()), SAME, *others)
    return True
