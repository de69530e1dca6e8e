"""Advice: what to try after a no, or what would decide a verdict, as data.  report/sentences.py has its sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

FEW_TEXTS = "which may not help with fewer than about 4,000 training texts"
"""A caveat of random pretraining (docs/results/shortcuts.md).  Attention was measured on IMDB alone, which has more."""


class AdviceKind(StrEnum):
    """What to do."""

    OTHER_EXPLAINER = "other-explainer"
    """Audit another explainer of the model."""
    TRAIN = "train"
    """Train with the options of the advice."""
    STABLE_ATTENTION = "stable-attention"
    """Train a technique that steadies attention; its options depend on the model."""
    MITIGATION = "mitigation"
    """Fit a learned explainer again with a mitigation; train another rationalizer."""

    # Found by the verdict rules
    AUDIT_FEWEST = "audit-fewest"
    BUILD_SYNONYM_TABLE = "build-synonym-table"
    COMPARE_EXPLAINERS = "compare-explainers"
    COMPARE_WITH_CONSTANT = "compare-with-constant"
    DECIDE_FIRST = "decide-first"
    """Decide a property that this one depends on; its advice follows."""
    IMPROVE_MODEL = "improve-model"
    LABEL_MORE_TEXTS = "label-more-texts"
    MORE_OF_A_CLASS = "more-of-a-class"
    MORE_TEXTS = "more-texts"
    NOT_MORE_TEXTS = "not-more-texts"
    """More texts do not decide it."""
    OTHER_RATIONALIZER = "other-rationalizer"
    PASS_SYNONYM_TABLE = "pass-synonym-table"
    TOO_FEW_OF_A_CLASS = "too-few-of-a-class"
    TOO_FEW_TEXTS = "too-few-texts"
    TOO_FEW_TO_DECIDE = "too-few-to-decide"


@dataclass(frozen=True)
class Advice:
    """What to do next."""

    kind: AdviceKind = AdviceKind.OTHER_EXPLAINER
    """What to do."""
    goal: str = ""
    """The purpose of the options of `train`: 'a technique against shortcuts'."""
    options: tuple[str, ...] = ()
    """Options of `train`."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and names, as its sentence has them."""
    command: tuple[str, ...] = ()
    """The words of the command; empty: there is none."""
