"""What a user asked for, checked before anything is read or written: every name known, every value in range."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from steadygaze.config import Field, deal, settings
from steadygaze.encode import ENCODERS, TRANSFORMER
from steadygaze.errors import UserError, unknown
from steadygaze.model import Architecture
from steadygaze.objective import TECHNIQUES
from steadygaze.objective.technique import Technique
from steadygaze.train.device import check
from steadygaze.train.settings import Training
from steadygaze.types import Label

MOST_TOKENS = 100_000
"""The longest text that may be asked to be read whole."""


@settings
class Reading:
    """How texts become ids."""

    min_df: Annotated[int, Field(ge=1)] = 1
    """A word must occur in so many training texts to be known."""


@dataclass(frozen=True)
class Order:
    encoder: str
    technique_name: str
    technique: Technique
    architecture: Architecture
    training: Training
    reading: Reading
    seed: int
    vectors: str | Path | None
    max_length: int | None
    class_weight: str | Mapping[Label, float] | None
    device: str


def order(parameters: Mapping[str, Any]) -> Order:
    """From the parameters of a TextClassifier."""
    technique = parameters["technique"]
    own = technique if isinstance(technique, Technique) else None
    if own is None and technique not in TECHNIQUES:
        raise unknown("technique", technique, TECHNIQUES)
    kinds: list[type[Any]] = [Architecture, Training, Reading, *([] if own else [TECHNIQUES[technique]])]
    architecture, training, reading, *built = deal(_values(parameters), *kinds)
    check(parameters["device"])
    return Order(
        encoder=_encoder(parameters["encoder"]),
        technique_name=type(own).__name__ if own else technique,
        technique=own or built[0],
        architecture=architecture,
        training=training,
        reading=reading,
        seed=_seed(parameters["seed"], parameters["random_state"]),
        vectors=parameters["vectors"],
        max_length=_max_length(parameters["max_length"]),
        class_weight=_class_weight(parameters["class_weight"]),
        device=parameters["device"],
    )


def _values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`settings`, and what has a parameter of its own."""
    values = dict(parameters["settings"] or {})
    for key in ("epochs", "batch_size"):
        if parameters[key] is not None:
            if key in values and values[key] != parameters[key]:
                raise UserError(f"{key} was given twice: {parameters[key]!r}, and {values[key]!r} among the settings")
            values[key] = parameters[key]
    return values


def _encoder(name: Any) -> str:
    if name in ENCODERS or (isinstance(name, str) and name.startswith(TRANSFORMER) and name != TRANSFORMER):
        return str(name)
    raise unknown("encoder", name, [*ENCODERS, f"{TRANSFORMER}minilm", f"{TRANSFORMER}<hub id or folder>"])


def _seed(seed: Any, random_state: Any) -> int:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    value = seed if random_state is None else random_state
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise UserError(f"seed must be a whole number from 0 up, found {value!r}")
    return int(value)


def _max_length(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int | np.integer) or not 1 <= value <= MOST_TOKENS):
        raise UserError(f"max_length must be a whole number from 1 to {MOST_TOKENS:,}, found {value!r}")
    return None if value is None else int(value)


def _class_weight(value: Any) -> str | Mapping[Label, float] | None:
    if value is not None and value != "balanced" and not isinstance(value, Mapping):
        raise UserError(f"class_weight must be 'balanced' or a mapping of label to weight, found {value!r}")
    return value  # type: ignore[no-any-return]
