"""Whoever's model it is: made into a Subject that explainers and audits can ask."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier, load
from steadygaze.subject.ours import ours
from steadygaze.subject.subject import Subject
from steadygaze.types import Label

__all__ = ["Subject", "as_subject"]


def as_subject(given: Any, *, classes: Sequence[Label] | None = None, device: str = "auto") -> Subject:
    """From a TextClassifier, a folder or hub id, a (model, tokenizer) of transformers, or any texts -> probabilities.

    `classes` names the classes in the order of the probabilities, where the model does not say.
    """
    if isinstance(given, Subject):
        return given
    if isinstance(given, TextClassifier):
        return ours(given)
    if isinstance(given, str | Path):
        return ours(load(given, device), Path(given).name)
    raise UserError(f"cannot audit {given!r:.80}")
