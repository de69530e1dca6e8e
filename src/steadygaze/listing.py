"""What is registered: names, what they are, and their settings."""

from collections.abc import Mapping
from typing import Any

from steadygaze.audit.catalogue import MEASURES
from steadygaze.corpus import CORPORA
from steadygaze.encode import ENCODERS, TRANSFORMER
from steadygaze.errors import unknown
from steadygaze.explain import EXPLAINERS
from steadygaze.model import Architecture
from steadygaze.objective import TECHNIQUES
from steadygaze.order import Reading
from steadygaze.train.settings import Training


def listing(kind: str) -> list[dict[str, Any]]:
    """What is registered: name, what it is, and its settings."""
    kinds: Mapping[str, Mapping[str, Any]] = {
        "corpora": {name: corpus.about for name, corpus in CORPORA.items()},
        "encoders": {
            **{name: tower.about for name, tower in ENCODERS.items()},
            f"{TRANSFORMER}NAME": "any Hugging Face encoder: a hub id, a folder, or minilm",
        },
        "techniques": {name: technique.__doc__ for name, technique in TECHNIQUES.items()},
        "explainers": {name: explainer.__doc__ for name, explainer in EXPLAINERS.items()},
        "measures": {name: measure.about for name, measure in MEASURES.items()},
    }
    if kind not in kinds:
        raise unknown("kind of thing to list", kind, kinds)
    settings = {name: _fields(technique) for name, technique in TECHNIQUES.items()} if kind == "techniques" else {}
    rows = [
        {"name": name, "about": (about or "").split("\n")[0], "settings": settings.get(name, [])}
        for name, about in kinds[kind].items()
    ]
    if kind == "techniques":
        shared = [field for cls in (Architecture, Training, Reading) for field in _fields(cls)]
        rows.append({"name": "all of them", "about": "take these as well", "settings": shared})
    return rows


def _fields(cls: Any) -> list[dict[str, Any]]:
    described = cls.__pydantic_fields__
    return [{"name": n, "default": field.default, "about": field.description} for n, field in described.items()]
