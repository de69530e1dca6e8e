"""Leave one out: what the prediction loses when a word is deleted.

    w_t = p_c(x) − p_c(x ∖ t)

All tokens of the word are deleted together and the text closes up.  Above 0: the word speaks for the class; below:
against it.  Of a pair each word of the question is left out, too.
"""

from typing import ClassVar

import torch
from torch import Tensor

from steadygaze.explain.chances import clean, without
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.subsets import saliency
from steadygaze.perturb.units import units_of
from steadygaze.reader import Reader
from steadygaze.types import Batch


class LeaveOneOut(Explainer):
    """Leave one out: what the prediction loses when a word is deleted."""

    deletes_words: ClassVar[bool] = True
    passes: ClassVar[int] = 25  # about as many as a sentence has words

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen, units = clean(model, batch, target), units_of(batch)
        rows, number = units.mask.nonzero(as_tuple=True)  # one for each word of the batch
        gone = units.number[rows] == number.unsqueeze(-1)
        weights = torch.zeros(units.mask.shape, dtype=torch.float64, device=rows.device)
        weights[rows, number] = seen.chance[rows] - without(model, batch, rows, gone, seen.aim)
        return saliency(units, weights, batch, seen.logits)
