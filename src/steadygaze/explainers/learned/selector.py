"""What selectors and approximators see: inputs, whatever they are, and what the black box says of them.

What L2X, VIBI and AIL have in common: a selector chooses k units, an approximator guesses from them what the black
box says of the whole, and both learn from how wrong it is.

A method says what is lost (`fidelity`, `brevity`), a technique (remedy/) who learns from which masks.

L2X: the k units from which the prediction can best be guessed.

Chen et al. 2018 (arXiv:1802.07814), §3:   max over selector and approximator of   E Σ_c p_c log q_c(x ⊙ m)

With `query` the selector is told p as well (Bai et al. 2021, §5.2; Liang et al. 2020): then it may say the label in
code, by which units it takes, and the approximator learns to read it.  docs/explainers.md shows what that does.

Departs from the paper: as models/k_subset.py and text_nets.py say; padding is never selected, where the released code
pads every text in front to 400 tokens and lets padding be selected (`variant = released` does so too).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Terms
from steadygaze.models import k_subset

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InputBatch:
    """B inputs, of D units that can be selected: the words of a text, the patches of an image."""

    x: Tensor  # texts: (B,T) ids, 0 on padding; images: (B,C,H,W)
    able: Tensor  # (B,D) bool: units that may be selected
    probs: Tensor  # (B,C) what the black box says of the whole
    rows: Tensor  # (B,) whatever is drawn for an input is drawn from this number
    owner: Tensor | None = None  # (B,T) the unit each token belongs to; None: tokens are units
    places: Tensor | None = None  # (B,S) the black box's tokens among the T, −1: cut off; None: S is T

    def spread(self, mask: Tensor) -> Tensor:
        """From units to tokens.  (B,D) -> (B,T)"""
        return mask if self.owner is None else mask.gather(-1, self.owner)

    def dealt(self, weights: Tensor) -> Tensor:
        """To the black box's tokens, those of a unit sharing what it has evenly.  (B,D) -> (B,S)"""
        if self.places is not None:
            return weights.gather(-1, self.places.clamp_min(0)).masked_fill(self.places < 0, 0.0)
        if self.owner is None:
            return weights
        many = torch.zeros_like(weights).scatter_add(-1, self.owner, torch.ones_like(weights))
        return self.spread(weights / many.clamp_min(1))


class InputSplit(Protocol):
    """A split, put to the black box once."""

    def __len__(self) -> int: ...

    @property
    def probs(self) -> Tensor:
        """(N,C)"""

    def shuffled(self, size: int, seed: tuple[int, ...]) -> Sequence[Rows]:
        """The batches of an epoch."""

    def once(self, size: int) -> Sequence[Rows]:
        """Batches in which every input is read once."""

    def views(self, rows: Rows) -> InputBatch: ...


Technique = Literal["plain", "random-pretraining", "mask-neutral", "random-query"]


@settings
class SelectorConfig:
    """How a selector is fitted."""

    techniques: ClassVar[tuple[Technique, ...]] = ("plain", "random-pretraining", "mask-neutral", "random-query")
    """Those that can be applied to it."""
    opposes: ClassVar[bool] = False
    """Whether an opponent guesses from what is not selected."""
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)
    """What Adam remembers."""

    k: Annotated[int, Field(ge=1, le=100_000)] = 10
    """How many words, or patches, are selected."""
    variant: Literal["paper", "released"] = "paper"
    """Of texts: whether only words can be selected, or also the padding in front of a text, as in the released code."""
    length: Annotated[int, Field(ge=1, le=512)] = 400
    """Tokens that every text is padded or cut to at its front, for variant released."""
    query: bool = False
    """Whether the selector is told what the black box says: ŷ."""
    technique: Technique = "plain"
    """How the label is kept from travelling in the mask."""
    approximator: Literal["simple", "cnn"] = "simple"
    """Who guesses from what is selected."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.5
    """τ: how soft the choice is while it is learnt."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 50
    """Size of a word vector."""
    hidden: Annotated[int, Field(ge=1, le=8192)] = 100
    """Units of the selector's layers."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """In the selector."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 5
    """Times the inputs are read while the selector learns."""
    pretraining_epochs: Annotated[int, Field(ge=1, le=10_000)] = 5
    """Times they are read before, with random masks or shuffled labels, for the techniques that begin so."""
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 40
    """Inputs in a step."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """Which steps are taken; rmsprop forgets a tenth a step, as Keras' does."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-3
    """Their size."""
    clip: Annotated[float, Field(ge=1, le=1e12)] = 10.0
    """How many times as much, or as little, as another an input may count, for mask-neutral."""
    weight_averaging: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """How much of the running average of the weights, which is what is kept, is old in each step; 0: none is."""

    def target(self, probs: Tensor) -> Tensor:
        """What is to be guessed, of what the black box says.  (B,C) -> (B,C)"""
        return probs

    def fidelity(self, logits: Tensor, target: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy: how wrong the guess is, each class counting as much as it weighs.  (B,C) -> (B,)"""
        return -(weight * target * logits.log_softmax(-1)).sum(-1)

    def selection_cost(self, scores: Tensor, views: InputBatch) -> Tensor | None:
        """What else the selector is to keep small.  (B,D) -> (B,)"""
        return None


@dataclass(frozen=True)
class SelectorStep:
    """One batch and who is there to learn from it."""

    config: SelectorConfig
    networks: nn.ModuleDict
    views: InputBatch
    key: RandomKey
    prior: Tensor  # (C,) how often the black box says each class

    def scores(self, query: Tensor | None = None) -> Tensor:
        """What the selector gives each unit, told `query` or what the black box says.  (B,D)"""
        told = (self.views.probs if query is None else query) if self.config.query else None
        scores: Tensor = self.networks["selector"](self.views, told)
        return scores

    def mask(self, scores: Tensor, stream: int = 0) -> Tensor:
        """Relaxed, so that it has slopes; other noise for each stream.  (B,D)"""
        many, units = self.config.k, scores.shape[1]
        drawn = self.key.child(stream).uniform(self.views.rows, units, many)
        return k_subset.relaxed_k_subset(scores, self.views.able, many, self.config.temperature, drawn)

    def chosen(self) -> Tensor:
        """Exactly k units, as at explanation time.  (B,D)"""
        return k_subset.top_k_subset(self.scores(), self.views.able, self.config.k)

    def approximate(self, mask: Tensor, net: str = "approximator") -> Tensor:
        """(B,D) -> (B,C)"""
        logits: Tensor = self.networks[net](self.views, mask)
        return logits

    def probe_loss(self, mask: Tensor) -> Tensor:
        """log P(y|m).  (B,D) -> (B,C)"""
        known: Tensor = self.networks["judge"](mask)
        return known

    def loss(self, mask: Tensor, scores: Tensor, weight: Tensor | float = 1.0) -> Terms:
        """What the selector minimises, and what the judge does."""
        target = self.config.target(self.views.probs)
        terms = {"prediction": self.config.fidelity(self.approximate(mask), target, weight)}
        if (brevity := self.config.selection_cost(scores, self.views)) is not None:
            terms["brevity"] = brevity
        return {**terms, "mask": -(target * self.probe_loss(mask)).sum(-1)}


def selector_steps(
    how: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, batches: Iterable[Rows]
) -> Iterator[SelectorStep]:
    """For networks that learn nothing from them."""
    for rows in batches:
        yield SelectorStep(how, nets, inputs.views(rows), RandomKey(0), inputs.probs[0])


def one_hot(probs: Tensor) -> Tensor:
    """The label instead of the probabilities.  (B,C) -> (B,C)"""
    return torch.zeros_like(probs).scatter(-1, probs.argmax(-1, keepdim=True), 1.0)


@settings
class L2X(SelectorConfig):
    """Learning to explain: k units from which the prediction can be guessed."""
