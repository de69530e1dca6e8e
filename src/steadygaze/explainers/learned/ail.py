"""AIL: from what is selected the prediction can be guessed, and from the rest it cannot.

Liang, Bai, Cao, Bai & Wang, "Adversarial infidelity learning for model interpretation", KDD 2020 (arXiv:2006.05379):

    approximator and opponent minimise    CE(p, q_s(x ⊙ m)) + c CE(p, q_u(x ⊙ (1−m)))
    the selector minimises                CE(p, q_s(x ⊙ m)) + c CE(p̄, q_u(x ⊙ (1−m)))

    p̄ = (1−p) / (C−1): every class but the one that is said

The selector is told p.

Departs from the released code: all move at the same point, one pass for both, where it takes turns within a batch; the
text recipe is used for images too, whose mask there is made of scores; no warm start from gradients, which a black box
has not (and which the released text recipe switches off).
"""

from typing import Annotated, ClassVar, Literal

from torch import Tensor

from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Terms
from steadygaze.explainers.learned.selector import SelectorConfig, SelectorStep, Technique


@settings
class Ail(SelectorConfig):
    """Adversarial infidelity: the rest must not tell what is predicted."""

    techniques: ClassVar[tuple[Technique, ...]] = ("plain",)
    opposes: ClassVar[bool] = True

    opponent: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """c: how much it counts that the rest says nothing."""
    query: bool = True
    approximator: Literal["simple", "cnn"] = "cnn"
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 20
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 32

    def opponent_loss(self, round_: SelectorStep, mask: Tensor) -> Terms:
        """What the opponent minimises, and what the selector does about it."""
        logits = round_.approximate(round_.views.able.to(mask.dtype) - mask, "opponent")
        probs = round_.views.probs
        other = (1 - probs) / (probs.shape[-1] - 1)
        return {
            "opponent": self.opponent * self.fidelity(logits, probs),
            "infidelity": self.opponent * self.fidelity(logits, other),
        }
