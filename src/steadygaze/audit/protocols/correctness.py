"""Is the label right, and does the model know when it is?"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.finding import NO_LABELS, Finding, missing_findings
from steadygaze.audit.measures import correctness_measures
from steadygaze.results.row import bootstrap_rows

Statistic = Callable[[NDArray[np.int64]], float]


def correctness(case: AuditCase) -> Iterator[Finding]:
    if case.data.label is None:
        yield from missing_findings(("accuracy", "macro-f1", "expected-calibration-error"), NO_LABELS)
        return
    label = torch.from_numpy(case.data.label)
    yield Finding("accuracy", correctness_measures.accuracy(case.probs, label))
    for name, statistic in _whole(case, label).items():
        # None of calibration: its draws lie above it, since what is uneven by chance counts twice in them.
        several = len(case) > 1 and name == "macro-f1"
        interval = bootstrap_rows(statistic, len(case), seed=case.plan.seed) if several else None
        yield Finding(name, value=statistic(case.all_rows), interval=interval, n=len(case))


def _whole(case: AuditCase, label: torch.Tensor) -> dict[str, Statistic]:
    """Numbers of a whole set, of any rows of it: a thousand draws ask for them a thousand times."""
    classes = case.probs.shape[-1]
    pairs = (label * classes + case.probs.argmax(-1)).numpy()
    places, surplus = (part.numpy() for part in correctness_measures.calibration_gaps(case.probs, label))

    def macro(rows: NDArray[np.int64]) -> float:
        counts = np.bincount(pairs[rows], minlength=classes**2).reshape(classes, classes)
        return correctness_measures.macro_f1_of(counts)

    def miscalibrated(rows: NDArray[np.int64]) -> float:
        return float(np.abs(np.bincount(places[rows], surplus[rows])).sum() / len(rows))

    return {"macro-f1": macro, "expected-calibration-error": miscalibrated}
