"""CXPlain: a network learns how much each unit matters, from what its absence costs; several say how sure that is.

Schwab & Karlen 2019 (arXiv:1910.12336), §3; Ω as effects.py has it, A the network's softmax over units:

    each member minimises    KL(Ω ‖ A(x))    on inputs drawn with replacement
    explained by             the median of the members, between their quantiles

Nothing is selected while it learns, so that no label can travel in a mask: no technique applies.

Departs from the released code: the loss is that of the label the black box gives, which is what is explained, and not
of the true one; the network is L2X's selector; a word is deleted, or its id becomes that of padding; an epoch in which
validation inputs do best is kept for each member.

Fitting CXPlain: members one after the other, each to the worth of units of inputs drawn with replacement.

An input that is drawn twice counts twice; one that is not drawn is not read.  Of each member the epoch is kept whose
divergence from the worth of validation units is least.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.core.errors import UserError
from steadygaze.core.maths import divergence, masked
from steadygaze.core.random_key import derive_seed, forked_generators
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.black_box_queries import Watch, silent
from steadygaze.explainers.learned.removal_effects import (
    TOGETHER,
    Removal,
    RemovalEffects,
    per_word,
    removal_effects,
    text_removal,
)
from steadygaze.explainers.learned.selector import InputBatch, InputSplit, Rows
from steadygaze.explainers.learned.text_inputs import Seeing, TextInputs
from steadygaze.explainers.learned.text_networks import Selector, as_keras
from steadygaze.models import k_subset
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import MOST_UNITS
from steadygaze.training.progress import Watcher


@settings
class CXPlain:
    """Causal explanations: what the prediction loses without each unit, learnt; with how sure that is."""

    k: Annotated[int, Field(ge=1, le=100_000)] = 10
    """How many words, or patches, are shown."""
    top_words: Literal["heaviest", "all"] = "heaviest"
    """Which have a weight: the k heaviest, or all."""
    members: Annotated[int, Field(ge=1, le=1000)] = 5
    """Networks that learn, each from inputs drawn anew; one alone learns from all inputs as they are."""
    interval_level: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Share of the members between the low quantile and the high one."""
    removal: Removal = "delete"
    """How a word is taken out: the text closes up, or padding takes its place."""
    max_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words of a text that are taken out one by one; in a text of more, segments of consecutive words."""
    epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-6
    """ε: what a unit without which nothing is lost is worth, in nats."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 50
    """Size of a word vector."""
    hidden: Annotated[int, Field(ge=1, le=8192)] = 100
    """Units of the layers."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """In the network."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Times the inputs are read, at most."""
    patience: Annotated[int, Field(ge=1, le=10_000)] = 12
    """Epochs without a better one after which a member is done."""
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 64
    """Inputs in a step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Size of Adam's steps."""


def text_effects(
    how: CXPlain, model: Model, inputs: TextInputs, kept: AnswerCache | None = None, watch: Watch = silent
) -> RemovalEffects:
    """What each word is worth to a black box that has said `inputs.probs`: as many questions as there are words.

    A text of n words is read n times, n² words in all; above `max_units` words a segment is taken out at once.
    """
    removing = text_removal(model, inputs.data, inputs.table, how.removal, how.max_units)
    found = removal_effects(removing, inputs.probs, inputs.probs.argmax(-1), kept, watch)
    if np.diff(inputs.data.text.starts).max(initial=0) <= how.max_units:
        return found
    words = np.zeros(len(inputs), np.int64)
    for rows in inputs.once(TOGETHER):
        words[rows] = inputs.views(rows).able.sum(-1).cpu().numpy()
    if words.max() > how.max_units:
        warnings.warn(
            f"a text of {words.max():,} words is explained in at most {how.max_units:,} segments of consecutive "
            "words, which share their weight; raise max_units for single words",
            stacklevel=2,
        )
    return per_word(found, words, how.max_units)


def members(how: CXPlain, make: Callable[[], nn.Module]) -> nn.ModuleDict:
    """As many fresh networks, by name."""
    return nn.ModuleDict({f"member-{number}": make() for number in range(how.members)})


def text_member(how: CXPlain, words: int) -> Selector:
    """A fresh network for texts."""
    return as_keras(Selector(words, 0, how.dimension, how.hidden, how.dropout))


def member_bounds(how: CXPlain, nets: nn.ModuleDict, views: InputBatch) -> Tensor:
    """Low quantile, median and high quantile of what the members give each unit.  (3,B,D) doubles"""
    with inference(nets):
        given = torch.stack([masked.softmax(net(views).double(), views.able) for net in nets.values()])
    ranked = given.sort(0).values
    outside = (1 - how.interval_level) / 2
    found = []
    for share in (outside, 0.5, 1 - outside):
        place = share * (len(ranked) - 1)
        below = int(place)
        above = min(below + 1, len(ranked) - 1)
        found.append(torch.lerp(ranked[below], ranked[above], place - below))
    return torch.stack(found)


class FittedCXPlain(Explainer):
    """Fitted CXPlain: the k heaviest words by the members' median, or all of them."""

    class_specific: ClassVar[bool] = False

    def __init__(self, how: CXPlain, nets: nn.ModuleDict, table: Seeing) -> None:
        self.name, self.how, self.nets, self.table = "cxplain", how, nets, table
        self.selects_words = how.top_words == "heaviest"

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits: Tensor = model(batch).logits
        views = self._views(batch)
        low, middle, high = member_bounds(self.how, self.nets, views)
        middle = middle.clamp_min(torch.finfo(torch.float64).tiny)  # shown is shown
        shown = (
            k_subset.top_k_subset(middle, views.able, self.how.k) if self.how.top_words == "heaviest" else views.able
        )
        return Saliency(views.dealt(middle * shown) * batch.mask, logits, (views.dealt(low), views.dealt(high)))

    def bounds(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Between which most members are, of every word, shown or not.  (B,T), (B,T)"""
        views = self._views(batch)
        low, _, high = (views.dealt(one) for one in member_bounds(self.how, self.nets, views))
        return low, high

    def _views(self, batch: Batch) -> InputBatch:
        return self.table.views(batch, torch.empty(len(batch), 0))  # the members are not told what the black box says


@dataclass(frozen=True)
class EffectTargets:
    """Inputs, and what their units are worth."""

    inputs: InputSplit
    effects: RemovalEffects

    def loss(self, how: CXPlain, net: nn.Module, rows: Rows) -> Tensor:
        """KL(Ω ‖ A) of these inputs.  (B,)"""
        views = self.inputs.views(rows)
        scores: Tensor = net(views)
        worth = self.effects.shares(rows, views.able, how.epsilon).to(scores.dtype)
        lowest = torch.finfo(scores.dtype).min  # not −∞, of which 0 times as much is not a number
        return divergence.kl_logits(worth, scores.masked_fill(~views.able, lowest))


@dataclass
class Ensemble:
    config: CXPlain
    make: Callable[[], nn.Module]
    """Draws a fresh network, views -> (B,D), from torch's own generator, which is seeded before the call."""
    train: EffectTargets
    validation: EffectTargets
    watcher: Watcher
    device: torch.device
    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def execute(self) -> nn.ModuleDict:
        """The members, in evaluation mode."""
        self.watcher.start(self.config.members, self.config.members * self.config.epochs, self._steps)
        try:
            with forked_generators():
                torch.manual_seed(derive_seed(self.seed))
                nets = members(self.config, self.make).to(self.device)
                for number, net in enumerate(nets.values()):
                    torch.manual_seed(derive_seed(self.seed, number))
                    self._member(number, net)
            return nets.eval().requires_grad_(False)
        finally:
            self.watcher.stop()

    def _member(self, number: int, net: nn.Module) -> None:
        optimiser = torch.optim.Adam(net.parameters(), self.config.learning_rate, foreach=True)
        drawn, name = self._drawn(number), f"member {number + 1}"
        best, at, weights = float("inf"), 0, net.state_dict()
        for epoch in range(self.config.epochs):
            learnt = self._epoch(net, optimiser, drawn, (number, epoch))
            left = mean_divergence(self.config, net, self.validation)
            record = {"stage": name, "epoch": epoch + 1, "terms": {"divergence": learnt}, "divergence": left}
            self.history.append(record)
            self.watcher.epoch(record)
            if left < best:
                best, at = left, epoch
                weights = {key: value.detach().clone() for key, value in net.state_dict().items()}
            if epoch - at >= self.config.patience:
                self.watcher.skip(self.config.epochs - epoch - 1)
                break
        net.load_state_dict(weights)

    def _epoch(
        self, net: nn.Module, optimiser: torch.optim.Optimizer, drawn: NDArray[np.int64], when: tuple[int, int]
    ) -> float:
        """The mean divergence on the way."""
        net.train()
        total = torch.zeros((), device=self.device)
        for rows in self.train.inputs.shuffled(self.config.batch_size, (self.seed, *when)):
            rows = rows[drawn[rows] > 0]
            if not len(rows):
                continue
            times = torch.from_numpy(drawn[rows]).to(self.device)
            lost = self.train.loss(self.config, net, rows)
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward((lost * times).sum() / times.sum())
            optimiser.step()
            total += (lost.detach() * times).sum()
            self.watcher.step(f"member {when[0] + 1}", when[1], {"divergence": lost.detach()})
        return _finite(float(total) / max(1, int(drawn.sum())))

    def _drawn(self, number: int) -> NDArray[np.int64]:
        """How often this member reads each input.  (N,)"""
        many = len(self.train.inputs)
        if self.config.members == 1:
            return np.ones(many, np.int64)
        chance = np.random.default_rng((self.seed, number))
        return np.bincount(chance.integers(many, size=many), minlength=many)

    @property
    def _steps(self) -> int:
        return -(-len(self.train.inputs) // self.config.batch_size)


def mean_divergence(how: CXPlain, net: nn.Module, weighed: EffectTargets) -> float:
    """The mean of KL(Ω ‖ A) over a split, in nats."""
    with inference(net):
        parts = [weighed.loss(how, net, rows).double().sum() for rows in weighed.inputs.once(how.batch_size * 8)]
    return _finite(float(torch.stack(parts).sum()) / len(weighed.inputs))


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise UserError("the loss is not a number any more: a smaller learning_rate is needed")
    return value
