"""Base classes of the rationalizing techniques: sampled selections, penalties, the reward baseline.

A generator selects and a predictor reads the selection (models/rationalizer.py).  In training the selection is sampled,
so that the generator also explores selections other than the best:

    q  =  (1 − ε) π + ε u        ε `exploration`;  u: uniform over the units of the text

    sentences    one is sampled from q
    tokens       independent Bernoulli samples; u is `share`, or one half

The penalties apply to independently sampled tokens, n in a text:

    sparsity     | Σ z / n − share |                     deviation from the share in both directions (papers: above)
    continuity   max(0, Σ |z_t − z_t+1| − 2 spans) / n   a piece has two ends

Evaluation is deterministic.  Validation macro-F1 selects the epoch.  The last epoch is selected if the number of tokens
is free: macro-F1 is as good long before the penalties have made a selection small.

Asymmetric learning rates (DR: Liu et al., "Decoupled Rationalization with Asymmetric Learning Rates", KDD 2023,
arXiv:2305.13599): a predictor that learns faster than the generator overfits to poor selections.  A lower
`predictor_learning_rate` restrains its Lipschitz constant.  Departs from the paper: no ratio of the two rates is
enforced.  The defaults are those of A2R's code, in which the predictor is faster.

Skewed (Yu et al. 2021, arXiv:2110.13880, §5.3): the predictor is trained on the first sentence of each text for
`skewed` epochs, with a frozen generator.  With a shared encoder (FR), only the generator's scoring layer is frozen,
because the encoder belongs to the predictor.  A generator that then keeps selecting that sentence is interlocked.
"""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import torch
from torch import Tensor

from steadygaze.core.maths.distributions import top_k
from steadygaze.core.maths.sentence_ends import can_end
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import Field, non_default, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.models.rationalizer import GeneratorOutput, Granularity, Rationalizer, SelectionConfig
from steadygaze.techniques.technique import FILLED, LossContext, Player, Stage, Technique, task_loss


@dataclass(frozen=True, slots=True)
class SampledSelection:
    units: Tensor  # (B,U) bool
    log_prob: Tensor  # (B,) of the sample, exploration included; with a gradient
    noisy: Tensor  # (B,U) ln q, or its log-odds, plus noise


def sample_selection(output: GeneratorOutput, batch: Batch, key: RandomKey, exploration: float) -> SampledSelection:
    """Sample one unit of each text with the Gumbel-max trick; none in a text without units."""
    units_per_text = output.real.sum(-1, keepdim=True, dtype=output.probability.dtype).clamp_min(1)
    probabilities = (1 - exploration) * output.probability + exploration / units_per_text
    log_probs = _log(probabilities).masked_fill(~output.real, 0.0)
    noisy = log_probs - _log(-_log(_uniform(key, batch, log_probs)))
    units = top_k(noisy.detach(), output.real, 1)
    return SampledSelection(units, (log_probs * units).sum(-1), noisy)


def sample_bernoulli(
    output: GeneratorOutput, batch: Batch, key: RandomKey, exploration: float, share: float | None
) -> SampledSelection:
    """Sample each token independently with probability (1 − ε) p + ε · share."""
    probabilities = (1 - exploration) * output.probability + exploration * (0.5 if share is None else share)
    noise = _uniform(key, batch, probabilities)
    log_p, log_not_p = _log(probabilities), _log(1 - probabilities)
    noisy = log_p - log_not_p - _log(noise) + _log(1 - noise)  # above 0 if and only if noise < q
    units = (noise < probabilities) & output.real
    log_prob = torch.where(units, log_p, log_not_p).masked_fill(~output.real, 0.0).sum(-1)
    return SampledSelection(units, log_prob, noisy)


def straight_through(units: Tensor, soft: Tensor) -> Tensor:
    """Return the selection with the gradient of `soft` (straight-through estimator).  (B,U), (B,U) -> (B,U)"""
    return units.to(soft.dtype) + (soft - soft.detach())  # the second term is exactly 0


def share_penalty(selection: Tensor, mask: Tensor, share: float | None) -> Tensor:
    """Return | Σ z / n − share |; None: Σ z / n.  0 for a text without words.  (B,T) -> (B,)"""
    size = mask.sum(-1)
    selected_share = selection.masked_fill(~mask, 0.0).sum(-1) / size.clamp_min(1)
    return (selected_share - (share or 0.0)).abs() * (size > 0)


def continuity_penalty(selection: Tensor, mask: Tensor, spans: int | None) -> Tensor:
    """Return the excess ends of pieces per token; a piece at an end of the text has one end.  (B,T) -> (B,)"""
    adjacent = mask[:, 1:] & mask[:, :-1]
    ends = selection.diff(dim=-1).abs().masked_fill(~adjacent, 0.0).sum(-1)
    return (ends - 2 * (spans or 0)).clamp_min(0.0) / mask.sum(-1).clamp_min(1)


def _uniform(key: RandomKey, batch: Batch, units: Tensor) -> Tensor:
    """Sample from [0, 1), separately for each text.  (B,U)"""
    return key.uniform(batch.index, units.shape[1], dtype=units.dtype)


def _log(values: Tensor) -> Tensor:
    """Return the logarithm of values that can be 0 after sampling or rounding."""
    return values.clamp_min(torch.finfo(values.dtype).tiny).log()


GENERATOR, PREDICTOR = ("model.generator",), ("model.predictor",)
BASELINE_BATCHES = 200
"""Number of batches whose mean cost is the baseline."""
BY_TOKENS = "share", "spans", "sparsity", "continuity"
LEARNING_RATES = "generator_learning_rate", "predictor_learning_rate"
UnusedSettings = tuple[bool, str, tuple[str, ...]]
"""A condition of the settings, its description, and the settings without effect if it is true."""


@settings
class FirstSentence(Technique):
    """The skewed stage: the predictor reads the first sentence."""

    def loss(self, model: Rationalizer, batch: Batch, context: LossContext) -> Terms:
        return {"task": task_loss(model.read(batch, model.sentences(batch) == 0), batch)}


@settings
class RationalizingTechnique(Technique):
    """A generator selects, a predictor reads the selection."""

    granularity: Granularity = "sentence"
    """Unit of selection: one sentence, or single tokens."""
    share: Annotated[float, Field(gt=0, le=1)] | None = 0.2
    """Share of tokens to select, at least one token; None: those with probability above one half."""
    spans: Annotated[int, Field(ge=1, le=10_000)] | None = 10
    """Maximum number of contiguous pieces of selected tokens; None: no limit."""
    skewed: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Initial epochs on the first sentence alone, to test for interlocking."""

    kind: ClassVar[type[Rationalizer]] = Rationalizer

    @abstractmethod
    def selection_config(self) -> SelectionConfig:
        """Return the unit of selection and the heads of its models."""

    def build(
        self,
        encoder: Callable[[], Encoder],
        architecture: Architecture,
        classes: int,
        pair: bool,
        roles: Callable[[], Tensor],
    ) -> Rationalizer:
        return self.kind(encoder, architecture, classes, roles(), self.selection_config())

    def sentence_problem(self, roles: Tensor) -> str | None:
        if can_end(roles).any():
            return None
        skewed = " without skewed" if self.skewed else ""
        return (
            "no token of the vocabulary ends a sentence (. ! ?), so that each text is one sentence: "
            f"use granularity=token{skewed}, or give the sentences of every text (--sentences COLUMN)"
        )

    @property
    def has_free_size(self) -> bool:
        """True if the number of selected tokens is free."""
        config = self.selection_config()
        return config.granularity == "token" and config.share is None

    def stages(self, seed: int) -> tuple[Stage, ...]:
        train = Stage("train", select="last" if self.has_free_size else "best")
        if not self.skewed:
            return (train,)
        first = Stage("skewed", FirstSentence(), trains=PREDICTOR, epochs=self.skewed, select="last")
        return first, train

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        for name, supported in (("attention", "softmax"), ("decoder", "linear")):
            if (value := getattr(architecture, name)) != supported:
                return f"a rationalizer does not support {name}={value}: leave it out"
        unused = {name: reason for applies, reason, names in self.unused_settings() if applies for name in names}
        for name, setting in non_default(type(self), dataclasses.asdict(self)).items():
            if name in self.filled:
                return FILLED.format(name)
            if name in unused:
                return f"{name}={setting} has no effect with {unused[name]}: leave it out"
        return None

    def unused_settings(self) -> list[UnusedSettings]:
        """Return the settings that have no effect in combination with others."""
        by_sentences = "granularity=sentence (it applies to granularity=token)"
        return [(self.granularity == "sentence", by_sentences, BY_TOKENS)]

    @property
    def reads_pairs(self) -> bool:
        return False

    @property
    def reads_sentences(self) -> bool:
        return self.granularity == "sentence" or bool(self.skewed)


@settings
class JointTechnique(RationalizingTechnique):
    """Generator and predictor are trained together."""

    sparsity: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the penalty on deviations from `share`, if tokens are sampled independently."""
    continuity: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the penalty on more pieces than `spans`, if tokens are sampled independently."""
    exploration: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """ε: probability in training of a selection that ignores the generator."""
    generator_learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Learning rate of the generator, except for a transformer in it."""
    predictor_learning_rate: Annotated[float, Field(gt=0, le=10)] | None = None
    """Learning rate of the predictor, except for a transformer in it; None: the learning rates of the run."""

    def two_players(
        self, predictor: tuple[str, ...], generator: tuple[str, ...], turns: bool = False
    ) -> tuple[Player, ...]:
        """Return the two players; both update in every step, or in turns."""
        interval = 2 if turns else 1
        return (
            Player("predictor", PREDICTOR, predictor, interval, learning_rate=self.predictor_learning_rate),
            Player("generator", GENERATOR, generator, interval, interval - 1, self.generator_learning_rate),
        )

    def unused_settings(self) -> list[UnusedSettings]:
        return [
            *super().unused_settings(),
            (self.share is None and not self.continuity, "share=None and continuity=0", ("spans",)),
        ]

    def penalties(self, selection: Tensor, mask: Tensor) -> Terms:
        """Return the penalties (B,) of a selection of tokens (B,T); none for sentences."""
        if self.granularity == "sentence":
            return {}
        return {
            "sparsity": self.sparsity * share_penalty(selection, mask, self.share),
            "continuity": self.continuity * continuity_penalty(selection, mask, self.spans),
        }


@settings
class RewardBaselineTechnique(JointTechnique):
    """The generator minimizes the cost of a sampled selection minus a baseline, the mean recent cost."""

    costs: tuple[float, ...] = ()
    """Mean costs of the last batches; set by training, not by the user."""

    filled: ClassVar[tuple[str, ...]] = ("costs",)

    def after_step(self, terms: Terms) -> Self:
        if "cost" not in terms:
            return self
        return dataclasses.replace(self, costs=(*self.costs, float(terms["cost"].mean()))[-BASELINE_BATCHES:])

    @property
    def baseline(self) -> float:
        """b; 0 before the first step."""
        return sum(self.costs) / max(1, len(self.costs))

    def drawn(self, output: GeneratorOutput, batch: Batch, context: LossContext) -> SampledSelection:
        if self.granularity == "sentence":
            return sample_selection(output, batch, context.key, self.exploration)
        return sample_bernoulli(output, batch, context.key, self.exploration, self.share)
