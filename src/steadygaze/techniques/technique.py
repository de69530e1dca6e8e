"""Base class of the training techniques, and the declarations that the training loop carries out.

A technique is a frozen settings class: its fields are its configuration and its state.  It turns a batch into loss
terms.  It trains nothing itself; it declares what it needs, and `train` carries that out.

    build()            the model to train
    stages()           the training stages in order: the model, its initial weights, the trained parameters
    modules()          auxiliary networks, trained with the model and discarded after the run
    players()          groups of parameters, each with its loss terms and its own optimizer
    cache_targets()    targets that no step changes, such as a teacher's predictions; computed before the stage
    on_epoch_start()   tables that change slowly, such as nearest neighbors; computed before every epoch
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Self

from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import field_names, settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.models.inference import Model
from steadygaze.perturbations.gradient_ascent import loss_gradient
from steadygaze.perturbations.word_substitution import Synonyms

FILLED = "{} is set by training: leave it out"


@dataclass(frozen=True)
class CachedTargets:
    """Targets of the texts of a batch, computed before the stage."""

    texts: Mapping[str, Tensor] = field(default_factory=dict)
    """Targets of each text by name, (B,…)."""
    tokens: Mapping[str, Tensor] = field(default_factory=dict)
    """Targets of each token by name, (B,T,…), 0 on padding; dropped if they do not fit into memory."""


Differentiate = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Losses (B,), embeddings (B,T,E), mask (B,T) -> the losses, and their gradient at the embeddings as a constant."""


def differentiate_separately(losses: Tensor, embedded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient up to a positive factor, 0 outside the mask; the losses keep their graph."""
    return losses, loss_gradient(losses, embedded, mask)


@dataclass(frozen=True)
class LossContext:
    """Inputs of a loss other than the model and the batch."""

    models: Mapping[str, Any] = field(default_factory=dict)
    """The models of finished stages, by name: frozen, in evaluation mode."""
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    """The technique's own auxiliary networks."""
    key: RandomKey = field(default_factory=RandomKey)
    """The only source of randomness in a loss: a new key in every step, separate numbers for each text."""
    progress: float = 0.0
    """Completed share of the stage's steps, for schedules."""
    cached_targets: CachedTargets = field(default_factory=CachedTargets)
    """The result of `cache_targets` for this batch."""
    epoch_tables: Mapping[str, Tensor] = field(default_factory=dict)
    """The result of `on_epoch_start` for this epoch."""
    synonyms: Synonyms | None = None
    """Table of synonyms; None: unknown."""
    prior: Tensor | None = None
    """(C,) frequency of each class in the training texts; None: unknown."""
    differentiate: Differentiate = field(default_factory=lambda: differentiate_separately)
    """Gradient of a term of the loss at the embeddings, up to a positive factor; return the losses that it returns.
    A training loop can compute the gradients of the parameters in the same backward pass."""


@dataclass(frozen=True)
class Stage:
    """One run of the training loop."""

    name: str
    """Name of the stage, for progress and records."""
    technique: "Technique | None" = None
    """The technique whose loss is minimized; None: the technique that declares the stage."""
    model: str = "model"
    """Name of the trained model.  `model` is the result, so some stage trains it; the others are auxiliary."""
    start: str | None = None
    """The finished model that provides the initial weights; None: fresh weights, or those of an earlier stage."""
    seed: int | None = None
    """Random seed of the stage; None: the seed of the run."""
    trains: tuple[str, ...] = ("model.", "modules.")
    """Prefixes of the trained parameters: model.encoder, model.scorer, model.decoder, modules.<name>."""
    epochs: int | None = None
    """At least 1; None: the share of the epochs of the run."""
    share: float = 1.0
    """Share of the epochs of the run, rounded to at least 1; ignored if `epochs` is set."""
    rate_factor: float = 1.0
    """Factor of `learning_rate`; the learning rates of transformers and players do not change."""
    select: Literal["best", "last"] = "best"
    """Select the epoch with the best validation macro-F1, or the last; applies to the model and its modules.

    If no later stage trains the model, an epoch with collapsed attention or a constant label comes last."""
    schedule: Literal["constant", "linear"] | None = None
    """Constant learning rate, or linear decay to zero over the stage; None: the schedule of the run."""
    must_learn: bool = False
    """True if the run stops if the stage's model predicts the same label for every validation text."""

    def __post_init__(self) -> None:
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"stage {self.name!r} has {self.epochs} epochs: set at least 1, or None")
        if self.share <= 0 or self.rate_factor <= 0:
            raise ValueError(f"stage {self.name!r}: share and rate_factor must be positive")


@dataclass(frozen=True)
class Player:
    """A group of parameters, its loss terms and its update interval.

    No parameter belongs to two players.  A player is skipped in a stage that freezes all of its parameters.
    """

    name: str = "all"
    """Name of the player, for records."""
    trains: tuple[str, ...] = ("model.", "modules.")
    """Prefixes of its parameters, as in `Stage`."""
    terms: tuple[str, ...] | None = None
    """Names of the terms this player minimizes; None: all."""
    every: int = 1
    """Updates once in this many steps …"""
    offset: int = 0
    """… when step mod every = offset."""
    learning_rate: float | None = None
    """Learning rate of this player, except for a transformer; None: the learning rates of the run."""


def task_loss(logits: Tensor, batch: Batch) -> Tensor:
    """ℓ(y, f): cross-entropy with the labels.  (B,C) -> (B,)"""
    return cross_entropy(logits, batch.gold, reduction="none")


def is_zero(setting: float | Tensor) -> bool:
    """Return True if a setting is 0; a setting with a value for each text is not 0 for any."""
    return not isinstance(setting, Tensor) and setting == 0


def check_terms(terms: Any, technique: "Technique", texts: int) -> Terms:
    """Return the terms of a loss if each has one number per text; a mean would get a wrong weight."""
    name = type(technique).__name__
    if not isinstance(terms, Mapping) or not terms:
        raise UserError(f"the loss of {name} must return a dict of loss terms by name, found {type(terms).__name__}")
    for term, values in terms.items():
        if not isinstance(values, Tensor) or values.shape != (texts,):
            shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise UserError(
                f"the term {term!r} of the loss of {name} must have one number per text, shape ({texts},), "
                f"found {shape}: leave out the mean over texts (reduction='none')"
            )
    return dict(terms)


@settings
class Technique(ABC):
    """Base class of training techniques: a frozen settings class that turns a batch into loss terms.

    A subclass defines `loss`; its fields are its settings.  Put `@settings` above a subclass with fields, and register
    it in `TECHNIQUES`.

    Examples
    --------
    >>> from torch.nn.functional import cross_entropy
    >>> from steadygaze.core.settings import settings
    >>> from steadygaze.techniques.technique import Technique
    >>> @settings
    ... class Weighted(Technique):
    ...     weight: float = 1.0
    ...
    ...     def loss(self, model, batch, context):
    ...         return {"task": self.weight * cross_entropy(model(batch).logits, batch.gold, reduction="none")}
    >>> Weighted(weight=0.5)
    Weighted(weight=0.5)
    """

    kind: ClassVar[type[Model]] = Classifier
    """Class of the model that `build` returns."""
    filled: ClassVar[tuple[str, ...]] = ()
    """Fields that training sets, not the user."""
    stacks: ClassVar[bool] = True
    """True if its loss is correct for a stack of models: nothing but its numbers per text depends on the model."""
    stacked_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that may differ between the models of a stack: its loss accepts a tensor (B,), or does not read them."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        cls.check_definition()
        return super().__new__(cls)

    @classmethod
    def check_definition(cls) -> None:
        """Raise an error if the class lacks its loss, or @settings although it has fields."""
        if cls.__abstractmethods__:
            raise UserError(
                f"the technique {cls.__name__} has no loss: define loss(self, model, batch, context), which returns a "
                "dict of loss terms with one number per text"
            )
        own = {name for name, kind in get_annotations(cls).items() if "ClassVar" not in str(kind)}
        if missing := sorted(own - set(field_names(cls))):
            raise UserError(
                f"{', '.join(missing)} of the technique {cls.__name__} would not be a setting: put @settings above the "
                "class (from steadygaze.core.settings import settings)"
            )

    @abstractmethod
    def loss(self, model: Any, batch: Batch, context: LossContext) -> Terms:
        """Return the loss terms of a batch; leave the model's mode, parameters and .grad unchanged.

        Parameters
        ----------
        model : Classifier or Rationalizer
            The model in training.
        batch : Batch
            The texts of a step, as padded ids.
        context : LossContext
            Finished models, cached targets, random key and the other inputs of a loss.

        Returns
        -------
        dict of str to Tensor
            One number per text, shape (B,), for each term.  Training minimizes the mean of their sum.
        """

    def build(
        self,
        encoder: Callable[[], Encoder],
        architecture: Architecture,
        classes: int,
        pair: bool,
        roles: Callable[[], Tensor],
    ) -> Model:
        """Return a model with fresh weights.

        Parameters
        ----------
        encoder : callable
            Makes an encoder.
        architecture : Architecture
            Settings of the network.
        classes : int
            Number of labels.
        pair : bool
            Whether a text comes with a question.
        roles : callable
            Computes the `SentenceRole` of each id (V,), which takes time.

        Returns
        -------
        Model
            The model of a stage.
        """
        return Classifier(encoder(), architecture, classes, pair)

    def evaluated(self, model: Any) -> Model:
        """Return the network whose validation scores select the epoch.

        Parameters
        ----------
        model : Classifier or Rationalizer
            The model in training.

        Returns
        -------
        Model
            The model, or a part of it.
        """
        network: Model = model
        return network

    def adapt_reference(self, reference: Model, make_model: Callable[[], Model]) -> Model:
        """Return a provided reference or teacher as the model of its stage.

        Parameters
        ----------
        reference : Model
            The model of `fit(reference=)`.
        make_model : callable
            Makes a model of the stage with fresh weights.

        Returns
        -------
        Model
            The model of the stage.
        """
        return reference

    def after_step(self, terms: Terms) -> Self:
        """Return the technique for the next step.

        Parameters
        ----------
        terms : dict of str to Tensor
            The loss terms of this step, (B,) each.

        Returns
        -------
        Technique
            Itself, unless it has state such as a multiplier.
        """
        return self

    def stages(self, seed: int) -> tuple[Stage, ...]:
        """Return the stages in order.

        Parameters
        ----------
        seed : int
            Random seed of the run.

        Returns
        -------
        tuple of Stage
            The last stage trains the result, the model `"model"`.
        """
        return (Stage("train"),)

    def modules(self, model: Any) -> dict[str, nn.Module]:
        """Return the auxiliary networks; called in every stage.

        A name that is new to the run keeps the fresh weights returned here.  A network that an earlier stage had
        continues from that stage's weights, trained or (`trains`) frozen.
        Set select="last" for a stage that trains auxiliary networks only: it does not change macro-F1.

        Parameters
        ----------
        model : Classifier or Rationalizer
            The model in training.

        Returns
        -------
        dict of str to Module
            The networks by name; a loss finds them in `context.modules`.
        """
        return {}

    def players(self) -> tuple[Player, ...]:
        """Return the groups of parameters with their loss terms.

        Returns
        -------
        tuple of Player
            By default one player, which minimizes all terms.
        """
        return (Player(),)

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        """Return an error message if the technique cannot train such a model; called before training.

        Parameters
        ----------
        architecture : Architecture
            Settings of the network.
        classes : int
            Number of labels.

        Returns
        -------
        str or None
            The reason; None: it can train the model.
        """
        return None

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        """Return a warning about the outcome.

        Parameters
        ----------
        terms : dict of str to float
            Mean of each loss term in the last epoch.
        prior : Tensor
            Frequency of each class in the training texts, (C,).

        Returns
        -------
        str or None
            The warning; None: there is none.
        """
        return None

    @property
    def reads_pairs(self) -> bool:
        """True if its models can read a text with a question."""
        return True

    @property
    def reads_sentences(self) -> bool:
        """True if its training depends on the sentences of a text."""
        return False

    def sentence_problem(self, roles: Tensor) -> str | None:
        """Return why the texts have no sentences to choose from; not called if all sentences are given.

        Parameters
        ----------
        roles : Tensor
            The `SentenceRole` of each id, (V,).

        Returns
        -------
        str or None
            The reason; None: there are sentences.
        """
        return None

    @property
    def substitutes_words(self) -> bool:
        """True if it needs the table of synonyms."""
        return False

    @property
    def reads_vocabulary(self) -> bool:
        """True if it needs to know which ids are special tokens; always true if it substitutes words."""
        return self.substitutes_words

    def cache_targets(self, models: Mapping[str, Any], batch: Batch) -> CachedTargets:
        """Return the targets of these texts, computed by finished models; called once for every text.

        The largest targets are dropped if they do not fit into memory: a loss must work without any of `tokens`.

        Parameters
        ----------
        models : dict of str to Model
            The models of finished stages by name, frozen and in evaluation mode.
        batch : Batch
            Texts, as padded ids.

        Returns
        -------
        CachedTargets
            A loss finds them in `context.cached_targets`.
        """
        return CachedTargets()

    def on_epoch_start(self, model: Any, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        """Return tables that depend on the model; called before every epoch.

        Parameters
        ----------
        model : Classifier or Rationalizer
            The model in training.
        synonyms : Synonyms or None
            Table of synonyms; None: unknown.

        Returns
        -------
        dict of str to Tensor
            A loss finds them in `context.epoch_tables`.
        """
        return {}
