"""HardKuma: a differentiable gate for each token that can be exactly 0 or exactly 1.

Bastings, Aziz & Titov, "Interpretable Neural Predictions with Differentiable Binary Variables", ACL 2019
(arXiv:1905.08160), §4.

Equation
--------
    z_t ~ HardKuma(a_t, b_t)       a, b = softplus of two scores of the token, in [1e-6, 100]: core/maths/kumaraswamy.py

    predictor    minimizes  ℓ(y, f(z ⊙ x))
    generator    minimizes  ℓ(y, f(z ⊙ x)) + length + breaks

By default, the target share of open gates falls from nearly all to `share`.  For a text of n tokens,

    length = 5 (E L0 − target)²      target = 0.9 until 0.4 of the steps, then linear to `share` at 0.8 of the steps
    breaks = 5 max(0, E lasso − max(`changes`, 2 / n))²      one piece, which has two ends, is always allowed

A number for `sparsity` (λ0) or `continuity` (λ1) selects the paper's constraint,

    length = λ0 · (E L0 − `share`)                         breaks = λ1 · (E lasso − `changes`)

The number is the initial λ, and 0 turns it off.  After each training step, and never in evaluation,

    c ← ½ c + ½ (expectation − target)        λ ← λ · exp(0.05 c),  clipped to [1e-12, 5]

so that the weight of a violated constraint grows.  This needs many steps.  With few steps, the task opens all gates
before λ has an effect, and saturated gates have no gradient even at λ = 5.  Or λ closes all gates before the predictor
has learned, and stays high: with a share of 0.2, λ falls four times slower than it rises.

The gates of a text are independent and computed at once.  The gradient through z misses one discontinuity: a gate at
exactly 0 also removes the token from the predictor's maximum (and from a transformer's attention).

Evaluation is deterministic: a gate is 0, 1 or its mean, whichever has the most probability.  Tokens with a gate above 0
are selected, with probability P(z ≠ 0).  With `spans`, the top windows of `share` by that probability are selected.

The last epoch is selected, because macro-F1 is best while all gates are still open.  Only with `spans` and a number for
λ0 do all epochs select equally many tokens; then the best epoch is selected.

Cost
----
As `rnp`: two encoders, one pass each.

When to use
-----------
If words are selected and every gate should have a gradient.  Sentences are not supported.

Departs from the paper
----------------------
The falling target is ours; all constraints of the paper have multipliers.  Its gates on reviews are computed one after
the other, conditioned on the earlier samples.  The released code updates λ in evaluation too, and its mean is that of
a gate neither stretched nor clipped.  As in all our rationalizers, the predictor max-pools states that are weighted by
z like its input.  The generator has its own learning rate; the paper has one for all.

Tested by tests/techniques/test_hardkuma.py.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import softplus

from steadygaze.core.maths import kumaraswamy
from steadygaze.core.maths.rationale_windows import highest_precision
from steadygaze.core.rounding import percent
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, Encoded, Terms
from steadygaze.models.attention_layers import SCORES
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.models.rationalizer import GeneratorOutput, Granularity, Rationalizer, SelectionConfig
from steadygaze.techniques.rationalizing import JointTechnique, UnusedSettings
from steadygaze.techniques.technique import LossContext, Player, task_loss

MIN_MULTIPLIER, MAX_MULTIPLIER = 1e-12, 5.0
"""Bounds of a multiplier."""
RATE, KEEP = 0.05, 0.5
"""Learning rate of the multipliers; decay of the moving average."""
PULL, OPEN = 10.0, 0.9
"""Weight of the default penalties; target share of open gates at the start, when no gate is saturated."""
LEAVE, ARRIVE = 0.4, 0.8
"""Share of the steps at which the target starts to fall, and at which it reaches `share`."""
EDGE = 1e-3
"""Samples closer to 0 or 1 are excluded: their gradient is huge."""


@dataclasses.dataclass(frozen=True, slots=True)
class HardKumaGates(GeneratorOutput):
    a: Tensor  # (B,T)
    b: Tensor  # (B,T)


class HardKumaRationalizer(Rationalizer):
    """A rationalizer with two scores for each token."""

    def __init__(self, encoder: Callable[[], Encoder], architecture: Architecture, *parts: Any) -> None:
        super().__init__(encoder, architecture, *parts)
        self.generator.second = SCORES[architecture.score](self.predictor.encoder.size, False)

    def generate(self, batch: Batch, embedded: Tensor | None = None) -> HardKumaGates:
        output = super().generate(batch, embedded)
        second: Tensor = self.generator.second(Encoded(output.hidden))  # type: ignore[operator]
        a, b = _shape(output.scores), _shape(second)
        chances = (1 - kumaraswamy.probability_zero(a, b)).masked_fill(~output.real, 0.0)
        return HardKumaGates(output.hidden, output.numbers, output.real, output.scores, chances, a, b)

    def ranks(self, output: GeneratorOutput) -> Tensor:
        assert isinstance(output, HardKumaGates)
        return 1 - kumaraswamy.probability_zero(highest_precision(output.a), highest_precision(output.b))

    def select(self, batch: Batch, output: GeneratorOutput) -> Tensor:
        """Return the gates without sampling.  (B,T) in [0, 1], or bool"""
        if self.selection_config.share is not None or not isinstance(output, HardKumaGates):
            return super().select(batch, output)
        return kumaraswamy.choice(output.a, output.b).masked_fill(~output.real, 0.0)


@settings
class HardKuma(JointTechnique):
    """A differentiable gate for each token selects the rationale (Bastings et al. 2019)."""

    granularity: Granularity = "token"
    """Unit of selection: single tokens."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Expected share of selected tokens in a text."""
    changes: Annotated[float, Field(ge=0, le=1)] = 0.02
    """Expected transitions between selected and not selected, per token."""
    spans: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Maximum number of contiguous pieces, which cover `share`; None: the gates alone select."""
    sparsity: Annotated[float, Field(ge=0, le=MAX_MULTIPLIER)] | None = None  # type: ignore[assignment]
    """None: a penalty with a falling target leads to `share`.  A number: initial λ0 (paper: 1e-5); 0: off."""
    continuity: Annotated[float, Field(ge=0, le=MAX_MULTIPLIER)] | None = None  # type: ignore[assignment]
    """None: penalty on more `changes`, beyond one piece.  A number: initial λ1 (paper: 1e-5); 0: off."""
    exploration: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Always 0: gates are sampled from their own distribution."""
    generator_learning_rate: Annotated[float, Field(gt=0, le=10)] = 4e-4
    """Learning rate of the generator, except for a transformer in it."""
    averages: tuple[float, float] = (0.0, 0.0)
    """Moving averages of the two constraint violations; set by training, not by the user."""

    kind: ClassVar[type[Rationalizer]] = HardKumaRationalizer
    filled: ClassVar[tuple[str, ...]] = ("averages",)

    def loss(self, model: HardKumaRationalizer, batch: Batch, context: LossContext) -> Terms:
        gates = model.generate(batch)
        noise = context.key.uniform(batch.index, batch.ids.shape[1], dtype=gates.a.dtype)
        z = kumaraswamy.sample(gates.a, gates.b, EDGE + (1 - 2 * EDGE) * noise)
        selected = kumaraswamy.probability_shown(gates.a, gates.b, batch.mask)
        changes = kumaraswamy.lasso(gates.a, gates.b, batch.mask)
        return {
            "task": task_loss(model.read(batch, z), batch),
            "sparsity": self._length_penalty(selected, context.progress),
            "continuity": self._breaks_penalty(changes, batch.mask),
            "shown": selected.detach(),  # for the log and `after_step`; no player minimizes them
            "changes": changes.detach(),
        }

    def _length_penalty(self, selected: Tensor, progress: float) -> Tensor:
        if self.sparsity is not None:
            return self.sparsity * (selected - self.share)
        left = min(1.0, max(0.0, (ARRIVE - progress) / (ARRIVE - LEAVE)))
        aim = self.share + max(0.0, OPEN - self.share) * left
        return PULL / 2 * (selected - aim).square()

    def _breaks_penalty(self, changes: Tensor, mask: Tensor) -> Tensor:
        if self.continuity is not None:
            return self.continuity * (changes - self.changes)
        tolerance = (2 / mask.sum(-1).clamp_min(1).to(changes.dtype)).clamp_min(self.changes)
        return PULL / 2 * (changes - tolerance).clamp_min(0).square()

    def selection_config(self) -> SelectionConfig:
        return SelectionConfig(self.granularity, True, None if self.spans is None else self.share, self.spans)

    @property
    def has_free_size(self) -> bool:
        """True if the number of selected tokens is free, or its target still falls."""
        return self.spans is None or self.sparsity is None

    def players(self) -> tuple[Player, ...]:
        return self.two_players(("task",), ("task", "sparsity", "continuity"))

    def after_step(self, terms: Terms) -> Self:
        selected, changes = torch.stack([terms["shown"].mean(), terms["changes"].mean()]).tolist()
        violations = (selected - self.share, changes - self.changes)
        if not all(map(math.isfinite, violations)):
            return self  # training diverged; the loop reports it at the end of the epoch
        averages = tuple(KEEP * old + (1 - KEEP) * new for old, new in zip(self.averages, violations, strict=True))
        sparsity, continuity = map(_update_multiplier, (self.sparsity, self.continuity), averages)
        return dataclasses.replace(self, sparsity=sparsity, continuity=continuity, averages=averages)

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        selected = terms.get("shown", self.share)
        if self.spans is None or self.share / 2 <= selected <= 2 * self.share:
            return None
        return (
            f"the gates were open for {percent(selected)} of the words in training, but with spans, share={self.share} "
            "of them are selected: the predictor was not trained on such selections"
        )

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        if self.granularity != "token":
            return "hardkuma selects tokens only: use rnp, three-player or a2r for granularity=sentence"
        return super().validate(architecture, classes)

    def unused_settings(self) -> list[UnusedSettings]:
        return [
            (True, "hardkuma, which samples the gates from their own distribution", ("exploration",)),
            (self.sparsity == 0 and self.spans is None, "sparsity=0 and spans=None", ("share",)),
            (self.continuity == 0, "continuity=0", ("changes",)),
        ]


def _shape(scores: Tensor) -> Tensor:
    """Return the shape parameters in at least single precision: the probabilities of 0 and 1 are small."""
    return softplus(scores.to(torch.promote_types(scores.dtype, torch.float32))).clamp(1e-6, 100.0)


def _update_multiplier(multiplier: float | None, violations: float) -> float | None:
    """Return the updated multiplier; None and 0 do not change."""
    return (
        min(MAX_MULTIPLIER, max(MIN_MULTIPLIER, multiplier * math.exp(RATE * violations))) if multiplier else multiplier
    )
