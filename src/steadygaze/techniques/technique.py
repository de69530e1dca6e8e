"""What a training technique is, and what it may ask of the training loop.

A technique is a frozen settings class (its fields are its configuration and its state) that turns a batch into terms to
minimise.  It never trains anything itself: it *declares* what it needs, and `train` carries that out.

    build()     the model that is trained
    stages()    what is trained, one after the other: which model, from which start, which parameters move
    modules()   auxiliary networks of its own, trained beside the model and thrown away when the run is over
    players()   who minimises which terms with which parameters, each with an optimiser of its own
    remember()  what no step changes of a text, such as what a finished model says of it: made once, before the stage
    refresh()   what changes slowly, such as each word's nearest words: made anew before every epoch
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from torch import Tensor, nn

from steadygaze.core.random_key import RandomKey
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.models.classifier import Architecture, Classifier
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_substitution import Synonyms

FILLED = "{} is filled in by training: leave it out"


@dataclass(frozen=True)
class CachedTargets:
    """What is known of the texts of a batch since before the stage began."""

    texts: Mapping[str, Tensor] = field(default_factory=dict)  # (B,…)
    tokens: Mapping[str, Tensor] = field(default_factory=dict)  # (B,T,…), 0 on padding


@dataclass(frozen=True)
class LossContext:
    """What the loop hands to a loss beside model and batch."""

    models: Mapping[str, Any] = field(default_factory=dict)
    """The models of finished stages, by name: frozen, in evaluation mode."""
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    """The technique's own auxiliary networks."""
    key: RandomKey = field(default_factory=RandomKey)
    """The only source of chance a loss may draw from: another in every step, each text's numbers its own."""
    progress: float = 0.0
    """Share of the stage's steps already taken, for schedules."""
    cached_targets: CachedTargets = field(default_factory=CachedTargets)
    """What `remember` made of this batch."""
    epoch_tables: Mapping[str, Tensor] = field(default_factory=dict)
    """What `refresh` made for this epoch."""
    synonyms: Synonyms | None = None
    """Words that may stand for each other; None: nobody said."""
    prior: Tensor | None = None
    """(C,) how frequent each class is among the training texts; None: nobody said."""


@dataclass(frozen=True)
class Stage:
    """One run of the loop."""

    name: str
    technique: "Technique | None" = None
    """Whose loss is minimised; None: that of the technique which declares the stage."""
    model: str = "model"
    """Which model is trained.  `model` is the result, so some stage trains it; any other is a means to it."""
    start: str | None = None
    """The finished model whose weights this one starts from; None: fresh weights, or where an earlier stage left it."""
    seed: int | None = None
    """Whatever the stage draws is drawn from it; None: from the run's."""
    trains: tuple[str, ...] = ("model.", "modules.")
    """Prefixes of the parameters that move: model.encoder, model.scorer, model.decoder, modules.<name>."""
    epochs: int | None = None
    """At least one; None: as many as the run has."""
    select: Literal["best", "last"] = "best"
    """Keep the epoch with the best validation macro-F1, or the last; of the modules as of the model."""
    schedule: Literal["constant", "linear"] | None = None
    """Whether the step size stays or falls to zero over the stage; None: as the run has it."""

    def __post_init__(self) -> None:
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"stage {self.name!r} has {self.epochs} epochs; it needs at least one, or None")


@dataclass(frozen=True)
class Player:
    """Some parameters, the terms they minimise, and when they move.

    No parameter belongs to two players; a player sits out a stage that freezes all that is its own.
    """

    name: str = "all"
    trains: tuple[str, ...] = ("model.", "modules.")
    terms: tuple[str, ...] | None = None
    """Names of the terms this player minimises; None: all."""
    every: int = 1
    """Moves once in so many steps …"""
    offset: int = 0
    """… namely when step mod every = offset."""
    learning_rate: float | None = None
    """For this player's parameters, but for a transformer's; None: the run's, which may be another for the encoder."""


@settings
class Technique(ABC):
    """Abstract; every technique is a final subclass in a file of its own, registered in `techniques/__init__.py`.

    A model is what its `build` makes: a Classifier, unless it says otherwise.
    """

    kind: ClassVar[type[Model]] = Classifier
    """What `build` makes."""
    filled: ClassVar[tuple[str, ...]] = ()
    """Fields that no user sets: training does."""

    @abstractmethod
    def loss(self, model: Any, batch: Batch, given: LossContext) -> Terms:
        """Per-example terms (B,).  Reads the model; leaves its mode, parameters and .grad as they were."""

    def build(
        self, encoder: Callable[[], Encoder], architecture: Architecture, classes: int, pair: bool, ends: Tensor
    ) -> Model:
        """Fresh weights; `encoder` makes as many encoders as are wanted.  ends (V,): the ids that end a sentence."""
        return Classifier(encoder(), architecture, classes, pair)

    def after_step(self, terms: Terms) -> Self:
        """The technique for the next step: itself, unless it carries state (a multiplier, a schedule)."""
        return self

    def stages(self, seed: int) -> tuple[Stage, ...]:
        """In their order; the last trains the result.  `seed` is the run's."""
        return (Stage("train"),)

    def modules(self, model: Any) -> dict[str, nn.Module]:
        """Networks beside the model, by name.

        Asked for in every stage.  A name that is new to the run keeps the fresh weights given here; under a name that
        an earlier stage had, the network goes on from the weights which that stage kept, moving or (`trains`) frozen.
        A stage that trains nothing else does not change macro-F1: it wants select="last".
        """
        return {}

    def players(self) -> tuple[Player, ...]:
        return (Player(),)

    def validate(self, architecture: Architecture, classes: int) -> str | None:
        """Why it cannot train such a model, in a sentence; asked before anything is trained."""
        return None

    def warning_after_training(self, terms: Mapping[str, float], prior: Tensor) -> str | None:
        """What a person must know of how it ended, from the means of the last epoch's terms and the classes' shares."""
        return None

    @property
    def reads_pairs(self) -> bool:
        """Whether its models read a text with a question about it."""
        return True

    @property
    def substitutes_words(self) -> bool:
        """Whether it wants to know which words are synonyms."""
        return False

    @property
    def reads_vocabulary(self) -> bool:
        """Whether it wants to know which ids are special tokens; what swaps words gets to know it anyway."""
        return self.substitutes_words

    def cache_targets(self, models: Mapping[str, Any], batch: Batch) -> CachedTargets:
        """What the loss will want to know of these texts, from models that are finished.  Asked once for every text.

        What does not fit into memory comes back without its largest part: a loss must do without any of `tokens`.
        """
        return CachedTargets()

    def on_epoch_start(self, model: Any, synonyms: Synonyms | None) -> Mapping[str, Tensor]:
        """Tables that follow the model slowly.  Asked before every epoch."""
        return {}
