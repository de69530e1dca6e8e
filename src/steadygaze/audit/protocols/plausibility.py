"""Do people agree?  The heaviest words against the words a person marked.

    token-precision, -recall, -f1   of the chosen words: as many of the heaviest as the person marked, text by text
    token-…-micro                   the same over the words of all texts together
    iou-f1                          of runs of chosen words that match a run of marked ones by half or more
    average-precision               how well the weights rank marked words above the others
    average-precision/above-random  the same minus what a random order of these words is worth
    auprc                           the same as the trapezoid area under precision by recall: ERASER's number
    rationale-mass                   which part of the weight lies on marked words

As many as marked: precision, recall and F1 of a text are then one number, and an explanation is not blamed for a length
that it was not asked to choose.  Where a saliency tells for from against, the words most for the predicted class are
its heaviest.  NaN where nobody marked a word that is read.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.audit.audit_case import AuditCase, Rows
from steadygaze.audit.finding import Finding, missing_findings, texts_without_selection
from steadygaze.audit.measures import plausibility_measures
from steadygaze.core.maths.ranking import top_k
from steadygaze.core.types import Batch
from steadygaze.results.row import bootstrap_rows

NOBODY = "nobody marked rationales in these texts"
CHOOSE = {"choose": "as many as marked"}
OF_CHOSEN = {
    "token-precision": plausibility_measures.token_precision,
    "token-recall": plausibility_measures.token_recall,
    "token-f1": plausibility_measures.token_f1,
    "iou-f1": plausibility_measures.iou_f1,
}
OF_WEIGHTS = {
    "average-precision": plausibility_measures.average_precision,
    "average-precision/above-random": plausibility_measures.average_precision_above_random,
    "auprc": plausibility_measures.auprc,
    "rationale-mass": plausibility_measures.rationale_mass,
}
PAIRS = 1 << 24
"""Compared at once: some measures look at every pair of words."""
MICRO = ("token-precision-micro", "token-recall-micro", "token-f1-micro")


def plausibility(case: AuditCase) -> Iterator[Finding]:
    if case.rationales is None or not (case.rationales & torch.from_numpy(case.data.text.words)).any():
        yield from missing_findings((*OF_CHOSEN, *OF_WEIGHTS, *MICRO), NOBODY)
        return
    for name in case.explainers:
        yield from _agreement(case, name, case.rationales)


def _agreement(case: AuditCase, name: str, rationales: Tensor) -> Iterator[Finding]:
    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        weights, marked = (case.gather_rows(one, rows, batch) for one in (case.saliency(name), rationales))
        chosen = top_k(weights, batch.mask, (marked & batch.mask).sum(-1))
        found = {measure: _in_parts(of, chosen, marked, batch.mask) for measure, of in OF_CHOSEN.items()}
        found |= {measure: _in_parts(of, weights, marked, batch.mask) for measure, of in OF_WEIGHTS.items()}
        return {**found, "tally": plausibility_measures.tally(chosen, marked, batch.mask)}

    found = case.gather(f"{name} and people", work, case.rows(name))
    tally = found.pop("tally")[~texts_without_selection(case, name)]
    for measure, values in found.items():
        yield Finding(measure, values, name, CHOOSE if measure in OF_CHOSEN else {})
    yield from pooled_agreement(case, name, tally, MICRO, CHOOSE)


def _in_parts(of: Callable[..., Tensor], *columns: Tensor) -> Tensor:
    """(B,T) each -> (B,), so many texts at a time as have PAIRS pairs of words"""
    count, width = columns[0].shape
    many = max(1, PAIRS // width**2)
    parts = [[column[start : start + many] for column in columns] for start in range(0, count, many)]
    return torch.cat([of(*part).double() for part in parts])


def pooled_agreement(
    case: AuditCase, name: str, tally: Tensor, names: Sequence[str], how: dict[str, str]
) -> Iterator[Finding]:
    """Precision, recall and F1 of all texts, by these names."""
    tally = tally[tally[:, 2] > 0]
    if not len(tally):
        yield from (Finding(measure, explainer=name, absent=NOBODY) for measure in names)
        return

    def of(rows: NDArray[np.int64], place: int) -> float:
        return plausibility_measures.rates(*counts[rows].sum(0).tolist())[place]

    counts = tally.numpy()  # resampled a thousand times: NumPy costs less for each draw than torch
    n, several = len(tally), len(tally) > 1
    for place, measure in enumerate(names):
        value, one = of(np.arange(n), place), partial(of, place=place)
        interval = bootstrap_rows(one, n, seed=case.plan.seed) if several else None
        yield Finding(measure, value=value, interval=interval, explainer=name, settings=how, n=n)
