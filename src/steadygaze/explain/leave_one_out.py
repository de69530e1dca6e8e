"""Leave one out: what the prediction loses when a word is deleted.

    w_t = p_c(x) − p_c(x ∖ t)

The text closes up over the word.  Above 0: the word speaks for the class; below: against it.
"""

from typing import ClassVar

import torch
from torch import Tensor

from steadygaze.explain.chances import clean, without
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.reader import Reader
from steadygaze.types import Batch


class LeaveOneOut(Explainer):
    """Leave one out: what the prediction loses when a word is deleted."""

    deletes_words: ClassVar[bool] = True
    passes: ClassVar[int] = 25  # about as many as a sentence has words

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        seen = clean(model, batch, target)
        rows, places = batch.mask.nonzero(as_tuple=True)  # one for each word of the batch
        gone = torch.zeros(len(rows), batch.ids.shape[1], dtype=torch.bool, device=rows.device)
        gone[torch.arange(len(rows), device=rows.device), places] = True
        weights = torch.zeros(batch.ids.shape, dtype=torch.float64, device=rows.device)
        weights[rows, places] = seen.chance[rows] - without(model, batch, rows, gone, seen.aim)
        return Saliency(weights, seen.logits)
