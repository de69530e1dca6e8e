"""What all techniques share that train a generator to select and a predictor to read (rationaliser.py).

In training a selection is drawn (objective/drawing.py); evaluation draws nothing.  Validation macro-F1 chooses the
epoch.  But where models select as many tokens as they like the last is kept: macro-F1 is as good long before the
penalties have made a selection small.

Skewed (Yu et al. 2021, arXiv:2110.13880, §5.3): for the first `skewed` epochs the predictor learns from the first
sentence of each text alone, and the generator stays as it was drawn.  Whoever locks on that sentence afterwards is
interlocked.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar, Self

from torch import Tensor
from torch.nn.functional import cross_entropy

from steadygaze.config import Field, changed, settings
from steadygaze.encode.encoder import Encoder
from steadygaze.errors import UserError
from steadygaze.model import Architecture
from steadygaze.objective.drawing import Drawn, broken, draw, missed, toss
from steadygaze.objective.technique import FILLED, Given, Player, Stage, Technique
from steadygaze.rationaliser import Granularity, Looked, Rationaliser, Way
from steadygaze.types import Batch, Terms

GENERATOR, PREDICTOR = ("model.generator",), ("model.predictor",)
KEPT = 200
"""Batches whose mean cost is the baseline."""
BY_TOKENS = "share", "spans", "sparsity", "continuity"
Idle = tuple[bool, str, tuple[str, ...]]
"""Whether it is so; beside what; which settings do nothing then."""


@settings
class FirstSentence(Technique):
    """The stage that skews: the predictor reads the first sentence."""

    def loss(self, model: Rationaliser, batch: Batch, given: Given) -> Terms:
        return {"task": lost(model.read(batch, model.sentences(batch) == 0), batch)}


@settings
class Rationalising(Technique):
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

    kind: ClassVar[type[Rationaliser]] = Rationaliser

    @abstractmethod
    def way(self) -> Way:
        """What its models select, and which heads they have."""

    def build(
        self, encoder: Callable[[], Encoder], architecture: Architecture, classes: int, pair: bool, ends: Tensor
    ) -> Rationaliser:
        if (self.granularity == "sentence" or self.skewed) and not ends.any():
            raise UserError(
                "no token of the vocabulary ends a sentence (as . ! ? do), so that all of a text would be one: "
                "granularity=token selects words" + (", without skewed" if self.skewed else "")
            )
        return self.kind(encoder, architecture, classes, ends, self.way())

    @property
    def free(self) -> bool:
        """Whether its models select as many tokens as they like."""
        way = self.way()
        return way.granularity == "token" and way.share is None

    def stages(self, seed: int) -> tuple[Stage, ...]:
        train = Stage("train", select="last" if self.free else "best")
        if not self.skewed:
            return (train,)
        first = Stage("skewed", FirstSentence(), trains=PREDICTOR, epochs=self.skewed, select="last")
        return first, train

    def two(self, predictor: tuple[str, ...], generator: tuple[str, ...], turns: bool = False) -> tuple[Player, ...]:
        """Who minimises which terms, both in every step, or in turns."""
        every = 2 if turns else 1
        return (
            Player("predictor", PREDICTOR, predictor, every),
            Player("generator", GENERATOR, generator, every, every - 1, self.generator_learning_rate),
        )

    def objection(self, architecture: Architecture, classes: int) -> str | None:
        for name, usual in (("attention", "softmax"), ("decoder", "linear")):
            if (found := getattr(architecture, name)) != usual:
                return f"a rationaliser selects and has no such {name}: leave out {name}={found}"
        idle = {name: beside for here, beside, names in self.idle() if here for name in names}
        for name, value in changed(type(self), dataclasses.asdict(self)).items():
            if name in self.filled:
                return FILLED.format(name)
            if name in idle:
                return f"{name}={value} does nothing with {idle[name]}: leave it out"
        return None

    def idle(self) -> list[Idle]:
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
            "sparsity": self.sparsity * missed(selection, mask, self.share),
            "continuity": self.continuity * broken(selection, mask, self.spans),
        }


@settings
class Rewarded(Rationalising):
    """Its generator hears what a selection cost that was drawn, less what they cost of late."""

    costs: tuple[float, ...] = ()
    """The mean costs of the last batches, which the run fills in: there is nothing to set."""

    filled: ClassVar[tuple[str, ...]] = ("costs",)

    def next(self, terms: Terms) -> Self:
        if "cost" not in terms:
            return self
        return dataclasses.replace(self, costs=(*self.costs, float(terms["cost"].mean()))[-KEPT:])

    @property
    def baseline(self) -> float:
        """b; 0 before anything was drawn."""
        return sum(self.costs) / max(1, len(self.costs))

    def drawn(self, looked: Looked, batch: Batch, given: Given) -> Drawn:
        if self.granularity == "sentence":
            return draw(looked, batch, given.chance, self.exploration)
        return toss(looked, batch, given.chance, self.exploration, self.share)


def lost(logits: Tensor, batch: Batch) -> Tensor:
    """ℓ(y, f).  (B,)"""
    return cross_entropy(logits, batch.gold, reduction="none")
