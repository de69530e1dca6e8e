"""ModelConfig, the contents of config.json, and building an untrained model from it."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from steadygaze.core import __version__
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, build, non_default, settings
from steadygaze.core.types import Label
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.text_tokenizer import TextTokenizer
from steadygaze.estimator.train_config import TextConfig
from steadygaze.models.classifier import Architecture, word_encoder
from steadygaze.models.encoders import ENCODERS, TRANSFORMER
from steadygaze.models.encoders.transformer import from_config
from steadygaze.models.encoders.windows import Windows, default_stride
from steadygaze.models.encoders.word_encoders import Encoder
from steadygaze.models.inference import Model
from steadygaze.models.rationalizer import IndependentReader
from steadygaze.results.health import Health
from steadygaze.results.leakage_warnings import ArbitraryClass, arbitrary_classes
from steadygaze.results.row import Row
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.optimizers import Training

SCHEMA = 2
"""Increased when older versions of the package cannot read a folder."""


@settings
class HeldOutScore:
    value: float
    interval: tuple[float, float] | None
    """95 % bootstrap interval; None for a single text."""
    n: int
    """Number of texts."""


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
    text: dict[str, Any] = dataclasses.field(default_factory=dict)
    class_weight: Literal["balanced"] | list[tuple[Label, float]] | None = None
    vectors: str | None = None
    coverage: float | None = None
    """Share of the vocabulary with a pre-trained vector."""
    token_coverage: float | None = None
    """Share of the tokens of the training texts with a pre-trained vector."""
    synonym_groups: str | None = None
    """Number and SHA-256 of the synonym groups, as `SynonymGroups.summary`; None: every word has its own id."""
    seed: int
    corpus: str
    """SHA-256 of the training texts and labels and, after a colon, of those for validation."""
    references: list[str] = Field(default_factory=list)
    """SHA-256 of the weights of references and teachers that were passed to `fit`."""
    history: list[dict[str, Any]]
    """One record per epoch: stage, epoch, terms, macro-f1, accuracy, always, attention."""
    best_epoch: dict[str, Any] = Field(default_factory=dict)
    """The epoch of the saved weights: stage, epoch, macro-f1, always, attention."""
    validation_texts: int | None = None
    """Number of validation texts; None: unknown."""
    health: list[dict[str, Any]] = Field(default_factory=list)
    """Known-bad states, as `Health.to_list`; judged again when the model is loaded."""
    independent_reader: dict[str, Any] = Field(default_factory=dict)
    """Scores of a rationalizer's independent reader on the validation texts, by measure; see `stored_reader`."""
    test_scores: dict[str, HeldOutScore] = Field(default_factory=dict)
    """Accuracy and macro-f1 on the held-out test part; empty if there is none."""

    def __post_init__(self) -> None:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"has {self.classes!r:.80}: some labels are duplicates")

    @property
    def reader_accuracy(self) -> float | None:
        """Accuracy of the independent reader on the selected words; None: no reader."""
        accuracy = self.independent_reader.get("independent-reader-accuracy")
        return accuracy["value"] if isinstance(accuracy, dict) and isinstance(accuracy.get("value"), float) else None

    @property
    def reader_rows(self) -> tuple[Row, ...]:
        """The scores in `independent_reader` as rows."""
        entries = self.independent_reader.items()
        items = [(name, item) for name, value in entries for item in (value if isinstance(value, list) else [value])]
        return tuple(row for name, item in items if (row := _reader_row(name, item)) is not None)

    @property
    def arbitrary_classes(self) -> tuple[ArbitraryClass, ...]:
        """The predicted classes for which a rationalizer's selection is arbitrary in some validation texts."""
        return arbitrary_classes(self.reader_rows)

    def describe_reader(self, reader: IndependentReader) -> None:
        """Give the reader its scores."""
        reader.accuracy = self.reader_accuracy
        reader.arbitrary = {item.label: (item.arbitrary, item.n) for item in self.arbitrary_classes}


def stored_reader(rows: Iterable[Row]) -> dict[str, Any]:
    """The rows by measure, as values for config.json; a list for a measure with one row for each predicted class."""
    stored: dict[str, Any] = {}
    for row in rows:
        values = {"value": row.value, "interval": row.interval, "n": row.n}
        if "class" in row.settings:
            stored.setdefault(row.measure, []).append({"class": row.settings["class"], **values})
        else:
            stored[row.measure] = values
    return stored


def _reader_row(name: str, item: Any) -> Row | None:
    """None: the entry does not have the form of `stored_reader`."""
    if not isinstance(item, dict) or not isinstance(item.get("value"), float) or not isinstance(item.get("n"), int):
        return None
    interval = item.get("interval")
    low, high = interval if isinstance(interval, list | tuple) and len(interval) == 2 else (None, None)
    bounds = (low, high) if isinstance(low, float) and isinstance(high, float) else None
    of_class = {"class": str(item["class"])} if "class" in item else {}
    return Row(name, item["value"], item["n"], bounds, of_class)


def contradiction(config: ModelConfig) -> str:
    """A sentence about two fields that contradict each other, or ''."""
    transformer = config.encoder.startswith(TRANSFORMER)
    if transformer != (config.kind == "pieces") or transformer != (config.network is not None):
        return f"encoder {config.encoder!r:.80} contradicts kind {config.kind!r} or network"
    if problem := window_problem(config.architecture, config.encoder, config.pair):
        return problem
    keys = ("stage", "epoch", "macro-f1")
    if config.best_epoch and not any(
        all(record.get(k) == config.best_epoch.get(k) for k in keys) for record in config.history
    ):
        return "best_epoch is not an epoch of history"
    constant_label = config.best_epoch.get("constant_label")
    if constant_label is not None and not (type(constant_label) is int and 0 <= constant_label < len(config.classes)):
        return f"best_epoch.constant_label is {constant_label!r:.40}, which is not the position of a class"
    try:
        Health.from_list(config.health)
    except UserError as error:
        return str(error)
    weights = config.class_weight if isinstance(config.class_weight, list) else []
    if unknown_labels := [label for label, _ in weights if label not in config.classes]:
        return f"class_weight names {unknown_labels[0]!r:.40}, which is not a class"
    try:
        if config.technique in TECHNIQUES:
            build(TECHNIQUES[config.technique], config.technique_settings)
    except UserError as error:
        return f"technique_settings does not fit technique {config.technique!r}: {error}"
    return ""


def window_problem(architecture: Architecture, encoder: str, pair: bool) -> str:
    """A sentence about windows that do not fit each other, the encoder or pairs, or ''."""
    window, stride = architecture.window, architecture.stride
    if window is None:
        return "" if stride is None else f"stride is {stride}, but there is no window: set window too"
    if not encoder.startswith(TRANSFORMER):
        return f"window is for transformers: {encoder} reads whole texts with a larger max_length"
    if pair:
        return "window is for single texts, not for pairs (text, question): remove it"
    if stride is not None and stride > window:
        return f"stride is {stride}: it must be at most window, {window}, or pieces between windows are not read"
    return ""


def make_windows(architecture: Architecture, tokenizer: TextTokenizer) -> Windows | None:
    """The windows of a transformer; None: a text is one window."""
    if architecture.window is None:
        return None
    stride = architecture.stride or default_stride(architecture.window)
    return Windows(architecture.window, stride, *tokenizer.special_counts)


def build_model(
    description: ModelConfig,
    tokenizer: TextTokenizer,
    technique: Technique | None = None,
    encoder: Callable[[], Encoder] | None = None,
) -> Model:
    """The untrained model of a description.

    `technique`: None uses the registered technique of the description's name, or Vanilla for a user's own technique.
    `encoder`: None makes one with untrained weights.
    """
    technique = technique or _technique(description)
    encoder = encoder or partial(make_encoder, description, tokenizer)

    roles = partial(token_roles, tokenizer)
    return technique.build(encoder, description.architecture, len(description.classes), description.pair, roles)


def token_roles(tokenizer: TextTokenizer) -> Tensor:
    """(V,) the `SentenceRole` of each id."""
    return torch.from_numpy(sentence_roles(tokenizer.vocabulary, tokenizer.kind))


def make_encoder(description: ModelConfig, tokenizer: TextTokenizer, vectors: Tensor | None = None) -> Encoder:
    """The untrained encoder of a description."""
    if description.encoder.startswith(TRANSFORMER):
        return from_config(description.network or {}, make_windows(description.architecture, tokenizer))
    if description.encoder not in ENCODERS:
        raise unknown("encoder", description.encoder, ENCODERS)
    return word_encoder(description.encoder, description.architecture, tokenizer.size, description.pair, vectors)


def _technique(description: ModelConfig) -> Technique:
    """The technique that determines the network; Vanilla if its settings do not."""
    kind = TECHNIQUES.get(description.technique, Vanilla)
    return Vanilla() if kind.build is Technique.build else build(kind, description.technique_settings)


def settings_of_model(
    architecture: Architecture,
    training: Mapping[str, Any],
    text: Mapping[str, Any],
    technique: str,
    technique_settings: Mapping[str, Any],
    explicit: Collection[str] = (),
) -> dict[str, Any]:
    """The settings that differ from the defaults, and those with the names `explicit`."""
    kinds = {Architecture: dataclasses.asdict(architecture), Training: training, TextConfig: text}
    values = {key: value for kind, part in kinds.items() for key, value in non_default(kind, part).items()}
    values |= {key: part[key] for part in kinds.values() for key in part if key in explicit}
    technique_class = TECHNIQUES.get(technique)  # None: a user's own technique, whose defaults are unknown
    if technique_class is None:
        return {**values, **technique_settings}
    chosen = {key: value for key, value in technique_settings.items() if key not in technique_class.filled}
    return {**values, **non_default(technique_class, chosen)}
