"""L2X, and the inputs, settings and losses that it shares with the other selectors (VIBI, AIL).

A selector chooses k units, and an approximator predicts the black box's output from them.  The method defines the
losses; the mitigation (mitigations.py) defines which network learns from which masks.

L2X: Chen et al. 2018 (arXiv:1802.07814), §3:   max over selector and approximator of   E Σ_c p_c log q_c(x ⊙ m)

With `conditioned` the selector is conditioned on p (Bai et al. 2021, §5.2; Liang et al. 2020).  The label can then leak
through the choice of units.

Differences from the paper: see core/maths/k_subset.py and text_networks.py.  Padding is not selected.  The
released code pads every text in front to 400 tokens and can select padding; `variant = released` does the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.core.maths import k_subset
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Removal, Terms
from steadygaze.models.probe_classifier import ProbeClassifier
from steadygaze.training.cuda_graphs import CapturedFunction

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InputBatch:
    """B inputs with D units each: the words of a text, the patches of an image."""

    x: Tensor  # texts: (B,T) ids, 0 on padding; images: (B,C,H,W)
    selectable: Tensor  # (B,D) bool: units that may be selected
    probs: Tensor  # (B,C) prediction of the black box for the whole input
    rows: Tensor  # (B,) number that seeds the random draws of an input
    owner: Tensor | None = None  # (B,T) the unit each token belongs to; None: tokens are units
    places: Tensor | None = None
    """(B,S) position among the T of each token of the black box, −1: truncated; None: S is T"""

    def spread(self, mask: Tensor) -> Tensor:
        """From units to tokens.  (B,D) -> (B,T)"""
        return mask if self.owner is None else mask.gather(-1, self.owner)

    def token_weights(self, weights: Tensor) -> Tensor:
        """Divide the weight of each unit equally among its tokens of the black box.  (B,D) -> (B,S)"""
        if self.places is not None:
            return weights.gather(-1, self.places.clamp_min(0)).masked_fill(self.places < 0, 0.0)
        if self.owner is None:
            return weights
        counts = torch.zeros_like(weights).scatter_add(-1, self.owner, torch.ones_like(weights))
        return self.spread(weights / counts.clamp_min(1))


class InputSplit(Protocol):
    """A split with predictions of the black box."""

    def __len__(self) -> int: ...

    @property
    def probs(self) -> Tensor:
        """(N,C)"""

    def shuffled(self, size: int, seed: tuple[int, ...]) -> Sequence[Rows]:
        """The batches of an epoch."""

    def once(self, size: int) -> Sequence[Rows]:
        """Batches with every input once."""

    def views(self, rows: Rows) -> InputBatch: ...


@runtime_checkable
class DeviceSplit(InputSplit, Protocol):
    """A split whose batches are gathered on the device, as a CUDA graph needs them."""

    def widths(self, rows: Rows) -> tuple[int, ...]:
        """Widths to which a batch is padded: few, so that there are few graphs."""

    def gather(self, rows: Tensor, widths: tuple[int, ...]) -> InputBatch:
        """Some rows, padded to these widths.  (B,)"""


class BatchFunction:
    """A function of a batch and a random key; as CUDA graphs where device and split support them."""

    gathering_devices: ClassVar[tuple[str, ...]] = ("cuda",)

    def __init__(
        self,
        split: InputSplit,
        device: torch.device,
        function: Callable[[InputBatch, RandomKey], Any],
        report: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`report` gets the reason if a capture fails."""
        self.split, self.function = split, function
        self.captured: CapturedFunction | None = None
        if device.type in self.gathering_devices and isinstance(split, DeviceSplit):
            self.widths = split.widths
            gather = split.gather

            def call(rows: Tensor, key: Tensor, widths: tuple[int, ...]) -> Any:
                return function(gather(rows, widths), RandomKey(key))

            self.captured = CapturedFunction(call, device, report)

    def __call__(self, rows: Rows, key: RandomKey) -> Any:
        if self.captured is None:
            return self.function(self.split.views(rows), key)
        return self.captured(torch.from_numpy(rows), torch.tensor(key.key), self.widths(rows))


MitigationName = Literal["none", "random-pretraining", "mask-neutral", "random-query"]


@settings
class SelectorConfig:
    """Settings of a selector."""

    mitigations: ClassVar[tuple[MitigationName, ...]] = ("none", "random-pretraining", "mask-neutral", "random-query")
    """Supported mitigations."""
    opposes: ClassVar[bool] = False
    """True if an opponent predicts from the unselected units."""
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)
    """Decay rates of Adam."""
    removal: ClassVar[Removal] = "delete"
    """How a word is removed when the selection is measured."""
    signature_settings: ClassVar[tuple[str, ...]] = ("conditioned", "mitigation", "approximator")
    """Settings that every measured row names."""

    k: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Number of selected words, or patches."""
    variant: Literal["paper", "released"] = "paper"
    """For texts: `released` can also select the padding in front of a text, as the released code does."""
    length: Annotated[int, Field(ge=1, le=512)] = 400
    """Tokens to which every text is padded or truncated at its front, for variant released."""
    conditioned: bool = False
    """True if the selector is conditioned on the prediction ŷ."""
    mitigation: MitigationName = "none"
    """Mitigation of label leakage through the mask."""
    approximator: Literal["simple", "cnn"] = "simple"
    """Network that predicts from the selected units."""
    temperature: Annotated[float, Field(gt=0, le=100)] = 0.5
    """τ: temperature of the relaxed selection in training."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 50
    """Size of a word vector."""
    hidden: Annotated[int, Field(ge=1, le=8192)] = 100
    """Width of the selector's hidden layers."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout rate of the selector."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 5
    """Epochs of the selector."""
    pretraining_epochs: Annotated[int, Field(ge=1, le=10_000)] = 5
    """Epochs of pretraining, for random-pretraining and random-query."""
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 40
    """Inputs per step."""
    optimizer: Literal["rmsprop", "adam"] = "rmsprop"
    """Optimizer; rmsprop has Keras' defaults."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-3
    """Learning rate."""
    clip: Annotated[float, Field(ge=1, le=1e12)] = 10.0
    """Weights are clipped to [1/clip, clip], for mask-neutral."""
    weight_averaging: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Decay of the exponential moving average of the weights; 0: no averaging."""

    def target(self, probs: Tensor) -> Tensor:
        """Target of the approximator.  (B,C) -> (B,C)"""
        return probs

    def fidelity(self, logits: Tensor, target: Tensor, weight: Tensor | float = 1.0) -> Tensor:
        """Cross-entropy, weighted by class.  (B,C) -> (B,)"""
        return -(weight * target * logits.log_softmax(-1)).sum(-1)

    def selection_cost(self, scores: Tensor, views: InputBatch) -> Tensor | None:
        """Additional loss of the selector.  (B,D) -> (B,)"""
        return None

    def opponent_loss(self, step: "SelectorStep", mask: Tensor) -> Terms:
        """Losses on the unselected units; none without an opponent."""
        return {}

    @property
    def padded_length(self) -> int:
        """Tokens to which every text is padded; 0: unchanged."""
        return self.length if self.variant == "released" else 0


@dataclass(frozen=True)
class SelectorStep:
    config: SelectorConfig
    networks: nn.ModuleDict
    views: InputBatch
    key: RandomKey
    prior: Tensor  # (C,) frequency of each predicted class

    def scores(self, query: Tensor | None = None) -> Tensor:
        """Scores of the selector, conditioned on `query` or the prediction.  (B,D)"""
        condition = (self.views.probs if query is None else query) if self.config.conditioned else None
        scores: Tensor = self.networks["selector"](self.views, condition)
        return scores

    def mask(self, scores: Tensor, stream: int = 0) -> Tensor:
        """Relaxed mask with gradients; each stream has its own noise.  (B,D)"""
        k, units = self.config.k, scores.shape[1]
        noise = self.key.child(stream).uniform(self.views.rows, units, k)
        return k_subset.relaxed_k_subset(scores, self.views.selectable, self.config.temperature, noise)

    def selection(self) -> Tensor:
        """Exactly k units, as at explanation time.  (B,D)"""
        return k_subset.top_k_subset(self.scores(), self.views.selectable, self.config.k)

    def approximate(self, mask: Tensor, net: str = "approximator") -> Tensor:
        """(B,D) -> (B,C)"""
        logits: Tensor = self.networks[net](self.views, mask)
        return logits

    def probe_log_probs(self, mask: Tensor) -> Tensor:
        """log P(y|m).  (B,D) -> (B,C)"""
        log_probs: Tensor = self.networks["probe"](mask)
        return log_probs

    def loss(self, mask: Tensor, scores: Tensor, weight: Tensor | float = 1.0) -> Terms:
        """Loss terms of the selector, and of the mask probe ("mask")."""
        target = self.config.target(self.views.probs)
        terms = {"prediction": self.config.fidelity(self.approximate(mask), target, weight)}
        if (brevity := self.config.selection_cost(scores, self.views)) is not None:
            terms["brevity"] = brevity
        return {**terms, "mask": -(target * self.probe_log_probs(mask)).sum(-1)}


def selector_steps(
    config: SelectorConfig, nets: nn.ModuleDict, inputs: InputSplit, batches: Iterable[Rows]
) -> Iterator[SelectorStep]:
    for rows in batches:
        yield SelectorStep(config, nets, inputs.views(rows), RandomKey(0), inputs.probs[0])


def selector_networks(
    config: SelectorConfig, selector: nn.Module, approximator: Callable[[], nn.Module], units: int, classes: int
) -> nn.ModuleDict:
    """Untrained networks of a method; `units`: units that the mask probe reads."""
    nets = {"selector": selector, "approximator": approximator(), "probe": ProbeClassifier(units, classes)}
    if config.opposes:
        nets["opponent"] = approximator()
    return nn.ModuleDict({**nets, "reader": approximator()})


@settings
class L2X(SelectorConfig):
    """Learning to explain: k units from which the prediction can be approximated."""
