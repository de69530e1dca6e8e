"""Models of known truth: rules on the words of a world, and what is known about their explanations.

A rule reads the ids of a text and which of them are there, and returns one score per class.  Words that no rule reads
change nothing, so that exact Shapley values enumerate the relevant words alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.types import Batch
from steadygaze.models.inference import Model
from studies.oracles.worlds import World

Rule = Callable[[World, Tensor, Tensor], Tensor]
"""World, ids (B,T), those that are there (B,T) bool -> scores (B,C)"""
REACH = 3
"""Words that a negation turns around."""
CHUNK = 1 << 22
"""Tokens × classes in memory."""


@dataclass(frozen=True)
class Truth:
    """What is true of an exact explanation of the model."""

    stable: bool = True
    """Whether substitutes leave its weights where they are."""
    matters: bool = True
    """Whether the prediction depends on the words."""
    consistent: bool = True
    """Whether models of other seeds have the same explanations."""
    plausible: bool = True
    """Whether it marks the words that speak for the label."""


@dataclass(frozen=True)
class ModelKind:
    """A model of an oracle world."""

    rule: Rule
    truth: Truth = Truth()
    sharpness: float = 2.0
    """Factor of the scores."""
    bias: float = 0.0
    """Added to the score of the first class."""
    reads_chatter: bool = False
    """Whether the prediction depends on the words that are spurious."""


def evidence(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """How strongly each word speaks for each class.  (B,T,C)"""
    classes = one_hot(world.polarity[ids].clamp_min(0), world.classes).double()
    return classes * (world.strength[ids] * (world.polarity[ids] >= 0) * kept).unsqueeze(-1)


def counts(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Number of words that speak for each class.  (B,C)"""
    return (evidence(world, ids, kept) > 0).double().sum(1)


def linear(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return evidence(world, ids, kept).sum(1)


def saturated(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return 2 * torch.tanh(linear(world, ids, kept))


def strongest(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return evidence(world, ids, kept).amax(1)


def one_word(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """The first class if any word speaks for it, else the second."""
    return _first_if(counts(world, ids, kept)[:, 0] >= 1, world)


def two_words(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """The first class if at least two words speak for it, else the second."""
    return _first_if(counts(world, ids, kept)[:, 0] >= 2, world)


def _first_if(first: Tensor, world: World) -> Tensor:
    scores = torch.zeros(len(first), world.classes, dtype=torch.float64)
    scores[:, 0], scores[:, 1] = first.double(), (~first).double()
    return 2 * scores


def parity(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return _first_if(counts(world, ids, kept).sum(-1) % 2 == 1, world)


def majority(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    number = counts(world, ids, kept)
    return 2 * (number == number.amax(-1, keepdim=True)).double()


def negated(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """A negation moves the evidence of the next words to the next class."""
    place = kept.long().cumsum(-1)
    last = torch.where(world.negation[ids] & kept, place, -100).cummax(-1).values
    turned = ((place - last) <= REACH) & (place > last)
    given = evidence(world, ids, kept)
    return torch.where(turned.unsqueeze(-1), given.roll(1, -1), given).sum(1)


def gated(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Each gate makes one half of the informative words count, as ale and wine do with their adjectives."""
    gate = torch.where(kept, world.gate[ids], -1).amax(-1, keepdim=True)
    counted = kept & ((gate < 0) | (world.half[ids] == gate))
    return linear(world, ids, counted)


def first_of(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Only the first informative word counts."""
    informative = kept & (world.polarity[ids] >= 0)
    return linear(world, ids, informative & (informative.long().cumsum(-1) == 1))


def last_of(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Only the last informative word counts."""
    informative = kept & (world.polarity[ids] >= 0)
    after = informative.long().flip(-1).cumsum(-1).flip(-1)
    return linear(world, ids, informative & (after == 1))


def first_half(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Words of the first half of the text count three times as much."""
    place, number = kept.long().cumsum(-1), kept.sum(-1, keepdim=True)
    return (evidence(world, ids, kept) * torch.where(2 * place <= number, 1.5, 0.5).unsqueeze(-1)).sum(1)


def flipped_synonyms(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Every other word of a synonym group speaks for the next class."""
    given = evidence(world, ids, kept)
    return torch.where((world.group[ids] % 2 == 1).unsqueeze(-1), given.roll(1, -1), given).sum(1)


def uneven_synonyms(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Words of a group differ in strength: 0.4, 0.8, 1.2 and 1.6 times."""
    return (evidence(world, ids, kept) * (0.4 * (1 + world.group[ids])).unsqueeze(-1)).sum(1)


def half_of_words(part: int) -> Rule:
    """Only one half of the informative groups counts."""
    return lambda world, ids, kept: linear(world, ids, kept & (world.half[ids] == part))


def mean(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return 12 * linear(world, ids, kept) / kept.sum(-1, keepdim=True).clamp_min(1)


def square_root(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return 1.5 * linear(world, ids, kept).sqrt()


def squared(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return 0.5 * linear(world, ids, kept) ** 2


def gate_alone(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """The gate word decides, whatever the others say."""
    return _first_if(((world.gate[ids] == 0) & kept).any(-1), world)


def chatter(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    """Informative words count little; spurious words of chatter speak for the first two classes."""
    scores = 0.2 * linear(world, ids, kept)
    for part in range(2):
        scores[:, part] += (kept & spurious(world, part)[ids]).double().sum(-1)
    return scores


def spurious(world: World, part: int) -> Tensor:
    """(V,) bool: one in 16 groups of chatter, which speak for the first class, or another one, for the second."""
    return world.filler % 16 == 3 + 8 * part


def constant(world: World, ids: Tensor, kept: Tensor) -> Tensor:
    return 1e-4 * linear(world, ids, kept)


STEADY = Truth()
MODELS: dict[str, ModelKind] = {
    "linear": ModelKind(linear),
    "linear, weak": ModelKind(linear, sharpness=0.3),
    "linear, sharp": ModelKind(linear, sharpness=10.0),
    "linear, biased": ModelKind(linear, bias=-1.0),
    "mean": ModelKind(mean),
    "square root": ModelKind(square_root),
    "squared": ModelKind(squared),
    "saturated": ModelKind(saturated),
    "strongest word": ModelKind(strongest),
    "majority": ModelKind(majority),
    "one word": ModelKind(one_word),
    "two words": ModelKind(two_words),
    "parity": ModelKind(parity, Truth(plausible=False)),
    "negation": ModelKind(negated),
    "gated": ModelKind(gated),
    "gate alone": ModelKind(gate_alone, Truth(plausible=False)),
    "first informative": ModelKind(first_of),
    "last informative": ModelKind(last_of),
    "first half": ModelKind(first_half),
    "flipped synonyms": ModelKind(flipped_synonyms, Truth(stable=False, plausible=False)),
    "uneven synonyms": ModelKind(uneven_synonyms),
    "half of the words": ModelKind(half_of_words(0), Truth(consistent=False)),
    "chatter": ModelKind(chatter, Truth(plausible=False), reads_chatter=True),
    "constant": ModelKind(constant, Truth(matters=False)),
}


class OracleModel(Model):
    """A rule as a model that only predicts."""

    def __init__(self, world: World, kind: ModelKind) -> None:
        super().__init__()
        self.world, self.kind = world, kind
        self.relevant = world.relevant | ((spurious(world, 0) | spurious(world, 1)) & kind.reads_chatter)

    def read(self, ids: Tensor, kept: Tensor) -> Tensor:
        """Logits of texts of which only some words are there.  (B,T), (B,T) -> (B,C)"""
        rows = max(1, CHUNK // (ids.shape[1] * self.world.classes))
        starts = range(0, len(ids), rows)
        return torch.cat([self._read(ids[start : start + rows], kept[start : start + rows]) for start in starts])

    def _read(self, ids: Tensor, kept: Tensor) -> Tensor:
        scores = self.kind.sharpness * self.kind.rule(self.world, ids, kept)
        scores[:, 0] += self.kind.bias
        return scores

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> Any:
        return Output(self.read(batch.ids, batch.mask))


@dataclass(frozen=True)
class Output:
    logits: Tensor
    weights: Tensor | None = None


def adapter(world: World, name: str, seed: int = 0) -> ModelAdapter:
    """The model; seed 1 and above: a model of another seed."""
    kind = MODELS[name]
    if seed and name == "half of the words":
        kind = replace(kind, rule=half_of_words(seed % 2))
    elif seed:
        kind = replace(kind, sharpness=kind.sharpness * (1 + 0.05 * seed))
    classes = [f"class{i}" for i in range(world.classes)]
    model = OracleModel(world, kind)
    return ModelAdapter(f"{name} {seed}", "oracle", model, world.tokens, classes, False, f"{name}{seed}")
