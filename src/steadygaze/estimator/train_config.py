"""Settings of a training run, checked before any data is read or written."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from steadygaze.core.arguments import instance, integer, optional
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, distribute_settings, settings
from steadygaze.core.types import Label
from steadygaze.data.synonym_groups import Rule, SynonymGroups
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders import ENCODERS, TRANSFORMER
from steadygaze.models.inference import check_device
from steadygaze.techniques import TECHNIQUES, find_technique
from steadygaze.techniques.technique import FILLED, Technique
from steadygaze.training.optimizers import Training
from steadygaze.training.tracking import check_track

MOST_TOKENS = 1_000_000
"""Largest max_length; the default of a transformer with windows."""
GroupSource = str | Path | SynonymGroups | Mapping[str, Sequence[str]] | None
LARGEST_SEED = 2**32 - 1
"""Largest seed of NumPy's and scikit-learn's generators."""


@settings
class TextConfig:
    """Settings of the tokenization."""

    min_df: Annotated[int, Field(ge=1)] = 2
    """Fewest training texts with a word of the vocabulary.  With 1, the vector of unknown words is untrained."""
    label_vectors: bool = False
    """Extend the word vectors by the weights of a TF-IDF logistic regression of the labels."""
    small_data: bool | None = None
    """Use the settings for small datasets; None: with 100 to 1,999 texts."""
    synonyms: str | None = None
    """A table of synonyms, for techniques that substitute words; None: no word is substituted."""
    group_rule: Rule = "star"
    """Which words of a synonym table form a group: star, half, clique or linked."""
    learn_groups: bool = False
    """Leave out words of synonym groups that lower macro-F1 of a logistic regression on the validation texts."""
    group_vectors: Literal["representative", "mean"] = "representative"
    """Pre-trained vector of a synonym group: that of its representative, or the mean of its words."""
    unknown: Literal["synonym", "token"] | None = None
    """Reading of words outside the vocabulary of a word model: their closest synonym inside, by the table of
    synonym_groups or else of synonyms, or the token of unknown words.  None: synonym if synonym_groups is a table."""
    text_hashes: bool = True
    """Save hashes of the training texts, so that audit and evaluate can count training texts."""


@dataclass(frozen=True)
class TrainConfig:
    encoder: str
    technique_name: str
    technique: Technique
    architecture: Architecture
    training: Training
    text: TextConfig
    seed: int
    vectors: str | Path | None
    max_length: int | None
    class_weight: str | Mapping[Label, float] | None
    device: str
    synonym_groups: GroupSource = None
    """Synonym groups, or a synonym table from which they are built; None: every word has its own id."""
    chosen: frozenset[str] = frozenset()
    """Names of the settings that the user set."""
    default_vectors: bool = False
    """True if the vectors are those of an installed package that the user did not name."""


def train_config(parameters: Mapping[str, Any]) -> TrainConfig:
    """From the parameters of a TextClassifier."""
    name, custom_technique = _technique(parameters["technique"])
    values = _values(parameters)
    filled = () if custom_technique else TECHNIQUES[name].filled
    if set_by_training := [setting for setting in filled if setting in values]:
        raise UserError(FILLED.format(set_by_training[0]))
    kinds: list[type[Any]] = [Architecture, Training, TextConfig, *([] if custom_technique else [TECHNIQUES[name]])]
    architecture, training, text, *built = distribute_settings(values, *kinds)
    check_device(parameters["device"])
    check_track(parameters.get("track"))
    if text.synonyms is not None and not Path(text.synonyms).exists():
        raise UserError(
            f"the synonym file {text.synonyms} does not exist: check the path, or write one with "
            "`steadygaze synonyms build`"
        )
    return TrainConfig(
        encoder=_encoder(parameters["encoder"]),
        technique_name=name,
        technique=custom_technique or built[0],
        architecture=architecture,
        training=training,
        text=text,
        seed=check_seed(parameters["seed"], parameters["random_state"]),
        vectors=_vectors(parameters["vectors"]),
        max_length=optional(integer(1, MOST_TOKENS))("max_length", parameters["max_length"]),
        class_weight=_class_weight(parameters["class_weight"]),
        device=parameters["device"],
        synonym_groups=_synonym_groups(parameters["synonym_groups"]),
        chosen=frozenset(values),
    )


def consecutive_seeds(first: int, count: Any) -> list[int]:
    """`count` seeds from `first` up."""
    count = integer(1)("n_seeds", count)
    if first + count - 1 > LARGEST_SEED:
        raise UserError(f"the last seed would be {first + count - 1}; the largest is {LARGEST_SEED}")
    return list(range(first, first + count))


def setting_defaults(technique: Any) -> dict[str, Any]:
    """The default of every setting, by name; those of a technique only if it is a registered name."""
    chosen = TECHNIQUES.get(technique) if isinstance(technique, str) else None
    classes: list[type[Any]] = [Architecture, Training, TextConfig, *([] if chosen is None else [chosen])]
    filled = () if chosen is None else chosen.filled
    return {f.name: f.default for cls in classes for f in dataclasses.fields(cls) if f.name not in filled}


def _technique(technique: Any) -> tuple[str, Technique | None]:
    """The registered name, and the technique if it is an object."""
    if isinstance(technique, Technique):
        registered = [name for name, kind in TECHNIQUES.items() if kind is type(technique)]
        return registered[0] if registered else type(technique).__name__, technique
    find_technique(technique)
    return technique, None


def _values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`settings`, epochs and batch_size."""
    chosen = optional(instance(Mapping, "a mapping of names to values"))("settings", parameters["settings"]) or {}
    values = {key: str(value) if isinstance(value, Path) else value for key, value in chosen.items()}
    for key in ("epochs", "batch_size"):
        if parameters[key] is not None:
            if key in values and values[key] != parameters[key]:
                raise UserError(f"{key} is set twice: {parameters[key]!r}, and {values[key]!r} in settings")
            values[key] = parameters[key]
    return values


def _encoder(name: Any) -> str:
    if isinstance(name, str) and (name in ENCODERS or (name.startswith(TRANSFORMER) and name != TRANSFORMER)):
        return str(name)
    raise unknown("encoder", name, [*ENCODERS, f"{TRANSFORMER}minilm", f"{TRANSFORMER}<hub id or folder>"])


def check_seed(seed: Any, random_state: Any = None) -> int:
    """The random seed: a whole number that every generator accepts."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    name, value = ("seed", seed) if random_state is None else ("random_state", random_state)
    seed = integer(0, LARGEST_SEED)(name, value)
    return int(seed)


def _synonym_groups(value: Any) -> GroupSource:
    if isinstance(value, str | Path) and not Path(value).exists():
        raise UserError(f"synonym_groups: {str(value)!r} does not exist; pass a file of groups or a synonym table")
    kinds, described = (str, Path, SynonymGroups, Mapping), "a file, SynonymGroups or a mapping of words to synonyms"
    groups: GroupSource = optional(instance(kinds, described))("synonym_groups", value)
    return groups


def _vectors(value: Any) -> str | Path | None:
    if value is not None and (not isinstance(value, str | Path) or "\0" in str(value)):
        raise UserError(f"vectors must be the name of a file or 'glove-50d', found {value!r}")
    return value


def _class_weight(value: Any) -> str | Mapping[Label, float] | None:
    if value is None or (isinstance(value, str) and value == "balanced"):
        return value
    if not isinstance(value, Mapping):
        raise UserError(f"class_weight must be 'balanced' or a mapping of label to weight, found {value!r:.80}")
    for label, weight in value.items():
        if not isinstance(weight, int | float | np.integer | np.floating) or not 0 <= weight < math.inf:
            raise UserError(f"class_weight of {label!r} must be a finite number of at least 0, found {weight!r:.80}")
    return value
