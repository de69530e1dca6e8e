"""LIME: a linear model of the class probability under word deletion.

Ribeiro, Singh & Guestrin, "Why Should I Trust You?", KDD 2016 (arXiv:1602.04938), §3.3–3.4.

    (c, β) = argmin Σ_s π(z_s) (p(z_s) − c − β·z_s)² + α ‖β‖²
    π(z)   = exp(−D² / 2w²),    D = 1 − √(k/n)          cosine distance of z from the whole text

    z  (T,) 1 for a kept word, k of n in all           w  `width`
    p  probability of the explained class              α  `ridge`

The number of kept words is uniform between 0 and n, as in the paper; w and α are those of its authors' package.  Unlike
the paper, every word gets a weight, without feature selection.  Unlike Captum's `Lime`, which handles one text and
one z at a time, all texts are solved at once, with the same result.

Subsets: k of n words are kept with probability π(k), uniform over the subsets of that size.

    2ⁿ ≤ S    every subset once, with its share π(k) / C(n,k): no randomness
    else      S random subsets, at least PER_WORD per word, with equal shares

A word is a unit (perturbations/word_removal.py): all its tokens are kept or deleted together.  A subset is
drawn from a random key of the text, so it depends neither on the batch nor on the number of samples.
"""

from collections.abc import Callable
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey, text_key
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.class_probability import CleanPrediction
from steadygaze.explainers.word_deletion import MOST_SAMPLES, PER_WORD, SubsetExplainer, Subsets
from steadygaze.models.inference import Model
from steadygaze.perturbations.word_removal import MAX_UNITS, Units, units_of

Law = Callable[[Tensor, Tensor], Tensor]
"""Sizes k and numbers of words n -> probability of the size, up to a factor."""


def subsets(batch: Batch, law: Law, samples: int, random_key: RandomKey, max_units: int = MAX_UNITS) -> Subsets:
    units = units_of(batch, max_units=max_units)
    words = units.mask.sum(-1, keepdim=True)  # (B,1)
    enumerable = words < samples.bit_length()  # 2ⁿ ≤ samples
    counts = torch.where(enumerable, 1 << words.clamp_max(62), (PER_WORD * words).clamp_min(samples))
    number = torch.arange(int(counts.max()), device=words.device)
    size_probabilities = _size_probabilities(law, words, units.mask.shape[1])  # (B,U+1)
    if bool(enumerable.all()):
        subset_masks, share = _all_subsets(units.mask, number), torch.zeros_like(size_probabilities[:, :1])
    else:
        drawn = _random_subsets(text_key(batch), units.mask, size_probabilities, number, random_key)
        subset_masks = torch.where(enumerable.unsqueeze(-1), _all_subsets(units.mask, number), drawn)
        share = 1 / counts.double()
    size = subset_masks.sum(-1)
    share = torch.where(enumerable, size_probabilities.gather(-1, size) / _choices(words, size), share)
    return Subsets(units, subset_masks, share.masked_fill(number >= counts, 0.0))


def _size_probabilities(law: Law, words: Tensor, width: int) -> Tensor:
    """Normalized to a sum of one if any is above 0.  (B,1) -> (B,U+1)"""
    k, n = torch.arange(width + 1, device=words.device).double(), words.double()
    chances = torch.where(k <= n, law(k, n), 0.0)
    return chances / chances.sum(-1, keepdim=True).clamp_min(torch.finfo(chances.dtype).tiny)


def _all_subsets(mask: Tensor, number: Tensor) -> Tensor:
    """The subset of a number contains the words at its binary digits 1.  (B,U), (S,) -> (B,S,U)"""
    digit = torch.arange(mask.shape[1], device=mask.device).clamp(0, 62)
    return ((number[:, None] >> digit) & 1).bool() & mask.unsqueeze(1)


def _random_subsets(key: Tensor, mask: Tensor, sizes: Tensor, number: Tensor, random_key: RandomKey) -> Tensor:
    """Draw a size, then uniformly a subset of that size.  (B,), (B,U), (B,U+1), (S,) -> (B,S,U)"""
    width = mask.shape[1]
    keys = random_key.scramble(key.unsqueeze(-1) + number)  # (B,S)
    noise = random_key.uniform(keys.flatten(), 1 + width, dtype=torch.float64).view(*keys.shape, 1 + width)
    k = torch.searchsorted(sizes.cumsum(-1), noise[..., 0].contiguous(), right=True).clamp_max(width)
    noise = noise[..., 1:].masked_fill(~mask.unsqueeze(1), 2.0)
    ordered = torch.cat([noise.sort(-1).values, torch.full_like(noise[..., :1], 2.0)], -1)
    return noise < ordered.gather(-1, k.unsqueeze(-1))  # the words of the k lowest numbers


def _choices(n: Tensor, k: Tensor) -> Tensor:
    """C(n,k)"""
    n, k = n.double(), k.double()
    return (torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)).exp()


@settings
class Lime(SubsetExplainer):
    """LIME: a linear model of predictions under word deletion (Ribeiro et al. 2016)."""

    forward_passes: ClassVar[int] = 1000

    samples: Annotated[int, Field(ge=64, le=MOST_SAMPLES)] = 1000
    """Forward passes with deleted words per text."""
    width: Annotated[float, Field(gt=0)] = 0.25
    """Width of the proximity kernel, in cosine distance."""
    ridge: Annotated[float, Field(ge=0)] = 1.0
    """Ridge penalty, relative to `samples` subsets."""

    def subsets(self, batch: Batch) -> Subsets:
        return subsets(
            batch, lambda k, _: torch.ones_like(k), self.samples, RandomKey(self.seed).child(1), self.max_units
        )

    def weigh(self, model: Model, batch: Batch, clean: CleanPrediction, units: Units) -> Tensor:
        return self.solve_groups(model, batch, clean, units, self._fit)

    def _fit(self, samples: Subsets, values: Tensor, rows: Tensor) -> Tensor:
        """(B,S,U), (B,S) -> (B,U)"""
        z, mask = samples.masks.double(), samples.units.mask
        kept_share = z.sum(-1) / mask.sum(-1, keepdim=True).clamp_min(1)  # k/n
        weight = self.samples * samples.share * (-((1 - kept_share.sqrt()) ** 2) / (2 * self.width**2)).exp()
        return regression(z, values, weight, self.ridge).masked_fill(~mask, 0.0)


def regression(z: Tensor, y: Tensor, weight: Tensor, ridge: float) -> Tensor:
    """β of the weighted least squares with a free constant.  (B,S,T), (B,S), (B,S) -> (B,T)"""
    total = weight.sum(-1, keepdim=True)
    z = z - (weight.unsqueeze(1) @ z) / total.unsqueeze(-1)
    y = y - (weight * y).sum(-1, keepdim=True) / total
    weighted = (z * weight.unsqueeze(-1)).mT
    # A position that never varies, such as padding, has a row of zeros: a tiny ridge keeps the system solvable.
    eye = max(ridge, torch.finfo(z.dtype).eps) * torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    solution: Tensor = torch.linalg.solve(weighted @ z + eye, weighted @ y.unsqueeze(-1))
    return solution.squeeze(-1)
