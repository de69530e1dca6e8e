"""LIME: a straight line through what the model says of the text with words taken out.

Ribeiro, Singh & Guestrin, "Why Should I Trust You?", KDD 2016 (arXiv:1602.04938), §3.3–3.4.

    (c, β) = argmin Σ_s π(z_s) (p(z_s) − c − β·z_s)² + α ‖β‖²
    π(z)   = exp(−D² / 2w²),    D = 1 − √(k/n)          the cosine distance of z from the whole text

    z  (T,) 1 where a word is kept, k of n in all      w  `width`
    p  how likely the class asked about is             α  `ridge`

Words are deleted, all tokens of a word together, and the text closes up.  How many are kept is even between none and
all, as in the paper; w and α are those of its authors' package.  Every z is read once where the text is short enough
(subsets.py).

Departs from the paper: every word gets a weight, none is selected beforehand.  Not Captum's `Lime`, which takes one
text and one z at a time through Python: all texts are solved at once, to the same answer.  That saves most of the time
with a small network, and little with a transformer, whose own passes are the cost.
Pinned by tests/explain/test_lime.py.

Some of the words of a text, again and again: what LIME asks a model about.

    n words, k of them kept, with chance π(k) spread evenly over the subsets of that size

    2ⁿ ≤ S    every subset once, with its share π(k) / C(n,k): nothing is left to chance
    else      S of them are drawn, of four for each word at least, with equal shares

A word is a unit (techniques/perturbations/word_removal.py): all its tokens are kept or removed together.  A subset is
drawn from the text's own
chance, so it depends neither on the batch nor on how many are drawn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import clean_prediction, predict_without
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import (
    MOST_UNITS,
    Units,
    row_chunks,
    take_rows,
    text_key,
    units_of,
    warn_segments,
)

MOST_SAMPLES = 100_000
"""Subsets of a text that may be requested: a hundred times as many as LIME reads by default."""
PER_WORD = 4
"""Subsets for each word at least: with fewer than one, no regression could tell the words apart."""
ENTRIES = 1 << 21
"""Subsets × tokens held at once, in doubles."""
Law = Callable[[Tensor, Tensor], Tensor]
"""Sizes k and numbers of words n -> how likely a subset has that size, up to a factor."""


@dataclass(frozen=True, slots=True)
class Subsets:
    units: Units
    kept: Tensor  # (B,S,U) bool
    share: Tensor  # (B,S) sums to one in each text that has any; 0: not to be read

    def read(self, model: Model, batch: Batch, aim: Tensor) -> Tensor:
        """How likely the class asked about is, of each.  (B,S), 0 where it is not to be read"""
        found = torch.zeros_like(self.share)
        for rows, number in chunks(self.share != 0, self.units.number.shape[1]):
            gone = self.units.tokens(~self.kept[rows, number], rows)
            found[rows, number] = predict_without(model, batch, rows, gone, aim)
        return found


def saliency(units: Units, weights: Tensor, batch: Batch, logits: Tensor) -> Saliency:
    """The weights of units (B,U) on their first tokens, those of the question apart."""
    placed, width = units.on_first(weights), batch.ids.shape[1]
    return Saliency(placed[:, :width], logits, question=placed[:, width:] if placed.shape[1] > width else None)


def chunks(chosen: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The places that are True, so many at once that a row of `width` tokens for each fits in memory.  (B,N)"""
    rows, number = chosen.nonzero(as_tuple=True)
    size = max(1, ENTRIES // width)
    for start in range(0, len(rows), size):
        yield rows[start : start + size], number[start : start + size]


def groups(batch: Batch, samples: int) -> Iterator[Tensor]:
    """Rows of the texts to be handled together: memory does not grow with the batch."""
    width = batch.ids.shape[1] + (0 if batch.question_mask is None else batch.question_mask.shape[1])
    many = max(1, ENTRIES // (width * max(samples, PER_WORD * width)))
    return row_chunks(batch, many)


def subsets(batch: Batch, law: Law, samples: int, chance: RandomKey, most: int = MOST_UNITS) -> Subsets:
    units = units_of(batch, most=most)
    words = units.mask.sum(-1, keepdim=True)  # (B,1)
    few = words < samples.bit_length()  # 2ⁿ ≤ samples
    many = torch.where(few, 1 << words.clamp_max(62), (PER_WORD * words).clamp_min(samples))
    number = torch.arange(int(many.max()), device=words.device)
    sizes = _law(law, words, units.mask.shape[1])  # (B,U+1)
    if bool(few.all()):
        kept, share = _every(units.mask, number), torch.zeros_like(sizes[:, :1])
    else:
        kept, share = _drawn(text_key(batch), units.mask, sizes, number, chance), 1 / many.double()
        kept = torch.where(few.unsqueeze(-1), _every(units.mask, number), kept)
    size = kept.sum(-1)
    share = torch.where(few, sizes.gather(-1, size) / _choices(words, size), share)
    return Subsets(units, kept, share.masked_fill(number >= many, 0.0))


def _law(law: Law, words: Tensor, width: int) -> Tensor:
    """With a sum of one, where any is above 0.  (B,1) -> (B,U+1)"""
    k, n = torch.arange(width + 1, device=words.device).double(), words.double()
    chances = torch.where(k <= n, law(k, n), 0.0)
    return chances / chances.sum(-1, keepdim=True).clamp_min(torch.finfo(chances.dtype).tiny)


def _every(mask: Tensor, number: Tensor) -> Tensor:
    """The subset of a number has the words where its binary digits are 1.  (B,U), (S,) -> (B,S,U)"""
    digit = torch.arange(mask.shape[1], device=mask.device).clamp(0, 62)
    return ((number[:, None] >> digit) & 1).bool() & mask.unsqueeze(1)


def _drawn(key: Tensor, mask: Tensor, sizes: Tensor, number: Tensor, chance: RandomKey) -> Tensor:
    """By size, then evenly among those of that size.  (B,), (B,U), (B,U+1), (S,) -> (B,S,U)"""
    width = mask.shape[1]
    each = chance.scramble(key.unsqueeze(-1) + number)  # (B,S)
    drawn = chance.uniform(each.flatten(), 1 + width, dtype=torch.float64).view(*each.shape, 1 + width)
    k = torch.searchsorted(sizes.cumsum(-1), drawn[..., 0].contiguous(), right=True).clamp_max(width)
    drawn = drawn[..., 1:].masked_fill(~mask.unsqueeze(1), 2.0)
    ordered = torch.cat([drawn.sort(-1).values, torch.full_like(drawn[..., :1], 2.0)], -1)
    return drawn < ordered.gather(-1, k.unsqueeze(-1))  # the words of the k lowest numbers


def _choices(n: Tensor, k: Tensor) -> Tensor:
    """C(n,k)"""
    n, k = n.double(), k.double()
    return (torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)).exp()


@settings
class Lime(Explainer):
    """LIME: what a straight line makes of predictions with words deleted (Ribeiro et al. 2016)."""

    deletes_words: ClassVar[bool] = True
    forward_passes: ClassVar[int] = 1000

    samples: Annotated[int, Field(ge=64, le=MOST_SAMPLES)] = 1000
    """How often the text is read with words taken out."""
    width: Annotated[float, Field(gt=0)] = 0.25
    """How fast a text counts less as it loses words, in cosine distance."""
    ridge: Annotated[float, Field(ge=0)] = 1.0
    """How strongly weights are drawn to 0, against `samples` readings."""
    max_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""
    seed: int = 0
    """What is drawn is drawn from it and the text."""

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen, units = clean_prediction(model, batch, target), units_of(batch, most=self.max_units)
        warn_segments(units, self.max_units)
        found = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows in groups(batch, self.samples):
            part, aim = take_rows(batch, rows), seen.target_class[rows]
            chance = RandomKey(self.seed).child(1)
            drawn = subsets(part, lambda k, _: torch.ones_like(k), self.samples, chance, self.max_units)
            solved = self._line(drawn, drawn.read(model, part, aim))
            found[rows, : solved.shape[1]] = solved
        return saliency(units, found, batch, seen.logits)

    def _line(self, drawn: Subsets, chances: Tensor) -> Tensor:
        """(B,S,U), (B,S) -> (B,U)"""
        z, mask = drawn.kept.double(), drawn.units.mask
        left = z.sum(-1) / mask.sum(-1, keepdim=True).clamp_min(1)  # k/n
        weight = self.samples * drawn.share * (-((1 - left.sqrt()) ** 2) / (2 * self.width**2)).exp()
        return regression(z, chances, weight, self.ridge).masked_fill(~mask, 0.0)


def regression(z: Tensor, y: Tensor, weight: Tensor, ridge: float) -> Tensor:
    """β of the weighted least squares with a free constant.  (B,S,T), (B,S), (B,S) -> (B,T)"""
    total = weight.sum(-1, keepdim=True)
    z = z - (weight.unsqueeze(1) @ z) / total.unsqueeze(-1)
    y = y - (weight * y).sum(-1, keepdim=True) / total
    weighted = (z * weight.unsqueeze(-1)).mT
    # A place that never varies, padding above all, has a row of zeros: the smallest ridge keeps the rest solvable.
    eye = max(ridge, torch.finfo(z.dtype).eps) * torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    solved: Tensor = torch.linalg.solve(weighted @ z + eye, weighted @ y.unsqueeze(-1))
    return solved.squeeze(-1)
