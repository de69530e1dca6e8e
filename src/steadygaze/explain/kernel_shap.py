"""KernelSHAP: Shapley values, as the solution of a weighted least squares.

Lundberg & Lee, "A Unified Approach to Interpreting Model Predictions", NeurIPS 2017 (arXiv:1705.07874), Theorem 2.

    φ = argmin Σ_z π(z) (p(z) − p(∅) − φ·z)²     with  Σ φ_t = p(x) − p(∅)
    π(z) ∝ 1 / (C(n,k) k (n−k))                  k of n words kept

    z  (T,) 1 where a word is kept               p  how likely the class asked about is

Words are deleted and the text closes up; ∅ has none left.  The sum is exact, not a heavy weight: one more equation in

    ⎡ A  1 ⎤ ⎡φ⎤   ⎡       b       ⎤             A = Σ π z zᵀ
    ⎣ 1ᵀ 0 ⎦ ⎣λ⎦ = ⎣ p(x) − p(∅)   ⎦             b = Σ π z (p(z) − p(∅))

Short texts have every z read once: their values are exact.  Of longer ones explain/coalitions.py chooses which z are
read: whole sizes first, then pairs of a subset and its complement, without replacement.

Departs from the paper: nothing known.  Not Captum's `KernelShap`, which takes one text and one z at a time through
Python: all texts are solved at once.  That saves most of the time with a small network, and little with a transformer,
whose own passes are the cost.  Pinned by tests/explain/test_kernel_shap.py.
"""

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from steadygaze.config import Field, settings
from steadygaze.explain.chances import clean, without
from steadygaze.explain.coalitions import coalitions
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.subsets import MOST_SAMPLES, groups, saliency
from steadygaze.maths.chance import Chance
from steadygaze.perturb.texts import taken
from steadygaze.perturb.units import MOST_UNITS, units_of, warn_segments, words_of
from steadygaze.reader import Reader
from steadygaze.types import Batch

JITTER = 1e-10
"""On the diagonal of A, whose entries are about ½: should chance never have told two words apart."""


@settings
class KernelShap(Explainer):
    """KernelSHAP: each word's Shapley value, words deleted; sums to what all of them change (Lundberg & Lee 2017)."""

    deletes_words: ClassVar[bool] = True
    passes: ClassVar[int] = 1024

    samples: Annotated[int, Field(ge=64, le=MOST_SAMPLES)] = 1024
    """How often the text is read with words taken out."""
    most_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words that are removed; in a text of more, segments of consecutive words."""
    seed: int = 0
    """What is drawn is drawn from it and the text."""

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen = clean(model, batch, target)
        every = torch.arange(len(batch), device=batch.ids.device)
        empty = without(model, batch, every, words_of(batch), seen.aim)
        units = units_of(batch, most=self.most_units)
        warn_segments(units, self.most_units)
        found = torch.zeros(units.mask.shape, dtype=torch.float64, device=batch.ids.device)
        for rows in groups(batch, self.samples):
            part, aim = taken(batch, rows), seen.aim[rows]
            drawn = coalitions(part, self.samples, Chance(self.seed).child(2), self.most_units)
            gained = drawn.read(model, part, aim) - empty[rows].unsqueeze(-1)
            solved = values(drawn.kept.double(), gained, drawn.share, seen.chance[rows] - empty[rows], drawn.units.mask)
            found[rows, : solved.shape[1]] = solved
        return saliency(units, found, batch, seen.logits)


def values(z: Tensor, gained: Tensor, share: Tensor, whole: Tensor, mask: Tensor) -> Tensor:
    """φ.  (B,S,T), (B,S), (B,S), (B,), (B,T) -> (B,T)"""
    width = mask.shape[-1]
    weighted = (z * share.unsqueeze(-1)).mT
    system, right = z.new_zeros(len(z), width + 1, width + 1), z.new_zeros(len(z), width + 1)
    # Beside the words every place has the equation φ = 0; and a text without any word, λ = 0.
    system[:, :width, :width] = weighted @ z + torch.where(mask, JITTER, 1.0).to(z.dtype).diag_embed()
    system[:, width, :width] = system[:, :width, width] = mask.to(z.dtype)
    system[:, width, width] = (~mask.any(-1)).to(z.dtype)
    right[:, :width] = (weighted @ gained.unsqueeze(-1)).squeeze(-1)
    right[:, width] = whole
    solved: Tensor = torch.linalg.solve(system, right)
    return solved[:, :width].masked_fill(~mask, 0.0)
