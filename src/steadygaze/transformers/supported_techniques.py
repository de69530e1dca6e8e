"""Techniques that train a network with its own head: they need its word vectors and logits, nothing else."""

from collections.abc import Mapping
from typing import Any

from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.models.classifier import Classifier
from steadygaze.techniques import TECHNIQUES, find_technique
from steadygaze.techniques.technique import Player, Stage, Technique

SUPPORTED = ("vanilla", "word-at", "word-iat")
WORKS = f"{', '.join(SUPPORTED)} and techniques of your own that need embeddings and logits only"


def resolve_technique(technique: str | Technique, settings: Mapping[str, Any]) -> Technique:
    """The technique of a name and its settings; others than those that work are refused."""
    if isinstance(technique, Technique):
        if settings:
            raise UserError("technique_settings belong to a technique by name: set the fields of your Technique")
        resolved = technique
    else:
        resolved = build(find_technique(technique), dict(settings))
    if reason := _problem(resolved):
        raise UserError(
            f"the technique {technique_name(resolved)!r} cannot train a network with its own head: {reason}.  "
            f"These work: {WORKS}; TextClassifier(encoder='transformer:…') trains with all techniques"
        )
    return resolved


def technique_name(technique: Technique) -> str:
    """The registered name of a technique, or its class."""
    kind = type(technique)
    return next((name for name in TECHNIQUES if TECHNIQUES[name] is kind), kind.__name__)


def _problem(technique: Technique) -> str | None:
    kind = type(technique)
    if technique.kind is not Classifier:
        return "it selects a rationale"
    if technique.stages(0) != (Stage("train"),):
        return "it trains in stages, with a reference or teachers"
    if technique.substitutes_words:
        return "it reads a table of synonyms; synonym_groups= with word-at has a larger effect"
    if technique.players() != (Player(),) or kind.modules is not Technique.modules:
        return "it trains auxiliary networks"
    if kind.__module__.startswith("steadygaze.") and technique_name(technique) not in SUPPORTED:
        return "it needs attention weights of this package"
    return None
