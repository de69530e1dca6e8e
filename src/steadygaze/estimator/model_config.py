"""What config.json says of a model, and the model that it describes, with fresh weights."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from steadygaze.core import __version__
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, build, settings
from steadygaze.core.types import Label
from steadygaze.data.text_tokenizer import TextTokenizer
from steadygaze.data.token_alignment import sentence_ends
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.encoders import ENCODERS, TRANSFORMER
from steadygaze.models.encoders.encoder import Encoder
from steadygaze.models.encoders.transformer import from_config
from steadygaze.models.model_protocol import Model
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.vanilla import Vanilla

SCHEMA = 1
"""Raised when a folder written today could not be read by yesterday's package."""


@settings
class ModelConfig:
    """config.json."""

    schema: int = SCHEMA
    steadygaze: str = __version__
    classes: Annotated[list[Label], Field(min_length=2)]
    pair: bool
    encoder: str
    network: dict[str, Any] | None = None
    """A transformer's own configuration."""
    architecture: Architecture
    kind: Literal["words", "pieces"]
    max_length: Annotated[int, Field(ge=1)]
    technique: str
    technique_settings: dict[str, Any]
    training: dict[str, Any]
    reading: dict[str, Any] = dataclasses.field(default_factory=dict)
    class_weight: Literal["balanced"] | list[tuple[Label, float]] | None = None
    vectors: str | None = None
    coverage: float | None = None
    """Share of the vocabulary that had a pre-trained vector."""
    token_coverage: float | None = None
    """Share of the running tokens of the training texts that had one."""
    seed: int
    corpus: str
    """SHA-256 of the texts and labels given for training and, after a colon, of those given for validation."""
    references: list[str] = Field(default_factory=list)
    """SHA-256 of the weights of references and teachers that were given ready-made."""
    history: list[dict[str, Any]]
    """One record per epoch: stage, epoch, terms, macro-f1, accuracy, always, attention."""
    best_epoch: dict[str, Any] = Field(default_factory=dict)
    """Which of them the weights are: stage, epoch, macro-f1, always, attention."""
    independent_reader: dict[str, Any] = Field(default_factory=dict)
    """Of a rationalizer: the scores of its independent reader on the validation texts, by measure."""

    def __post_init__(self) -> None:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"has {self.classes!r:.80}: some labels occur twice")

    @property
    def constant_label(self) -> Label | None:
        """The label that every validation text was given; None where they were told apart, or nobody looked."""
        place = self.best_epoch.get("constant_label")
        return None if place is None else self.classes[place]

    @property
    def reader_accuracy(self) -> float | None:
        """How often the independent reader recovers the label from the selected words; None: there is no reader."""
        found = self.independent_reader.get("independent-reader-accuracy")
        return found["value"] if isinstance(found, dict) and isinstance(found.get("value"), float) else None


def contradiction(found: ModelConfig) -> str:
    """Two fields of a folder that cannot both be true, in a sentence; '' where there are none."""
    transformer = found.encoder.startswith(TRANSFORMER)
    if transformer != (found.kind == "pieces") or transformer != (found.network is not None):
        return f"encoder {found.encoder!r:.80} contradicts kind {found.kind!r} or network"
    keys = ("stage", "epoch", "macro-f1")
    if found.best_epoch and not any(all(one.get(k) == found.best_epoch.get(k) for k in keys) for one in found.history):
        return "best_epoch is not an epoch of history"
    always = found.best_epoch.get("constant_label")
    if always is not None and not (type(always) is int and 0 <= always < len(found.classes)):
        return f"best_epoch.constant_label is {always!r:.40}, which is not the position of a class"
    weights = found.class_weight if isinstance(found.class_weight, list) else []
    if unknown_labels := [label for label, _ in weights if label not in found.classes]:
        return f"class_weight names {unknown_labels[0]!r:.40}, which is not a class"
    try:
        if found.technique in TECHNIQUES:
            build(TECHNIQUES[found.technique], found.technique_settings)
    except UserError as error:
        return f"technique_settings does not fit technique {found.technique!r}: {error}"
    return ""


def build_model(
    description: ModelConfig,
    tokenizer: TextTokenizer,
    technique: Technique | None = None,
    encoder: Callable[[], Encoder] | None = None,
) -> Model:
    """The model that a description describes, with fresh weights.

    The technique is the one described unless another of that name is given: a technique of a user's own is known to
    nobody else, and such a model is taken for a classifier; `store.load` refuses it where it is none.
    `encoder`: None makes one without anything learnt.
    """
    technique = technique or _technique(description)
    encoder = encoder or partial(make_encoder, description, tokenizer.size)
    ends = torch.from_numpy(sentence_ends(tokenizer.vocabulary))
    return technique.build(encoder, description.architecture, len(description.classes), description.pair, ends)


def make_encoder(description: ModelConfig, size: int, vectors: Tensor | None = None) -> Encoder:
    """The encoder that a description describes, with fresh weights; `size` words in the vocabulary."""
    if description.encoder.startswith(TRANSFORMER):
        return from_config(description.network or {})
    if description.encoder not in ENCODERS:
        raise unknown("encoder", description.encoder, ENCODERS)
    return word_encoder(description.encoder, description.architecture, size, description.pair, vectors)


def _technique(description: ModelConfig) -> Technique:
    """As far as it says what is built; what most of them are set to says nothing of that."""
    kind = TECHNIQUES.get(description.technique, Vanilla)
    return Vanilla() if kind.build is Technique.build else build(kind, description.technique_settings)
