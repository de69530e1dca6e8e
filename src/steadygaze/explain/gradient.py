"""Gradient: how much the prediction hangs on each word's vector.

    w_t = ‖∂p_c/∂x_t‖₂

Simonyan, Vedaldi & Zisserman 2014 (arXiv:1312.6034), §3; the slope is taken by Captum's `Saliency`.  The length, not
the sum of the entries' sizes: it is what the prediction changes by at most for a step of length one of that vector,
whatever axes the vectors are written in.  It has no sign.  Of a sure prediction every slope is small; what can be read
is which word's is the largest.

Departs from the paper, which takes the largest entry of three colours.  audit/probe/gradient.py has that of Jain &
Wallace, which is gradient × input with the attention held fixed.  Pinned by tests/explain/test_gradient.py.
"""

from typing import ClassVar

from torch import Tensor

from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.vectors import Asked, slopes_by
from steadygaze.reader import Ability, Reader
from steadygaze.types import Batch


class Gradient(Explainer):
    """Gradient: how far the prediction can move with each word's vector; no sign."""

    needs: ClassVar[frozenset[Ability]] = frozenset({"vectors"})
    passes: ClassVar[int] = 3

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(_slope, model, batch, target, embedded)


def _slope(asked: Asked) -> Tensor:
    from captum.attr import Saliency

    slope: Tensor = Saliency(asked.f).attribute(asked.vectors, abs=False, additional_forward_args=(asked.rows,))
    length: Tensor = slope.double().norm(dim=-1)
    return length
