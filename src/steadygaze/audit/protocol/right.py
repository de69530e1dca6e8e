"""Is the label right, and does the model know when it is?"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from steadygaze.audit.case import Case
from steadygaze.audit.finding import Finding
from steadygaze.audit.measure.calibration import expected_calibration_error
from steadygaze.report.interval import bootstrap_rows

NO_LABELS = "the texts have no labels"


def right(case: Case) -> Iterator[Finding]:
    label = case.data.label
    if label is None:
        for name in ("accuracy", "macro-f1", "expected-calibration-error"):
            yield Finding(name, absent=NO_LABELS)
        return
    predicted = case.probs.argmax(-1).numpy()
    gold = torch.from_numpy(label)

    def macro(rows: NDArray[np.int64]) -> float:
        return float(f1_score(label[rows], predicted[rows], average="macro", zero_division=0.0))

    def miscalibrated(rows: NDArray[np.int64]) -> float:
        return expected_calibration_error(case.probs[rows], gold[rows])

    yield Finding("accuracy", torch.from_numpy(predicted == label).double())
    for name, statistic in (("macro-f1", macro), ("expected-calibration-error", miscalibrated)):
        interval = bootstrap_rows(statistic, len(case), seed=case.plan.seed) if len(case) > 1 else None
        yield Finding(name, value=statistic(case.everything), interval=interval, settings={"n": len(case)})
