"""Comparisons small enough for a test: a few planted reviews, an encoder that learns nothing much, one epoch."""

import sys
from pathlib import Path

import numpy as np
import pytest

from steadygaze.data.planted.lexicon import SYNONYMS as PLANTED
from steadygaze.properties import PROPERTIES
from steadygaze.properties.protocols.faithfulness import erasure, gradient_agreement
from steadygaze.properties.protocols.plausibility import correctness
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.properties.protocols.stability import robustness, stability
from steadygaze.results.comparison import Comparison
from steadygaze.results.note import Note, text_note
from steadygaze.results.report import Report
from steadygaze.results.row import MeasureKey, Row, ValueKey, Verdict
from steadygaze.study.cells import StudyCell
from steadygaze.study.compare import StudyRuntime, compare
from steadygaze.study.compare_config import CompareConfig

DATA = "planted-reviews:sizes=[60,20,16]"
TWO = ("vanilla", "anchored")
SYNONYMS = {word: list(others) for word, others in PLANTED.items()}
NO_SWAPS = {"anchored": {"swaps": 0}}
"""Without a table of synonyms, training warns."""


def config_with(**changes: object) -> CompareConfig:
    usual: dict[str, object] = {
        "data": DATA,
        "techniques": ("vanilla", "word-at"),
        "seeds": 1,
        "encoder": "average",
        "epochs": 1,
        "settings": {"hidden": 4, "dimension": 6},
        "synonyms": SYNONYMS,
    }
    return CompareConfig(**{**usual, **changes})  # type: ignore[arg-type]


def run(out: Path, config: CompareConfig | None = None, **machine: object) -> Comparison:
    return compare(config or config_with(), StudyRuntime(out, device="cpu", **machine))  # type: ignore[arg-type]


def quicken(patch: pytest.MonkeyPatch) -> None:
    """An audit of the same code with fewer protocols, without what only its own page shows."""
    few = (correctness, stability, robustness, erasure, gradient_agreement, shortcut_leakage)
    few_checks = {name: [check for check in item.checks if check.run in few] for name, item in PROPERTIES.items()}
    patch.setattr("steadygaze.auditing.audit.all_checks", lambda: few_checks)
    patch.setattr("steadygaze.auditing.audit_report.plot_points", lambda *_: {})
    patch.setattr("steadygaze.auditing.audit_report.largest_shifts", lambda *_: ())
    whole_set = sys.modules[correctness.__module__]  # the package has a function of that name
    patch.setattr(whole_set, "bootstrap_statistic", lambda *_, **__: (0.0, 1.0))


def cell(technique: str, seed: int, values: dict[str, object], absent: dict[str, Note] | None = None) -> StudyCell:
    """As an audit leaves it: arrays are numbers of texts, others are numbers of the whole set."""
    known = {"corpus": "tiny", "model": f"{technique}{seed}", "seed": 0, "explainer": "attention"}
    arrays = {
        ValueKey(MeasureKey.parse(name), "attention"): value
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }
    rows = [
        Row(name, float(np.nanmean(value)), value.size if isinstance(value, np.ndarray) else 9, None, known)  # type: ignore[arg-type]
        for name, value in values.items()
    ]
    rows += [Row(name, float("nan"), 0, None, known, absent=why) for name, why in (absent or {}).items()]
    verdicts = (Verdict("Stability", "yes" if seed else "undecided", (text_note("because"),)),)
    return StudyCell(
        technique, seed, arrays, Report("Audit", tuple(rows), verdicts, facts={"explanation": "attention"})
    )
