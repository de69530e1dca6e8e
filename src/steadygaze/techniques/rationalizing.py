"""Selections that are drawn in training, and what they cost.

A selection is drawn from the generator's chances, so that others than the best are tried too:

    q  =  (1 − ε) π + ε u        ε `exploration`;  u: even over the units that the text has, and over no others

    sentences    one is drawn from q
    tokens       each by a coin of its own; u is the share that is wanted, or one half

The penalties are for tokens drawn one by one, n in a text:

    sparsity     | Σ z / n − share |                     how far the share is missed, on either side (papers: above)
    continuity   max(0, Σ |z_t − z_t+1| − 2 spans) / n   a piece has two ends

What all techniques share that train a generator to select and a predictor to read (rationaliser.py).

In training a selection is drawn (techniques/rationalizing.py); evaluation draws nothing.  Validation macro-F1 chooses
the
epoch.  But where models select as many tokens as they like the last is kept: macro-F1 is as good long before the
penalties have made a selection small.

Skewed (Yu et al. 2021, arXiv:2110.13880, §5.3): for the first `skewed` epochs the predictor learns from the first
sentence of each text alone, and the generator stays as it was drawn.  Whoever locks on that sentence afterwards is
interlocked.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from steadygaze.core.errors import UserError
from steadygaze.core.maths.ranking import top_k
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, non_default, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.rationalizer import GeneratorOutput, Granularity, Rationalizer, SelectionConfig
from steadygaze.techniques.technique import FILLED, LossContext, Player, Stage, Technique


@dataclass(frozen=True, slots=True)
class SampledSelection:
    units: Tensor  # (B,U) bool
    key: Tensor  # (B,) ln of the chance it had, exploration included; with a gradient
    noisy: Tensor  # (B,U) what was compared: ln q, or its odds, and noise


def sample_selection(looked: GeneratorOutput, batch: Batch, chance: RandomKey, exploration: float) -> SampledSelection:
    """One unit of each text, by the Gumbel trick; in a text without any, none."""
    many = looked.real.sum(-1, keepdim=True, dtype=looked.probability.dtype).clamp_min(1)
    chances = (1 - exploration) * looked.probability + exploration / many
    known = _log(chances).masked_fill(~looked.real, 0.0)
    noisy = known - _log(-_log(_uniform(chance, batch, known)))
    units = top_k(noisy.detach(), looked.real, 1)
    return SampledSelection(units, (known * units).sum(-1), noisy)


def sample_bernoulli(
    looked: GeneratorOutput, batch: Batch, chance: RandomKey, exploration: float, share: float | None
) -> SampledSelection:
    """Each token by a coin of its own; (1 − ε) p + ε · share."""
    chances = (1 - exploration) * looked.probability + exploration * (0.5 if share is None else share)
    drawn = _uniform(chance, batch, chances)
    heads, tails = _log(chances), _log(1 - chances)
    noisy = heads - tails - _log(drawn) + _log(1 - drawn)  # above 0 just where drawn < chances
    units = (drawn < chances) & looked.real
    told = torch.where(units, heads, tails).masked_fill(~looked.real, 0.0).sum(-1)
    return SampledSelection(units, told, noisy)


def straight_through(units: Tensor, soft: Tensor) -> Tensor:
    """What was selected, with the gradient of something softer: straight through.  (B,U), (B,U) -> (B,U)"""
    return units.to(soft.dtype) + (soft - soft.detach())  # what is added is exactly 0


def share_penalty(selection: Tensor, mask: Tensor, share: float | None) -> Tensor:
    """| Σ z / n − share |; None: Σ z / n.  0 of a text without words.  (B,T) -> (B,)"""
    size = mask.sum(-1)
    found = selection.masked_fill(~mask, 0.0).sum(-1) / size.clamp_min(1)
    return (found - (share or 0.0)).abs() * (size > 0)


def continuity_penalty(selection: Tensor, mask: Tensor, spans: int | None) -> Tensor:
    """Ends of pieces, less those allowed, for each token; a piece at an end of the text has one.  (B,T) -> (B,)"""
    both = mask[:, 1:] & mask[:, :-1]
    ends = selection.diff(dim=-1).abs().masked_fill(~both, 0.0).sum(-1)
    return (ends - 2 * (spans or 0)).clamp_min(0.0) / mask.sum(-1).clamp_min(1)


def _uniform(chance: RandomKey, batch: Batch, like: Tensor) -> Tensor:
    """In [0, 1), each text's its own.  (B,U)"""
    return chance.uniform(batch.index, like.shape[1], dtype=like.dtype)


def _log(values: Tensor) -> Tensor:
    """Of what was drawn as 0, or made so by rounding."""
    return values.clamp_min(torch.finfo(values.dtype).tiny).log()


GENERATOR, PREDICTOR = ("model.generator",), ("model.predictor",)
KEPT = 200
"""Batches whose mean cost is the baseline."""
BY_TOKENS = "share", "spans", "sparsity", "continuity"
IdleModules = tuple[bool, str, tuple[str, ...]]
"""Whether it is so; beside what; which settings do nothing then."""


@settings
class FirstSentence(Technique):
    """The stage that skews: the predictor reads the first sentence."""

    def loss(self, model: Rationalizer, batch: Batch, given: LossContext) -> Terms:
        return {"task": task_loss(model.read(batch, model.sentences(batch) == 0), batch)}


@settings
class RationalizingTechnique(Technique):
    """A generator selects, a predictor reads what is selected."""

    granularity: Granularity = "sentence"
    """What is selected: one sentence, or single tokens."""
    share: Annotated[float, Field(gt=0, le=1)] | None = 0.2
    """Share of a text's tokens that may be selected, at least one; None: those with a chance above one half."""
    spans: Annotated[int, Field(ge=1, le=10_000)] | None = 10
    """Pieces that selected tokens may lie in; None: anywhere."""
    sparsity: Annotated[float, Field(ge=0)] = 1.0
    """How much a share of tokens other than `share` costs, where each is drawn by a coin of its own."""
    continuity: Annotated[float, Field(ge=0)] = 1.0
    """How much more pieces than `spans` cost, where each token is drawn by a coin of its own."""
    exploration: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """How often a selection is drawn in training that the generator has no say in."""
    generator_learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Step size of the generator, except for a transformer in it; the predictor's is the run's."""
    skewed: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Epochs in which the predictor first learns from the first sentence alone, to see whether it gets stuck there."""

    kind: ClassVar[type[Rationalizer]] = Rationalizer

    @abstractmethod
    def selection_config(self) -> SelectionConfig:
        """What its models select, and which heads they have."""

    def build(
        self, encoder: Callable[[], Encoder], architecture: Architecture, classes: int, pair: bool, ends: Tensor
    ) -> Rationalizer:
        if (self.granularity == "sentence" or self.skewed) and not ends.any():
            raise UserError(
                "no token of the vocabulary ends a sentence (as . ! ? do), so that all of a text would be one: "
                "granularity=token selects words" + (", without skewed" if self.skewed else "")
            )
        return self.kind(encoder, architecture, classes, ends, self.selection_config())

    @property
    def has_free_size(self) -> bool:
        """Whether its models select as many tokens as they like."""
        way = self.selection_config()
        return way.granularity == "token" and way.share is None

    def stages(self, seed: int) -> tuple[Stage, ...]:
        train = Stage("train", select="last" if self.has_free_size else "best")
        if not self.skewed:
            return (train,)
        first = Stage("skewed", FirstSentence(), trains=PREDICTOR, epochs=self.skewed, select="last")
        return first, train

    def two_players(
        self, predictor: tuple[str, ...], generator: tuple[str, ...], turns: bool = False
    ) -> tuple[Player, ...]:
        """Who minimises which terms, both in every step, or in turns."""
        every = 2 if turns else 1
        return (
            Player("predictor", PREDICTOR, predictor, every),
            Player("generator", GENERATOR, generator, every, every - 1, self.generator_learning_rate),
        )

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        for name, usual in (("attention", "softmax"), ("decoder", "linear")):
            if (found := getattr(architecture, name)) != usual:
                return f"a rationaliser selects and has no such {name}: leave out {name}={found}"
        idle = {name: beside for here, beside, names in self.idle_modules() if here for name in names}
        for name, value in non_default(type(self), dataclasses.asdict(self)).items():
            if name in self.filled:
                return FILLED.format(name)
            if name in idle:
                return f"{name}={value} does nothing with {idle[name]}: leave it out"
        return None

    def idle_modules(self) -> list[IdleModules]:
        """Settings that do nothing in company of others, which would not be noticed."""
        return [
            (self.granularity == "sentence", "granularity=sentence (it is for granularity=token)", BY_TOKENS),
            (self.share is None and not self.continuity, "share=None and continuity=0", ("spans",)),
        ]

    @property
    def reads_pairs(self) -> bool:
        return False

    def penalties(self, selection: Tensor, mask: Tensor) -> Terms:
        """What a selection of tokens (B,T) costs, (B,) each; nothing where it cannot go wrong."""
        if self.granularity == "sentence":
            return {}
        return {
            "sparsity": self.sparsity * share_penalty(selection, mask, self.share),
            "continuity": self.continuity * continuity_penalty(selection, mask, self.spans),
        }


@settings
class RewardBaselineTechnique(RationalizingTechnique):
    """Its generator hears what a selection cost that was drawn, less what they cost of late."""

    costs: tuple[float, ...] = ()
    """The mean costs of the last batches, which the run fills in: there is nothing to set."""

    filled: ClassVar[tuple[str, ...]] = ("costs",)

    def after_step(self, terms: Terms) -> Self:
        if "cost" not in terms:
            return self
        return dataclasses.replace(self, costs=(*self.costs, float(terms["cost"].mean()))[-KEPT:])

    @property
    def baseline(self) -> float:
        """b; 0 before anything was drawn."""
        return sum(self.costs) / max(1, len(self.costs))

    def drawn(self, looked: GeneratorOutput, batch: Batch, given: LossContext) -> SampledSelection:
        if self.granularity == "sentence":
            return sample_selection(looked, batch, given.key, self.exploration)
        return sample_bernoulli(looked, batch, given.key, self.exploration, self.share)


def task_loss(logits: Tensor, batch: Batch) -> Tensor:
    """ℓ(y, f).  (B,)"""
    return cross_entropy(logits, batch.gold, reduction="none")
