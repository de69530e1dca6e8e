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
"""

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.config import Field, settings
from steadygaze.explain.chances import clean
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.subsets import MOST_SAMPLES, Subsets, groups, saliency, subsets
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import taken
from steadygaze.perturb.units import MOST_UNITS, units_of, warn_segments
from steadygaze.reader import Reader
from steadygaze.types import Batch


@settings
class Lime(Explainer):
    """LIME: what a straight line makes of predictions with words deleted (Ribeiro et al. 2016)."""

    deletes_words: ClassVar[bool] = True
    passes: ClassVar[int] = 1000

    samples: Annotated[int, Field(ge=64, le=MOST_SAMPLES)] = 1000
    """How often the text is read with words taken out."""
    width: Annotated[float, Field(gt=0)] = 0.25
    """How fast a text counts less as it loses words, in cosine distance."""
    ridge: Annotated[float, Field(ge=0)] = 1.0
    """How strongly weights are drawn to 0, against `samples` readings."""
    most_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""
    seed: int = 0
    """What is drawn is drawn from it and the text."""

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen, units = clean(model, batch, target), units_of(batch, most=self.most_units)
        warn_segments(units, self.most_units)
        found = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows in groups(batch, self.samples):
            part, aim = taken(batch, rows), seen.aim[rows]
            chance = Chance(self.seed).child(1)
            drawn = subsets(part, lambda k, _: torch.ones_like(k), self.samples, chance, self.most_units)
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
