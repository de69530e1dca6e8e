"""Accuracy, macro-F1 and calibration of the predictions."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.finding import NO_LABELS, Finding, missing_findings
from steadygaze.audit.measures import correctness_measures
from steadygaze.results.bootstrap import bootstrap_statistic

Statistic = Callable[[NDArray[np.int64]], float]


def correctness(case: AuditCase) -> Iterator[Finding]:
    if case.data.label is None:
        yield from missing_findings(("accuracy", "macro-f1", "expected-calibration-error"), NO_LABELS)
        return
    label = torch.from_numpy(case.data.label)
    yield Finding("accuracy", correctness_measures.accuracy(case.probs, label))
    for name, statistic in _set_statistics(case, label).items():
        # The calibration error has no interval: bootstrap draws overestimate it.
        bootstrappable = len(case) > 1 and name == "macro-f1"
        interval = bootstrap_statistic(statistic, len(case), seed=case.config.seed) if bootstrappable else None
        yield Finding(name, value=statistic(case.all_rows), interval=interval, n=len(case))


def _set_statistics(case: AuditCase, label: torch.Tensor) -> dict[str, Statistic]:
    """Functions from rows to a number, for the bootstrap."""
    classes = case.probs.shape[-1]
    pairs = (label * classes + case.probs.argmax(-1)).numpy()
    bins, gaps = (part.numpy() for part in correctness_measures.calibration_gaps(case.probs, label))

    def macro(rows: NDArray[np.int64]) -> float:
        counts = np.bincount(pairs[rows], minlength=classes**2).reshape(classes, classes)
        return correctness_measures.macro_f1_of(counts)

    def calibration_error(rows: NDArray[np.int64]) -> float:
        return float(np.abs(np.bincount(bins[rows], gaps[rows])).sum() / len(rows))

    return {"macro-f1": macro, "expected-calibration-error": calibration_error}
