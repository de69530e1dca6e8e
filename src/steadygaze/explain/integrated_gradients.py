"""Integrated gradients: the slopes on the way from a text of padding to the text, added up.

Sundararajan, Taly & Yan, "Axiomatic Attribution for Deep Networks", ICML 2017 (arXiv:1703.01365), Eq. 1.

    w_t = Σ_d (x_td − x′_td) · ∫₀¹ ∂p_c/∂x_td (x′ + α (x − x′)) dα
    Σ_t w_t = p_c(x) − p_c(x′)                            completeness

    x′  every word's vector that of padding (0 in our word models); all other tokens as they are

By Captum's `IntegratedGradients`: Gauss and Legendre's rule with `steps` points, whose error the sum above tells.

Departs from the paper: the baseline of a word is the vector of padding, not 0, where the two differ.
Pinned by tests/explain/test_integrated_gradients.py.
"""

from typing import Annotated, ClassVar

from torch import Tensor

from steadygaze.config import Field, settings
from steadygaze.explain.explainer import Explainer, Saliency
from steadygaze.explain.vectors import Asked, at_once, slopes_by
from steadygaze.reader import Ability, Reader
from steadygaze.types import Batch


@settings
class IntegratedGradients(Explainer):
    """Integrated gradients: sums to what the words change against padding (Sundararajan et al. 2017)."""

    needs: ClassVar[frozenset[Ability]] = frozenset({"vectors"})
    passes: ClassVar[int] = 150  # a step is a pass with slopes, which costs about three without

    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Points on the way at which slopes are taken."""

    def explain(
        self, model: Reader, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        return slopes_by(self._integral, model, batch, target, embedded, near=1.0)

    def _integral(self, asked: Asked) -> Tensor:
        from captum.attr import IntegratedGradients

        integral: Tensor = IntegratedGradients(asked.f).attribute(
            asked.vectors,
            baselines=asked.baseline,
            additional_forward_args=(asked.rows,),
            n_steps=self.steps,
            internal_batch_size=at_once(asked.vectors),
        )
        return integral.double().sum(-1)
