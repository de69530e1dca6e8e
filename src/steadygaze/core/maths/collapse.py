"""Is an attention that does not move any explanation at all?  Two that never move, and explain nothing.

    uniform     the same weight on every word
    constant    the same weight on the same place, whatever the text: its first word, say, its last, or the middle one

    normalized entropy           H(w) / ln n   n: the words of the text; 1: equal weights; 0: one word has all weight
    distance to uniform          JSD(w, 1/n)
    distance to positional mean  JSD(w, h)     h: the mean weight at each position over the texts that reach it, cut to
                                               n positions and normalized; positions count from the start, the end or
                                               the middle, whichever is nearest

Neither sees an attention that puts all weight on one word drawn at random: that moves, and is for the other measures.

JSD is to second order a squared distance, so the ratio of the two distances is about 1 − R²: the part of what sets the
weights apart from even ones that place alone does not foretell.

A third of the way into the text is another word in each: places in parts of the text are told by a profile of KNOTS
numbers, in which a word counts for the two knots it stands between.  The same ratio is asked of the profiles, where
these hold most of what sets the weights apart; else the words of a long text would average out in them.

Of whole sentences the same is asked sentence by sentence: within one all words weigh alike, and the first sentence of
each text is a place, however many words it has.  A model that selects as many words as it likes may take all, or none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from steadygaze.core.maths.divergence import entropy, jensen_shannon
from steadygaze.core.maths.ranking import top_k_overlap
from steadygaze.core.maths.segments import RaggedWeights

UNEVEN = 0.005
"""Nats from uniform under which weights are even.  Plain attention trained on real reviews lies at 0.1 to 0.3."""
SHARE = 0.05
"""The same as a part of the reference's distance (5 % of 0.1 is UNEVEN), and the part of from_uniform that must be left
when place is known: under it, place foretells 95 % of what the weights say."""
KNOTS = 10
MOST = 0.5
"""The share of the distance to uniform that profiles must explain: of one word anywhere they hold 0.58 and more, of
ordinary attention to long texts 0.2 and less."""
DISTINCT = 8
"""Texts that differ: fewer cannot tell a habit from texts that are alike."""
SAME = 1e-5
"""Weights nearer than this are one weight: the same text read in another batch differs by rounding."""
NONE, ALL = 0.001, 0.95
"""The share of words that is selected under which it is as good as none, and over which as good as all."""


@dataclass(frozen=True)
class Collapse:
    """What one set of weights looks like: means over the texts of two words or more."""

    normalized_entropy: float
    distance_to_uniform: float
    distance_to_positional_mean: float
    overlap: float | None
    """Top-k overlap with the reference."""
    unexplained: float
    """The part of what sets the weights apart from even ones that place does not foretell."""
    uniform: bool
    constant: bool
    unit: str = "word"
    """What weighs: a word, or a sentence."""
    selected: float | None = None
    """Share of the words that is selected, where a model takes as many as it likes."""

    @property
    def collapsed(self) -> bool:
        return self.uniform or self.constant or self.all_or_none

    @property
    def all_or_none(self) -> bool:
        """Whether all words are selected, or none."""
        return self.selected is not None and not NONE <= self.selected <= ALL

    @property
    def reason(self) -> str:
        if self.selected is not None and self.all_or_none:
            what = (
                "All words are selected, or nearly all" if self.selected > ALL else "No word is selected, or hardly any"
            )
            return f"{what} ({self.selected:.1%})."
        if self.uniform:
            distance = f"{self.distance_to_uniform:.4f} nats from uniform"
            return f"The weights are nearly the same for every {self.unit} ({distance})."
        if self.constant:
            left = f"{self.unexplained:.1%}"
            follow = f"The weights follow the place of a {self.unit}, not the text"
            return f"{follow} (place leaves {left} of them unexplained)."
        return ""


def normalized_entropy(w: Tensor, mask: Tensor) -> Tensor:
    """H(w) / ln n in [0, 1]; 1 for a text of one word, or none.  (B,T), (B,T) -> (B,)"""
    words = mask.sum(-1)
    even = entropy(w, mask) / words.clamp_min(2).to(w.dtype).log()
    return torch.where(words > 1, even, 1.0).clamp_max(1.0)


def distance_to_uniform(w: Tensor, mask: Tensor) -> Tensor:
    """JSD(w, 1/n) in [0, ln 2).  (B,T), (B,T) -> (B,)"""
    return jensen_shannon(w, mask / mask.sum(-1, keepdim=True).clamp_min(1).to(w.dtype), mask)


def distance_to_positional_mean(w: Tensor, mask: Tensor) -> Tensor:
    """JSD(w, h) in [0, ln 2): compares texts, so give it all of them; NaN under two words.  (N,T), (N,T) -> (N,)"""
    telling = mask.sum(-1) > 1
    mask = mask & telling.unsqueeze(-1)
    found = w.new_full(telling.shape, torch.nan)
    found[telling] = _distance_to_positional_mean(RaggedWeights(w[mask], mask.sum(-1)[telling]))
    return found


def detect_collapse(
    weights: Tensor, mask: Tensor, reference: Tensor | None = None, k: int = 7, *, ids: Tensor | None = None
) -> Collapse:
    """Whether the weights of one set of texts say anything; all (N,T).  `ids`, where known, tell which texts differ."""
    telling = mask.sum(-1) > 1
    weights, mask = weights[telling], mask[telling]
    others = [column[telling][mask] for column in (reference, ids) if column is not None]
    found = detect_ragged_collapse(RaggedWeights(weights[mask].double(), mask.sum(-1)), *others)
    if reference is None:
        return found
    usual = float(distance_to_uniform(reference[telling], mask).mean())
    return replace(
        found,
        overlap=float(top_k_overlap(weights, reference[telling], mask, k).mean()),
        uniform=found.uniform or found.distance_to_uniform < SHARE * usual,  # a reference may only ask for more
    )


def detect_ragged_collapse(laid: RaggedWeights, *others: Tensor) -> Collapse:
    """The same of weights end to end, of texts of two words or more; `others` (M,) tell which texts differ."""
    w = laid.values
    spread, strayed = laid.apart(1 / laid.many).mean(), _distance_to_positional_mean(laid).mean()
    left, profile, even = strayed / spread, _profile(laid, w), _profile(laid, 1 / laid.many)
    inside = torch.ones_like(profile, dtype=torch.bool)
    held = jensen_shannon(profile, even, inside).mean()
    if held > MOST * spread:
        habit = profile.mean(0, keepdim=True).expand_as(profile)
        left = torch.minimum(left, jensen_shannon(profile, habit, inside).mean() / held)
    return Collapse(
        normalized_entropy=float((laid.sums(-torch.xlogy(w, w)) / laid.words.log()).clamp(0.0, 1.0).mean()),
        distance_to_uniform=float(spread),
        distance_to_positional_mean=float(strayed),
        overlap=None,
        unexplained=float(left),
        uniform=bool(spread < UNEVEN),
        constant=bool(left < SHARE) and _differ(laid, *others),
    )


def detect_sentence_collapse(laid: RaggedWeights, numbers: Tensor, ids: Tensor) -> Collapse:
    """The same of models that weigh whole sentences, of texts of two sentences or more; numbers (M,): whose each is."""
    begins = (laid.place == 0) | (numbers != numbers.roll(1))
    unit, many = begins.cumsum(0) - 1, laid.sums(begins.long())
    columns = [one.new_zeros(int(begins.sum())).index_add(0, unit, one) for one in (laid.values, ids.double())]
    telling = many > 1
    weight, told = (column[telling.repeat_interleave(many)] for column in columns)
    return replace(detect_ragged_collapse(RaggedWeights(weight, many[telling]), told), unit="sentence")


def selected_share(weights: Tensor, mask: Tensor) -> float | None:
    """The share of words with any weight, in texts of two words or more; None where there are none.  (N,T), (N,T)"""
    inside = mask & (mask.sum(-1, keepdim=True) > 1)
    return float((weights[inside] > 0).double().mean()) if inside.any() else None


def _distance_to_positional_mean(laid: RaggedWeights) -> Tensor:
    """The nearest of the four ways to count.  -> (N,)"""
    return torch.stack([laid.apart(_habit(laid, place)) for place in _counted(laid)]).amin(0)


def _counted(laid: RaggedWeights) -> Iterator[Tensor]:
    """The place of each word from the start, from the end and from either word in the middle.  (M,) each"""
    yield laid.place
    yield laid.many - 1 - laid.place
    for middle in (laid.many // 2, (laid.many - 1) // 2):
        yield laid.place - middle


def _habit(laid: RaggedWeights, place: Tensor) -> Tensor:
    """The mean weight of each place, as shares of the text.  (M,) -> (M,)"""
    _, at, reach = place.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
    total = laid.values.new_zeros(len(reach)).index_add(0, at, laid.values)
    return laid.shares((total / reach)[at])


def _profile(laid: RaggedWeights, weights: Tensor) -> Tensor:
    """Which part lies where in the text, a word shared by the two knots beside it.  (M,) -> (N,KNOTS)"""
    way = (laid.place + 0.5) / laid.many * (KNOTS - 1)
    before = way.long()
    cell, after = laid.text * KNOTS + before, (way - before).to(weights.dtype)
    found = weights.new_zeros(len(laid.words) * KNOTS)
    return found.index_add(0, cell, weights * (1 - after)).index_add(0, cell + 1, weights * after).view(-1, KNOTS)


def _differ(laid: RaggedWeights, *others: Tensor) -> bool:
    """Whether at least DISTINCT texts lie apart: each round takes one and puts away all that are like it."""
    left = torch.ones_like(laid.words, dtype=torch.bool)
    for _ in range(DISTINCT):
        if not left.any():
            return False
        left &= ~laid.alike(int(left.to(torch.uint8).argmax()), SAME, *others)
    return True
