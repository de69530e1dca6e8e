"""Plausibility and correctness: agreement of the top-weighted words with human rationales, of predictions with labels.

    token-precision, -recall, -f1   of the chosen words: for each text, as many top words as its rationale has
    token-…-micro                   the same pooled over all texts
    iou-f1                          F1 of spans that overlap a rationale span by half or more
    average-precision               how well the weights rank the rationale first
    average-precision/above-random  the same minus the mean over random orders
    auprc                           the trapezoid area under the precision–recall curve, as in ERASER
    rationale-mass                  share of the weight on the rationale

Most rows note their chance level: the expected value for a random choice of as many words, or a random order.

With as many words as the rationale, precision, recall and F1 of a text are equal.  For a signed saliency, the top words
are those with the largest positive weight for the predicted class.  NaN for a text without a rationale.

Graded marks: rationale-mass weights each word by its mark.  The other measures need a set of words: those with a mark
of at least 0.5.

Correctness: accuracy, macro-F1 and calibration of the predictions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.core.maths.distributions import mass_share, top_k
from steadygaze.core.types import Batch
from steadygaze.properties.audit_case import (
    NO_LABELS,
    AuditCase,
    Finding,
    Rows,
    missing_findings,
    texts_without_selection,
)
from steadygaze.properties.measures import correctness_measures, plausibility_measures
from steadygaze.properties.measures.measure import measures_of
from steadygaze.results.intervals import bootstrap_statistic
from steadygaze.results.note import Note, NoteCode

NO_RATIONALES = Note(NoteCode.NO_RATIONALES)
CHOOSE = {"choose": "as many as marked"}
OF_CHOSEN = {name: measure.function for name, measure in measures_of("choice", plausibility_measures.MEASURES).items()}
OF_WEIGHTS = {
    name: measure.function for name, measure in measures_of("ranking", plausibility_measures.MEASURES).items()
}
GRADED = "rationale-mass"
"""The measure that uses graded marks; the others use the words with a mark of at least 0.5."""
RANDOM = "random "
"""Before the name of a measure: its expected value for a random choice or order of the words."""
PAIRS = 1 << 24
"""Word pairs processed at once: some measures compare every pair of words."""
MICRO = ("token-precision-micro", "token-recall-micro", "token-f1-micro")


def plausibility(case: AuditCase) -> Iterator[Finding]:
    if case.rationales is None or not (case.rationales & torch.from_numpy(case.data.text.words)).any():
        yield from missing_findings((*OF_CHOSEN, *OF_WEIGHTS, *MICRO), NO_RATIONALES)
        return
    for name in case.explainers:
        yield from _agreement(case, name, case.rationales)


def _agreement(case: AuditCase, name: str, rationales: Tensor) -> Iterator[Finding]:
    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        weights, marked = (case.gather_rows(values, rows, batch) for values in (case.saliency(name), rationales))
        selected = top_k(weights, batch.mask, (marked & batch.mask).sum(-1))
        scores = {measure: _in_chunks(of, selected, marked, batch.mask) for measure, of in OF_CHOSEN.items()}
        scores |= {measure: _in_chunks(of, weights, marked, batch.mask) for measure, of in OF_WEIGHTS.items()}
        grades = None if case.grades is None else case.gather_rows(case.grades, rows, batch)
        if grades is not None:
            scores[GRADED] = plausibility_measures.rationale_mass(weights, grades, batch.mask)
        tallies = {"tally": plausibility_measures.tally(selected, marked, batch.mask)}
        tallies[RANDOM + "tally"] = plausibility_measures.random_tally(selected, marked, batch.mask)
        return {**scores, **tallies, **_random_weights(marked, grades, batch.mask)}

    scores = case.gather(f"{name} against rationales", work, case.rows(name))
    tallies = scores.pop("tally"), scores.pop(RANDOM + "tally")
    chances = random_agreement(tallies[1], OF_CHOSEN) | {
        measure: scores.pop(RANDOM + measure) for measure in OF_WEIGHTS if RANDOM + measure in scores
    }
    for measure, values in scores.items():
        notes = (Note(NoteCode.GRADED_MARKS),) if measure == GRADED and case.grades is not None else ()
        settings = CHOOSE if measure in OF_CHOSEN else {}
        yield Finding(measure, values, name, settings, notes, chance=chances.get(measure))
    explained = ~texts_without_selection(case, name)
    yield from pooled_agreement(case, name, tallies[0][explained], tallies[1][explained], MICRO, CHOOSE)


def _random_weights(marked: Tensor, grades: Tensor | None, mask: Tensor) -> dict[str, Tensor]:
    """The mean of each measure over all orders of the weights.  (B,T) -> (B,)"""
    return {
        f"{RANDOM}average-precision": plausibility_measures.random_average_precision(marked, mask),
        f"{RANDOM}auprc": plausibility_measures.random_auprc(marked, mask),
        f"{RANDOM}{GRADED}": plausibility_measures.random_mass(marked if grades is None else grades, mask),
    }


def random_agreement(tally: Tensor, names: Iterable[str]) -> dict[str, Tensor]:
    """Precision, recall and F1 of random words, from `random_tally` (N,3), under those of the names that start so."""
    overlap, selected, marked = tally.unbind(-1)
    scores = {
        "token-precision": mass_share(overlap, selected),
        "token-recall": mass_share(overlap, marked),
        "token-f1": mass_share(2 * overlap, selected + marked),
    }
    return {name: scores[name.partition("/")[0]] for name in names if name.partition("/")[0] in scores}


def _in_chunks(of: Callable[..., Tensor], *columns: Tensor) -> Tensor:
    """(B,T) each -> (B,)"""
    count, width = columns[0].shape
    size = max(1, PAIRS // width**2)
    parts = [[column[start : start + size] for column in columns] for start in range(0, count, size)]
    return torch.cat([of(*part).double() for part in parts])


def pooled_agreement(
    case: AuditCase, name: str, tally: Tensor, random: Tensor, names: Sequence[str], settings: dict[str, str]
) -> Iterator[Finding]:
    """Precision, recall and F1 pooled over all texts, under these names; `random`: the tally of random words."""
    tally, random = tally[tally[:, 2] > 0], random[tally[:, 2] > 0]
    if not len(tally):
        yield from (Finding(measure, explainer=name, absent=NO_RATIONALES) for measure in names)
        return

    def rate(draws: NDArray[np.int64], index: int) -> NDArray[np.float64]:
        return plausibility_measures.rates(counts[draws].sum(1))[:, index]

    counts = tally.numpy()  # NumPy is faster than torch for the bootstrap
    n, chances = len(tally), torch.tensor(plausibility_measures.micro(random))
    for index, measure in enumerate(names):
        value, statistic = float(rate(np.arange(n)[None], index)[0]), partial(rate, index=index)
        interval = bootstrap_statistic(statistic, n, seed=case.config.seed) if n > 1 else None
        yield Finding(
            measure, value=value, interval=interval, explainer=name, settings=settings, n=n, chance=chances[index]
        )


OF_LABELS = measures_of("labels", correctness_measures.MEASURES)
OF_ALL_LABELS = [measure.name for measure in correctness_measures.MEASURES if not measure.per_example]


def correctness(case: AuditCase) -> Iterator[Finding]:
    if case.data.label is None:
        yield from missing_findings([*OF_LABELS, *OF_ALL_LABELS], NO_LABELS)
        return
    label = torch.from_numpy(case.data.label)
    for name, measure in OF_LABELS.items():
        yield Finding(name, measure.function(case.probs, label))
    for name, (value, interval) in correctness_measures.set_scores(case.probs, label, case.config.seed).items():
        yield Finding(name, value=value, interval=interval, n=len(case))
