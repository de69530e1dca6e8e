"""Students of a tiny corpus: shared by the tests of fitting."""

from estimator.tiny import LABELS, SMALL, TEXTS, tiny
from training.toys import weights

FEW = {"teachers": 2}
HELD = {"validation": (TEXTS, LABELS)}
"""Given, so that every seed has the same training texts, and so the same vocabulary."""
QUICK = ["--epochs", "1", "--set", "hidden=4", "--set", "dimension=6", "--device", "cpu"]
STUDENTS = ["seat", "anchored", "consensus"]


def student(technique="anchored", **changes):
    inputs = changes.pop("settings", {})
    extra = FEW if technique == "consensus" else {}
    if technique in ("anchored", "consensus") and "synonyms" not in inputs:
        extra = {**extra, "swaps": 0}  # without a table of synonyms, training warns
    settings = {**SMALL, **extra, **inputs}
    return tiny(technique=technique, settings=settings, **changes)


def bits(clf):
    return weights(clf.stored_.model)
