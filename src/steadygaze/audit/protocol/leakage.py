"""Does the label leak through the selection?  Asked of explanations that select words and have an independent reader.

    independent-reader-accuracy                how often the reader gives the predicted class from the selected words
    independent-reader-accuracy/random-words   the same from as many random words
    independent-reader-accuracy/no-words       the same from nothing
    independent-reader-accuracy/by-class       the first, for each predicted class
    leakage-gap                                how much more often the network trained on the selections gives it
    leakage-gap/black-box                      the same against the model itself, from the selected words alone

The reader was trained on random masks when the explainer was fitted, or the model trained; the audit trains nothing.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from steadygaze.audit.case import Case, Rows
from steadygaze.audit.finding import Finding
from steadygaze.audit.names import of
from steadygaze.audit.protocol.absent import absent
from steadygaze.audit.protocol.selecting import selecting
from steadygaze.explain.explainer import Saliency
from steadygaze.explain.learned.posthoc import said_of
from steadygaze.explain.readings import PREDICTED, evened
from steadygaze.rationaliser import Rationaliser
from steadygaze.report.warned import BY_CLASS, READER
from steadygaze.types import Batch

NAMES = of(READER, "leakage-gap")
NO_SELECTION = "neither the model nor an explanation that was asked about selects words"
NO_READER = "no independent reader was trained for what is selected"


def leakage(case: Case) -> Iterator[Finding]:
    names = selecting(case)
    found = {
        name: case.gather(f"{name} read independently", partial(_read, case, name), case.rows(name)) for name in names
    }
    said = case.probs.argmax(-1)
    known = {name: evened({**values, PREDICTED: said}) for name, values in found.items() if values}
    for name, values in known.items():
        yield from (Finding(measure, numbers, name) for measure, numbers in values.items() if measure != PREDICTED)
        yield from _by_class(case, name, values[READER])
    if not known:
        yield from absent(NAMES, NO_READER if names else NO_SELECTION)


def _read(case: Case, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    weights = case.of(case.saliency(name), rows, batch)
    logits = case.probs[torch.from_numpy(rows)].to(weights.device).log()
    readings = case.explainers[name].readings(case.model, batch, Saliency(weights, logits))
    if readings is None:
        return {}
    alone = None if isinstance(case.model, Rationaliser) else said_of(case.model, batch, weights > 0)
    return readings.measures(logits, alone)


def _by_class(case: Case, name: str, values: Tensor) -> Iterator[Finding]:
    """One finding for each class that is predicted."""
    predicted = case.probs.argmax(-1)
    for index in sorted(set(predicted[values.isfinite()].tolist())):
        label = str(case.classes[index]) if case.classes else str(index)
        yield Finding(BY_CLASS, values.masked_fill(predicted != index, torch.nan), name, {"class": label})
