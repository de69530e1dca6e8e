"""AIL: the prediction can be approximated from the selected units, but not from the unselected ones.

Liang, Bai, Cao, Bai & Wang, "Adversarial infidelity learning for model interpretation", KDD 2020 (arXiv:2006.05379):

    approximator and opponent minimize    CE(p, q_s(x ⊙ m)) + c CE(p, q_u(x ⊙ (1−m)))
    the selector minimizes                CE(p, q_s(x ⊙ m)) + c CE(p̄, q_u(x ⊙ (1−m)))

    p̄ = (1−p) / (C−1): every class but the predicted one

The selector is conditioned on p.

Differences from the released code: all networks are updated together, while the released code alternates within a
batch.  Images use the recipe for texts.  The selector has no warm start from gradients, which a black box does not
have.
"""

from typing import Annotated, ClassVar, Literal

from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Terms
from steadygaze.explainers.learned.l2x import MitigationName, SelectorConfig, SelectorStep


@settings
class Ail(SelectorConfig):
    """Adversarial infidelity: the unselected units must not determine the prediction."""

    mitigations: ClassVar[tuple[MitigationName, ...]] = ("none",)
    opposes: ClassVar[bool] = True

    opponent: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """c: weight of the opponent's loss."""
    conditioned: bool = True
    approximator: Literal["simple", "cnn"] = "cnn"
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 20
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 32

    def opponent_loss(self, step: SelectorStep, mask: Tensor) -> Terms:
        """Losses of the opponent and of the selector on the unselected units."""
        logits = step.approximate(step.views.selectable.to(mask.dtype) - mask, "opponent")
        probs = step.views.probs
        complement = (1 - probs) / (probs.shape[-1] - 1)
        return {
            "opponent": self.opponent * self.fidelity(logits, probs),
            "infidelity": self.opponent * self.fidelity(logits, complement),
        }
