"""Input × gradient: what the prediction would lose without each word, were it a straight line.

    w_t = Σ_d x_td · ∂p_c/∂x_td

Shrikumar et al. 2016 (arXiv:1605.01713); taken by Captum's `InputXGradient`.  Above 0: the word speaks for the class.

Departs from the paper: nothing known.  Pinned by tests/explain/test_input_x_gradient.py.
"""

from typing import ClassVar

from torch import Tensor

from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.vectors import Asked, slopes_by
from steadygaze.reader import Ability, Reader
from steadygaze.types import Batch


class InputXGradient(Explainer):
    """Input × gradient: what a straight line says of each word's vector (Shrikumar et al. 2016)."""

    needs: ClassVar[frozenset[Ability]] = frozenset({"vectors"})
    passes: ClassVar[int] = 3

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(_product, model, batch, target, embedded)


def _product(asked: Asked) -> Tensor:
    from captum.attr import InputXGradient

    product: Tensor = InputXGradient(asked.f).attribute(asked.vectors, additional_forward_args=(asked.rows,))
    return product.double().sum(-1)
