"""Word AT: adversarial training on the word embeddings.

Miyato et al., ICLR 2017 (arXiv:1605.07725), §3; a baseline of Kitada & Iyatomi (arXiv:2009.12064).

Equation
--------
    g  =  ∇ₓ ℓ(y, f(x))                     x: the embeddings of one text
    r  =  ε · g / ‖g‖₂                      one step; the norm is over the whole text
    L  =  ℓ(y, f(x))  +  λ · ℓ(y, f(x + r))

    x  (B,T,E) embeddings      ε  `epsilon`, times the mean norm of a word vector if `relative`
    ℓ  cross-entropy           λ  `weight`

r is a constant of the outer loss.

Cost
----
A second pass of the encoder: 2.0 vanilla steps on a GPU, 2.2 on a CPU.  No cost at prediction time.

When to use
-----------
First choice for stable attention, at twice the cost of vanilla.  If you have a synonym table, train with synonym groups
of it: without groups label flips hardly fall.

Departs from the paper
----------------------
Word vectors are not normalized to mean 0 and variance 1; ε is relative to their norm instead. Miyato's ε = 5 for
normalized vectors is far too large for raw GloVe.  In a pair, only the text is perturbed.

Tested by tests/techniques/test_word_at.py.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from torch import Tensor

from steadygaze.core.maths.distributions import unit_vector
from steadygaze.core.search_space import SearchRange
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Classifier
from steadygaze.perturbations.gradient_ascent import embedding_norm, widen
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques.technique import LossContext, Technique, task_loss


@settings
class WordAT(Technique):
    """Adversarial training on word embeddings (Miyato et al. 2017)."""

    stacked_settings: ClassVar[tuple[str, ...]] = ("epsilon", "relative", "weight")

    epsilon: Annotated[float, Field(ge=0, le=100), SearchRange(0.01, 10.0, log=True)] = 0.2
    """Length of the perturbation of a text; see `relative`."""
    relative: bool = True
    """Measure `epsilon` relative to the mean norm of a word vector."""
    weight: Annotated[float, Field(ge=0)] = 1.0
    """λ: weight of the perturbed loss."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        embedded = embedding_leaf(model.embed(batch))
        clean, g = context.differentiate(task_loss(model(batch, embedded).logits, batch), embedded, batch.mask)
        length = widen(self.epsilon * context.epoch_tables["unit"], g)
        r = length * self.direction(g, embedded, model, batch, context)
        return {"task": clean, "adversarial": self.weight * task_loss(model(batch, embedded + r).logits, batch)}

    def direction(self, g: Tensor, embedded: Tensor, model: Classifier, batch: Batch, context: LossContext) -> Tensor:
        """r, before its scale.  (B,T,E), (B,T,E) -> (B,T,E)"""
        return unit_vector(g)

    def on_epoch_start(self, model: Classifier, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        size = embedding_norm(model.vectors)
        return {"unit": size if self.relative else size.new_ones(())}


def embedding_leaf(embedded: Tensor) -> Tensor:
    """Return embeddings that require a gradient, even if word vectors are frozen."""
    return embedded if embedded.requires_grad else embedded.requires_grad_()
