"""What is registered: names, what they are, and their settings."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

from steadygaze.audit.measure_names import NAMES, PROBES
from steadygaze.audit.measures.registry import MEASURES, measure_of
from steadygaze.core.errors import unknown
from steadygaze.data.corpora import CORPORA
from steadygaze.estimator.train_config import TextConfig
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.selector import SelectorConfig
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders import ENCODERS, TRANSFORMER
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.optimizers import Training


def list_registry(kind: str) -> list[dict[str, Any]]:
    """What is registered: name, what it is, and its settings."""
    kinds: Mapping[str, Mapping[str, Any]] = {
        "corpora": {name: corpus.about for name, corpus in CORPORA.items()},
        "encoders": {
            **{name: tower.about for name, tower in ENCODERS.items()},
            f"{TRANSFORMER}NAME": "any Hugging Face encoder: a hub id, a folder, or minilm",
        },
        "techniques": {name: technique.__doc__ for name, technique in TECHNIQUES.items()},
        "explainers": {name: explainer.__doc__ for name, explainer in EXPLAINERS.items()},
        "measures": {name: _told(name) for name in NAMES},
    }
    if kind not in kinds:
        raise unknown("kind of thing to list", kind, kinds)
    listed: Mapping[str, Mapping[str, Any]] = {"techniques": TECHNIQUES, "explainers": EXPLAINERS}
    settings = {name: _fields(cls) for name, cls in listed.get(kind, {}).items() if is_dataclass(cls)}
    rows = [_row(name, about, settings.get(name, [])) for name, about in kinds[kind].items()]
    if kind == "techniques":
        shared = [field for cls in (Architecture, Training, TextConfig) for field in _fields(cls)]
        rows.append(_row("all of them", "take these as well", shared))
    return rows + (_fitted() if kind == "explainers" else [])


def _row(name: str, about: str | None, settings: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "about": (about or "").split("\n")[0], "settings": settings}


def _fitted() -> list[dict[str, Any]]:
    """Explainers that learn; of those that select, what they share is said once."""
    usual = _fields(SelectorConfig)
    rows, selecting = [], []
    for name, method in METHODS.items():
        own = _fields(method)
        if issubclass(method, SelectorConfig):
            own = [field for field in own if field not in usual]
            selecting.append(name)
        rows.append(_row(name, f"{_first(method)} (fitted by fit-explainer)", own))
    said = "take these as well, where they have no default of their own"
    return [*rows, _row(", ".join(selecting), said, usual)]


def _first(cls: Any) -> str:
    return str(cls.__doc__).split("\n")[0].removesuffix(".")


def _told(name: str) -> str:
    """What a number of an audit is, and what was done to the texts for it."""
    probe, about = name.partition("/")[2], measure_of(name).sentence
    return about if name in MEASURES or not probe else f"{about}  {PROBES[probe]}"


def _fields(cls: Any) -> list[dict[str, Any]]:
    """What there is to set: not what training fills in."""
    described, filled = cls.__pydantic_fields__, getattr(cls, "filled", ())
    return [
        {"name": n, "default": field.default, "about": field.description}
        for n, field in described.items()
        if n not in filled
    ]
