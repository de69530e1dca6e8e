"""Registered names, their descriptions and their settings."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import get_annotations
from typing import Any

from steadygaze.core.errors import unknown
from steadygaze.core.settings import descriptions
from steadygaze.data.corpora import CORPORA
from steadygaze.estimator.train_config import TextConfig
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.fit_config import COSTS
from steadygaze.explainers.learned.l2x import SelectorConfig
from steadygaze.models.classifier import Architecture
from steadygaze.models.encoders import ENCODERS, TRANSFORMER
from steadygaze.properties import all_measures, conditions, measure_of, row_names
from steadygaze.results.row import MeasureKey
from steadygaze.study.published_tables import published_tables
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.optimizers import Training


def list_registry(registry: str) -> list[dict[str, Any]]:
    """Return the name, description and settings of each registered item."""
    registries: Mapping[str, Mapping[str, Any]] = {
        "corpora": {name: corpus.about for name, corpus in CORPORA.items()},
        "encoders": {
            **{name: tower.about for name, tower in ENCODERS.items()},
            f"{TRANSFORMER}NAME": "any Hugging Face encoder: a hub id, a folder, or minilm",
        },
        "techniques": {name: technique.__doc__ for name, technique in TECHNIQUES.items()},
        "explainers": {name: explainer.__doc__ for name, explainer in EXPLAINERS.items()},
        "measures": {name: _describe_measure(name) for name in row_names()},
        "tables": {name: table.title for name, table in published_tables().items()},
    }
    if registry not in registries:
        raise unknown("registry", registry, registries)
    configurable: Mapping[str, Mapping[str, Any]] = {"techniques": TECHNIQUES, "explainers": EXPLAINERS}
    settings = {name: _fields(cls) for name, cls in configurable.get(registry, {}).items() if is_dataclass(cls)}
    rows = [_row(name, about, settings.get(name, [])) for name, about in registries[registry].items()]
    if registry == "techniques":
        shared = [field for cls in (Architecture, Training, TextConfig) for field in _fields(cls)]
        rows.append(_row("all of them", "also take these", shared))
    return rows + (_fitted() if registry == "explainers" else [])


def short_measures() -> list[dict[str, Any]]:
    """Return one row per measure, without its perturbations."""
    return [_row(name, measure.sentence, []) for name, measure in all_measures().items()]


def _row(name: str, about: str | None, settings: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "about": (about or "").split("\n")[0], "settings": settings}


def _fitted() -> list[dict[str, Any]]:
    """Fitted explainers; the settings that selectors share are one row."""
    shared = _fields(SelectorConfig)
    rows, selecting = [], []
    for name, method in METHODS.items():
        own = _fields(method)
        if issubclass(method, SelectorConfig):
            own = [field for field in own if field not in shared]
            selecting.append(name)
        cost = f"; {COSTS[name]}" if name in COSTS else ""
        about_method = str(method.__doc__).split("\n")[0].removesuffix(".")
        rows.append(_row(name, f"{about_method} (fitted by fit-explainer{cost})", own))
    about = "also take these, unless they have their own default"
    return [*rows, _row(", ".join(selecting), about, shared)]


def _describe_measure(name: str) -> str:
    """Describe a measure and its perturbation."""
    probe, about = MeasureKey.parse(name).probe, measure_of(name).sentence
    return about if name in all_measures() or not probe else f"{about}  {conditions().get(probe, '')}".rstrip()


def _fields(cls: Any) -> list[dict[str, Any]]:
    """Settings that a user can choose, without those that training fills in; inherited ones come last."""
    about, filled, own = descriptions(cls), getattr(cls, "filled", ()), get_annotations(cls)
    return [
        {"name": field.name, "default": field.default, "about": about.get(field.name)}
        for field in sorted(fields(cls), key=lambda field: field.name not in own)
        if field.name not in filled
    ]
