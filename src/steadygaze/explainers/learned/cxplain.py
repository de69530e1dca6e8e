"""CXPlain: an ensemble learns the importance of each unit from the effects of removing it.

Schwab & Karlen 2019 (arXiv:1910.12336), §3; Ω as in removal_effects.py, A the network's softmax over units:

    each member minimizes    KL(Ω ‖ A(x))    on a bootstrap sample of the inputs
    explained by             the median of the members, with their quantiles

Nothing is selected during training, so no label can leak through a mask: no technique applies.  Each member keeps the
epoch with the lowest divergence on validation inputs.

Differences from the released code: the loss is that of the predicted label, not the true one.  The network is L2X's
selector.  A word is deleted, or replaced by padding.
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
from steadygaze.techniques.perturbations.word_removal import MOST_UNITS, Removal
from steadygaze.training.progress import Watcher


@settings
class CXPlain:
    """Causal explanations: learned effect of removing each unit, with uncertainty."""

    k: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Number of words, or patches, in an explanation."""
    top_words: Literal["heaviest", "all"] = "heaviest"
    """Words with a weight: the k top-weighted (heaviest), or all."""
    members: Annotated[int, Field(ge=1, le=1000)] = 5
    """Networks of the ensemble, each fitted to a bootstrap sample; a single one is fitted to all inputs."""
    interval_level: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Share of the members between the low and the high quantile."""
    removal: Removal = "delete"
    """How a word is removed: deleted, replaced by padding, or by a zero vector."""
    max_units: Annotated[int, Field(ge=1)] = MOST_UNITS
    """Words that are removed one by one; in a text of more, segments of consecutive words."""
    epsilon: Annotated[float, Field(gt=0, le=1)] = 1e-6
    """ε: smallest effect of a unit, in nats."""
    dimension: Annotated[int, Field(ge=1, le=4096)] = 50
    """Size of a word vector."""
    hidden: Annotated[int, Field(ge=1, le=8192)] = 100
    """Units of the layers."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout rate of the network."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Most epochs of a member."""
    patience: Annotated[int, Field(ge=1, le=10_000)] = 12
    """Epochs without improvement after which training of a member stops."""
    batch_size: Annotated[int, Field(ge=2, le=65_536)] = 64
    """Inputs per step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Learning rate of Adam."""


def text_effects(
    how: CXPlain, model: Model, inputs: TextInputs, kept: AnswerCache | None = None, watch: Watch = silent
) -> RemovalEffects:
    """Effect of removing each word on the prediction `inputs.probs`: one query per word.

    Above `max_units` words, segments of words are removed.
    """
    removing = text_removal(model, inputs.data, inputs.table, how.removal, how.max_units)
    effects = removal_effects(removing, inputs.probs, inputs.probs.argmax(-1), kept, watch)
    if np.diff(inputs.data.text.starts).max(initial=0) <= how.max_units:
        return effects
    words = np.zeros(len(inputs), np.int64)
    for rows in inputs.once(TOGETHER):
        words[rows] = inputs.views(rows).able.sum(-1).cpu().numpy()
    if words.max() > how.max_units:
        warnings.warn(
            f"a text of {words.max():,} words is explained in at most {how.max_units:,} segments of consecutive "
            "words, which share their weight; raise max_units for single words",
            stacklevel=2,
        )
    return per_word(effects, words, how.max_units)


def members(how: CXPlain, make: Callable[[], nn.Module]) -> nn.ModuleDict:
    """Untrained networks of the ensemble, by name."""
    return nn.ModuleDict({f"member-{number}": make() for number in range(how.members)})


def text_member(how: CXPlain, words: int) -> Selector:
    """An untrained network for texts."""
    return as_keras(Selector(words, 0, how.dimension, how.hidden, how.dropout))


def member_bounds(how: CXPlain, nets: nn.ModuleDict, views: InputBatch) -> Tensor:
    """Low quantile, median and high quantile of the members' weights.  (3,B,D) doubles"""
    with inference(nets):
        weights = torch.stack([masked.softmax(net(views).double(), views.able) for net in nets.values()])
    ranked = weights.sort(0).values
    outside = (1 - how.interval_level) / 2
    quantiles = []
    for share in (outside, 0.5, 1 - outside):
        position = share * (len(ranked) - 1)
        below = int(position)
        above = min(below + 1, len(ranked) - 1)
        quantiles.append(torch.lerp(ranked[below], ranked[above], position - below))
    return torch.stack(quantiles)


class FittedCXPlain(Explainer):
    """Fitted CXPlain: the k top-weighted words by the members' median, or all words."""

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
        middle = middle.clamp_min(torch.finfo(torch.float64).tiny)  # a shown unit has a weight above 0
        shown = (
            k_subset.top_k_subset(middle, views.able, self.how.k) if self.how.top_words == "heaviest" else views.able
        )
        return Saliency(views.dealt(middle * shown) * batch.mask, logits, (views.dealt(low), views.dealt(high)))

    def bounds(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Low and high quantile of the members for every word, shown or not.  (B,T), (B,T)"""
        views = self._views(batch)
        low, _, high = (views.dealt(bound) for bound in member_bounds(self.how, self.nets, views))
        return low, high

    def _views(self, batch: Batch) -> InputBatch:
        return self.table.views(batch, torch.empty(len(batch), 0))  # the members are not conditioned on the prediction


@dataclass(frozen=True)
class EffectTargets:
    """Inputs and the removal effects of their units."""

    inputs: InputSplit
    effects: RemovalEffects

    def loss(self, how: CXPlain, net: nn.Module, rows: Rows) -> Tensor:
        """KL(Ω ‖ A) of these inputs.  (B,)"""
        views = self.inputs.views(rows)
        scores: Tensor = net(views)
        effects = self.effects.shares(rows, views.able, how.epsilon).to(scores.dtype)
        lowest = torch.finfo(scores.dtype).min  # not −∞: 0 · −∞ is NaN
        return divergence.kl_logits(effects, scores.masked_fill(~views.able, lowest))


@dataclass
class Ensemble:
    config: CXPlain
    make: Callable[[], nn.Module]
    """Creates an untrained network, views -> (B,D); torch's generator is seeded before the call."""
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
        optimizer = torch.optim.Adam(net.parameters(), self.config.learning_rate, foreach=True)
        counts, name = self._bootstrap_counts(number), f"member {number + 1}"
        best, best_epoch, weights = float("inf"), 0, net.state_dict()
        for epoch in range(self.config.epochs):
            training = self._epoch(net, optimizer, counts, (number, epoch))
            validation = mean_divergence(self.config, net, self.validation)
            record = {"stage": name, "epoch": epoch + 1, "terms": {"divergence": training}, "divergence": validation}
            self.history.append(record)
            self.watcher.epoch(record)
            if validation < best:
                best, best_epoch = validation, epoch
                weights = {key: value.detach().clone() for key, value in net.state_dict().items()}
            if epoch - best_epoch >= self.config.patience:
                self.watcher.skip(self.config.epochs - epoch - 1)
                break
        net.load_state_dict(weights)

    def _epoch(
        self, net: nn.Module, optimizer: torch.optim.Optimizer, counts: NDArray[np.int64], when: tuple[int, int]
    ) -> float:
        """The mean divergence during the epoch."""
        net.train()
        total = torch.zeros((), device=self.device)
        for rows in self.train.inputs.shuffled(self.config.batch_size, (self.seed, *when)):
            rows = rows[counts[rows] > 0]
            if not len(rows):
                continue
            times = torch.from_numpy(counts[rows]).to(self.device)
            loss = self.train.loss(self.config, net, rows)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward((loss * times).sum() / times.sum())
            optimizer.step()
            total += (loss.detach() * times).sum()
            self.watcher.step(f"member {when[0] + 1}", when[1], {"divergence": loss.detach()})
        return _finite(float(total) / max(1, int(counts.sum())))

    def _bootstrap_counts(self, number: int) -> NDArray[np.int64]:
        """How often each input is in the member's bootstrap sample.  (N,)"""
        many = len(self.train.inputs)
        if self.config.members == 1:
            return np.ones(many, np.int64)
        chance = np.random.default_rng((self.seed, number))
        return np.bincount(chance.integers(many, size=many), minlength=many)

    @property
    def _steps(self) -> int:
        return -(-len(self.train.inputs) // self.config.batch_size)


def mean_divergence(how: CXPlain, net: nn.Module, targets: EffectTargets) -> float:
    """The mean of KL(Ω ‖ A) over a split, in nats."""
    with inference(net):
        parts = [targets.loss(how, net, rows).double().sum() for rows in targets.inputs.once(how.batch_size * 8)]
    return _finite(float(torch.stack(parts).sum()) / len(targets.inputs))


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise UserError("training diverged: the loss is NaN or infinite; use a smaller learning_rate")
    return value
