"""CXPlain: an ensemble learns the importance of each unit from the effects of removing it.

Schwab & Karlen 2019 (arXiv:1910.12336), §3; Ω as in removal_effects.py, A the network's softmax over units:

    each member minimizes    KL(Ω ‖ A(x))    on a bootstrap sample of the inputs
    explained by             the median of the members, with their quantiles

Nothing is selected during training, so no label can leak through a mask: no mitigation applies.  Each member keeps the
epoch with the lowest divergence on validation inputs.

Differences from the released code: the loss is that of the predicted label, not the true one.  The network is L2X's
selector.  A word is deleted, or replaced by padding.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadygaze.core.maths import distributions, k_subset
from steadygaze.core.random_key import derive_seed
from steadygaze.core.settings import Field, settings
from steadygaze.core.types import Batch, OnProgress, Removal, Terms, no_progress
from steadygaze.explainers.explainer import Explainer, Saliency
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.l2x import InputBatch, InputSplit, Rows
from steadygaze.explainers.learned.removal_effects import (
    INPUTS_PER_BATCH,
    RemovalEffects,
    per_word,
    removal_effects,
    text_removal,
)
from steadygaze.explainers.learned.text_inputs import TextInputs, TokenTable
from steadygaze.explainers.learned.text_networks import Selector, as_keras
from steadygaze.models.inference import Model, inference
from steadygaze.perturbations.word_removal import MAX_UNITS
from steadygaze.techniques.technique import Player, Stage
from steadygaze.training.progress import Watcher
from steadygaze.training.training_loop import StageLoop, StageState, training_session


@settings
class CXPlain:
    """Causal explanations: learned effect of removing each unit, with uncertainty."""

    padded_length: ClassVar[int] = 0
    signature_settings: ClassVar[tuple[str, ...]] = ()

    k: Annotated[int, Field(ge=1, le=100_000)] = 10
    """Number of words, or patches, in an explanation."""
    top_words: Literal["top-k", "all"] = "top-k"
    """Words with a weight: the k top-weighted (top-k), or all."""
    members: Annotated[int, Field(ge=1, le=1000)] = 5
    """Networks of the ensemble, each fitted to a bootstrap sample; a single one is fitted to all inputs."""
    interval_level: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Share of the members between the low and the high quantile."""
    removal: Removal = "delete"
    """How a word is removed: deleted, replaced by padding, or by a zero vector."""
    max_units: Annotated[int, Field(ge=1)] = MAX_UNITS
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
    config: CXPlain,
    model: Model,
    inputs: TextInputs,
    cache: AnswerCache | None = None,
    on_progress: OnProgress = no_progress,
) -> RemovalEffects:
    """Effect of removing each word on the prediction `inputs.probs`: one query per word.

    Above `max_units` words, segments of words are removed.
    """
    removing = text_removal(model, inputs.data, inputs.table, config.removal, config.max_units)
    effects = removal_effects(removing, inputs.probs, inputs.probs.argmax(-1), cache, on_progress)
    if inputs.data.text.lengths.max(initial=0) <= config.max_units:
        return effects
    words = np.zeros(len(inputs), np.int64)
    for rows in inputs.once(INPUTS_PER_BATCH):
        words[rows] = inputs.views(rows).selectable.sum(-1).cpu().numpy()
    if words.max() > config.max_units:
        warnings.warn(
            f"a text of {words.max():,} words is explained in at most {config.max_units:,} segments of consecutive "
            "words, which share their weight; raise max_units for single words",
            stacklevel=2,
        )
    return per_word(effects, words, config.max_units)


def members(config: CXPlain, make: Callable[[], nn.Module]) -> nn.ModuleDict:
    """Untrained networks of the ensemble, by name."""
    return nn.ModuleDict({f"member-{number}": make() for number in range(config.members)})


def text_member(config: CXPlain, words: int) -> Selector:
    return as_keras(Selector(words, 0, config.dimension, config.hidden, config.dropout))


def member_bounds(config: CXPlain, nets: nn.ModuleDict, views: InputBatch) -> Tensor:
    """Low quantile, median and high quantile of the members' weights.  (3,B,D) doubles"""
    with inference(nets):
        weights = torch.stack([distributions.softmax(net(views).double(), views.selectable) for net in nets.values()])
    ranked = weights.sort(0).values
    outside = (1 - config.interval_level) / 2
    quantiles = []
    for share in (outside, 0.5, 1 - outside):
        position = share * (len(ranked) - 1)
        lower = int(position)
        upper = min(lower + 1, len(ranked) - 1)
        quantiles.append(torch.lerp(ranked[lower], ranked[upper], position - lower))
    return torch.stack(quantiles)


class FittedCXPlain(Explainer):
    """Fitted CXPlain: the k top-weighted words by the members' median, or all words."""

    class_specific: ClassVar[bool] = False

    def __init__(self, config: CXPlain, nets: nn.ModuleDict, table: TokenTable) -> None:
        self.name, self.config, self.nets, self.table = "cxplain", config, nets, table
        self.selects_words = config.top_words == "top-k"

    def explain(
        self, model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
    ) -> Saliency:
        with inference(model):
            logits: Tensor = model(batch).logits
        views = self._views(batch)
        low, middle, high = member_bounds(self.config, self.nets, views)
        middle = middle.clamp_min(torch.finfo(torch.float64).tiny)  # a shown unit has a weight above 0
        highlighted = (
            k_subset.top_k_subset(middle, views.selectable, self.config.k)
            if self.config.top_words == "top-k"
            else views.selectable
        )
        return Saliency(
            views.token_weights(middle * highlighted) * batch.mask,
            logits,
            (views.token_weights(low), views.token_weights(high)),
        )

    def bounds(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Low and high quantile of the members for every word, shown or not.  (B,T), (B,T)"""
        views = self._views(batch)
        low, _, high = (views.token_weights(bound) for bound in member_bounds(self.config, self.nets, views))
        return low, high

    def _views(self, batch: Batch) -> InputBatch:
        return self.table.views(batch, torch.empty(len(batch), 0))  # the members are not conditioned on the prediction


@dataclass(frozen=True)
class EffectTargets:
    inputs: InputSplit
    effects: RemovalEffects

    def loss(self, config: CXPlain, net: nn.Module, rows: Rows) -> Tensor:
        """KL(Ω ‖ A) of these inputs.  (B,)"""
        views = self.inputs.views(rows)
        scores: Tensor = net(views)
        effects = self.effects.shares(rows, views.selectable, config.epsilon).to(scores.dtype)
        lowest = torch.finfo(scores.dtype).min  # not −∞: 0 · −∞ is NaN
        return distributions.kl_logits(effects, scores.masked_fill(~views.selectable, lowest))


class MemberLoop(StageLoop):
    """Trains a member of the ensemble on its bootstrap sample."""

    def __init__(self, fit: "Ensemble", net: nn.Module, number: int) -> None:
        self.fit, self.number, self.counts = fit, number, fit.bootstrap_counts(number)
        parameters, config = list(net.parameters()), fit.config
        state = StageState(
            networks=net,
            parameters_by_player={"all": parameters},
            optimizer=torch.optim.Adam(parameters, config.learning_rate, foreach=True),
            history=fit.history,
        )
        stage = Stage(f"member {number + 1}", epochs=config.epochs)
        super().__init__(stage, state, fit.watcher, len(fit.train.inputs), patience=config.patience)

    def batches(self) -> Iterator[Rows]:
        seed = self.fit.seed, self.number, self.state.epoch
        for rows in self.fit.train.inputs.shuffled(self.fit.config.batch_size, seed):
            if len(sampled := rows[self.counts[rows] > 0]):
                yield sampled

    def train_step(self, rows: Rows) -> Terms:
        times = torch.from_numpy(self.counts[rows]).to(self.fit.device)
        terms = {"divergence": self.fit.train.loss(self.fit.config, self.state.networks, rows) * times}
        self.update(terms, times)
        return terms

    @staticmethod
    def total(terms: Terms, player: Player, weight: Tensor | None) -> Tensor:
        assert weight is not None
        return terms["divergence"].sum() / weight.sum()

    def validate(self) -> dict[str, Any]:
        value = self.finite("validation", mean_divergence(self.fit.config, self.state.networks, self.fit.validation))
        self.state.keep_if_best(-value)
        return {"divergence": value}


@dataclass
class Ensemble:
    config: CXPlain
    make: Callable[[], nn.ModuleDict]
    """Creates untrained members, views -> (B,D); torch's generator is seeded before the call."""
    train: EffectTargets
    validation: EffectTargets
    watcher: Watcher
    device: torch.device
    seed: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)

    def execute(self) -> nn.ModuleDict:
        """The members, in evaluation mode."""
        config, steps = self.config, -(-len(self.train.inputs) // self.config.batch_size)
        with training_session(self.watcher, config.members, config.members * config.epochs, steps):
            torch.manual_seed(derive_seed(self.seed))
            nets = self.make().to(self.device)
            for number, net in enumerate(nets.values()):
                torch.manual_seed(derive_seed(self.seed, number))
                MemberLoop(self, net, number).execute()
        return nets.eval().requires_grad_(False)

    def bootstrap_counts(self, number: int) -> NDArray[np.int64]:
        """How often each input is in the member's bootstrap sample.  (N,)"""
        size = len(self.train.inputs)
        if self.config.members == 1:
            return np.ones(size, np.int64)
        generator = np.random.default_rng((self.seed, number))
        return np.bincount(generator.integers(size, size=size), minlength=size)


def mean_divergence(config: CXPlain, net: nn.Module, targets: EffectTargets) -> float:
    """The mean of KL(Ω ‖ A) over a split, in nats."""
    with inference(net):
        parts = [targets.loss(config, net, rows).double().sum() for rows in targets.inputs.once(config.batch_size * 8)]
    return float(torch.stack(parts).sum()) / len(targets.inputs)
