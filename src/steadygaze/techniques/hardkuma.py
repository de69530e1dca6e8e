"""HardKuma: a gate for each token that can be exactly shut or exactly open, and still has a gradient.

Bastings, Aziz & Titov, "Interpretable Neural Predictions with Differentiable Binary Variables", ACL 2019
(arXiv:1905.08160), §4.

    z_t ~ HardKuma(a_t, b_t)       a, b = softplus of two scores of the token, in [1e-6, 100]: core/maths/kumaraswamy.py

    predictor    minimises  ℓ(y, f(z ⊙ x))
    generator    minimises  ℓ(y, f(z ⊙ x)) + length + breaks

Usually gates are led, from nearly all open to as many as are wanted.  Of a text of n tokens,

    length = 5 (E L0 − aim)²         aim = .9 in the first .4 of the steps, then in a line to `share`, there after .8
    breaks = 5 max(0, E lasso − max(`changes`, 2 / n))²      one piece, which has two ends, is always allowed

Where `sparsity` (λ0) or `continuity` (λ1) is a number the constraint is the paper's,

    length = λ0 · (E L0 − `share`)                         breaks = λ1 · (E lasso − `changes`)

The number is where λ starts, and 0 is off.  After each step of training, and never in evaluation,

    c ← ½ c + ½ (expectation − target)        λ ← λ · exp(.05 c),  kept in [1e-12, 5]

so that a constraint which is not met weighs more and more.  That wants many steps.  In few, the task has opened all
gates before λ weighs anything, and those that are sure have no gradient, not at λ = 5 either; or λ has shut them all
before anything was learnt, and goes on pushing: with a share of .2 it falls four times slower than it rose.

The gates of a text are independent, and all are made at once.  The gradient through z does not see one jump: what is
exactly shut leaves the predictor's maximum too (and a transformer's attention).

Evaluation draws nothing: a gate shows 0, 1 or its mean, whichever has most of the mass; selected is what is not 0, and
its probability P(z ≠ 0).  With `spans`, the best windows of `share` by that probability are selected instead.

The last epoch is kept: macro-F1 is best while all gates are still open.  Only with `spans` and a number for λ0 is every
epoch meant to select as much, and the best is kept.

Departs from the paper: leading is ours; its constraints all have multipliers.  Its gates on reviews are made one after
the other, each seeing what was drawn before.  The λ of the released code move in evaluation too, and its mean is that
of a gate neither stretched nor clipped.  As in all our rationalisers the predictor pools by the maximum, of states that
are weighted by z as its input is, and the generator has a step size of its own; theirs is one for all.
Pinned by tests/objective/test_hardkuma.py.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from steadygaze.core.maths import kumaraswamy
from steadygaze.core.maths.windows import exact_windows
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.models.attention_layers import SCORES
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.rationalizer import GeneratorOutput, Granularity, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import IdleModules, RationalizingTechnique, task_loss
from steadygaze.techniques.technique import LossContext, Player

LEAST, MOST = 1e-12, 5.0
"""Of a multiplier."""
RATE, KEEP = 0.05, 0.5
"""How fast multipliers move; what a moving average keeps of itself."""
PULL, OPEN = 10.0, 0.9
"""How hard gates are led; where they are held while the predictor learns to read: none is sure yet."""
LEAVE, ARRIVE = 0.4, 0.8
"""Share of the steps after which they are led on, and after which they are to be where they are wanted."""
EDGE = 1e-3
"""Numbers so near to 0 and 1 are not drawn: the gradient there is huge."""


@dataclasses.dataclass(frozen=True, slots=True)
class HardKumaGates(GeneratorOutput):
    a: Tensor  # (B,T)
    b: Tensor  # (B,T)


class HardKumaRationalizer(Rationalizer):
    """A rationaliser that scores each token twice."""

    def __init__(
        self,
        encoder: Callable[[], Encoder],
        architecture: Architecture,
        classes: int,
        ends: Tensor,
        way: SelectionConfig,
    ) -> None:
        super().__init__(encoder, architecture, classes, ends, way)
        self.generator.second = SCORES[architecture.score](self.predictor.encoder.size, False)

    def generate(self, batch: Batch, embedded: Tensor | None = None) -> HardKumaGates:
        looked = super().generate(batch, embedded)
        second: Tensor = self.generator.second(Encoded(looked.hidden))  # type: ignore[operator]
        a, b = _shape(looked.scores), _shape(second)
        chances = (1 - kumaraswamy.probability_zero(a, b)).masked_fill(~looked.real, 0.0)
        return HardKumaGates(looked.hidden, looked.numbers, looked.real, looked.scores, chances, a, b)

    def ranks(self, looked: GeneratorOutput) -> Tensor:
        assert isinstance(looked, HardKumaGates)
        return 1 - kumaraswamy.probability_zero(exact_windows(looked.a), exact_windows(looked.b))

    def select(self, batch: Batch, looked: GeneratorOutput) -> Tensor:
        """How far each gate is open where nothing is drawn.  (B,T) in [0, 1], or True and False"""
        if self.selection_config.share is not None or not isinstance(looked, HardKumaGates):
            return super().select(batch, looked)
        return kumaraswamy.choice(looked.a, looked.b).masked_fill(~looked.real, 0.0)


@settings
class HardKuma(RationalizingTechnique):
    """Each token has a gate that is shut, open or in between, and learns by its gradient (Bastings et al. 2019)."""

    granularity: Granularity = "token"
    """What is selected: single tokens."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Share of a text's tokens that is expected to be selected."""
    changes: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Changes from selected to not, or back, that are expected for each token."""
    spans: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Pieces that a selection may lie in, the best of them making up `share`; None: whatever the gates say."""
    sparsity: Annotated[float, Field(ge=0, le=MOST)] | None = None  # type: ignore[assignment]  # of others a number
    """None: gates are led to `share`.  A number is λ0 (paper: 1e-5), which training moves; 0 is off."""
    continuity: Annotated[float, Field(ge=0, le=MOST)] | None = None  # type: ignore[assignment]
    """None: more `changes` cost, but for one piece.  A number is λ1 (paper: 1e-5), which training moves; 0 is off."""
    exploration: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Always 0: gates are drawn from what they say."""
    generator_learning_rate: Annotated[float, Field(gt=0, le=10)] = 4e-4
    """Step size of the generator, except for a transformer in it; the predictor's is the run's."""
    averages: tuple[float, float] = (0.0, 0.0)
    """By how much both constraints were missed of late, which the run fills in: there is nothing to set."""

    kind: ClassVar[type[Rationalizer]] = HardKumaRationalizer
    filled: ClassVar[tuple[str, ...]] = ("averages",)

    def loss(self, model: HardKumaRationalizer, batch: Batch, given: LossContext) -> Terms:
        gates = model.generate(batch)
        drawn = given.key.uniform(batch.index, batch.ids.shape[1], dtype=gates.a.dtype)
        z = kumaraswamy.sample(gates.a, gates.b, EDGE + (1 - 2 * EDGE) * drawn)
        shown = kumaraswamy.probability_shown(gates.a, gates.b, batch.mask)
        changes = kumaraswamy.lasso(gates.a, gates.b, batch.mask)
        return {
            "task": task_loss(model.read(batch, z), batch),
            "sparsity": self._length(shown, given.progress),
            "continuity": self._breaks(changes, batch.mask),
            "shown": shown.detach(),  # to be watched, and for `next`: nobody minimises them
            "changes": changes.detach(),
        }

    def _length(self, shown: Tensor, progress: float) -> Tensor:
        if self.sparsity is not None:
            return self.sparsity * (shown - self.share)
        left = min(1.0, max(0.0, (ARRIVE - progress) / (ARRIVE - LEAVE)))
        aim = self.share + max(0.0, OPEN - self.share) * left
        return PULL / 2 * (shown - aim).square()

    def _breaks(self, changes: Tensor, mask: Tensor) -> Tensor:
        if self.continuity is not None:
            return self.continuity * (changes - self.changes)
        allowed = (2 / mask.sum(-1).clamp_min(1).to(changes.dtype)).clamp_min(self.changes)
        return PULL / 2 * (changes - allowed).clamp_min(0).square()

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(self.granularity, True, None if self.spans is None else self.share, self.spans)

    @property
    def has_free_size(self) -> bool:
        """Whether its models select as many tokens as they like, or are still led to how many that is."""
        return self.spans is None or self.sparsity is None

    def players(self) -> tuple[Player, ...]:
        return self.two_players(("task",), ("task", "sparsity", "continuity"))

    def after_step(self, terms: Terms) -> Self:
        shown, changes = torch.stack([terms["shown"].mean(), terms["changes"].mean()]).tolist()
        missed = (shown - self.share, changes - self.changes)
        if not all(map(math.isfinite, missed)):
            return self  # training went astray, which is said at the end of the epoch
        averages = tuple(KEEP * old + (1 - KEEP) * new for old, new in zip(self.averages, missed, strict=True))
        sparsity, continuity = map(_moved, (self.sparsity, self.continuity), averages)
        return dataclasses.replace(self, sparsity=sparsity, continuity=continuity, averages=averages)

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        shown = terms.get("shown", self.share)
        if self.spans is None or self.share / 2 <= shown <= 2 * self.share:
            return None
        return (
            f"in training the gates were open for {shown:.0%} of the words; with spans, share={self.share} of them are "
            "selected: the predictor has not learnt from such selections"
        )

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        if self.granularity != "token":
            return "hardkuma has a gate for each token: granularity=sentence is for rnp, three-player and a2r"
        return super().validate(architecture, classes)

    def idle_modules(self) -> list[IdleModules]:
        return [
            (True, "hardkuma, whose gates are drawn from what they say", ("exploration",)),
            (self.sparsity == 0 and self.spans is None, "sparsity=0 and spans=None", ("share",)),
            (self.continuity == 0, "continuity=0", ("changes",)),
        ]


def _shape(scores: Tensor) -> Tensor:
    """At least in single precision: the chances at its ends are small."""
    return softplus(scores.to(torch.promote_types(scores.dtype, torch.float32))).clamp(1e-6, 100.0)


def _moved(multiplier: float | None, missed: float) -> float | None:
    """None and 0 stay."""
    return min(MOST, max(LEAST, multiplier * math.exp(RATE * missed))) if multiplier else multiplier
