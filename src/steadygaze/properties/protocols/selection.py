"""Size, position, plausibility and label leakage of a selection of words.

    selected-share             share of the words
    selected-spans             number of spans
    first-sentence             whether a word of the first sentence is selected (X1)
    first-sentence/rationales  whether the human rationale has a word of it: X1 of a perfect selection
    token-precision/selected, -recall, -f1, and micro    of the selected words against the human rationale

A rationalizer defines its own sentences; for other models they come from the corpus.

Label leakage, for explanations that select words and have an independent reader:

    independent-reader-accuracy                how often the reader predicts the same class from the selected words
    independent-reader-accuracy/random-words   the same from as many random words
    independent-reader-accuracy/no-words       the same from nothing
    independent-reader-accuracy/by-class       the first, for each predicted class
    leakage-gap                                how much more often a network trained on the selections does
    leakage-gap/black-box                      the same against the model itself, from the selected words alone
    leakage-gap/raw                            of rationalizers: texts are counted for which any selection is the same
    arbitrary-selection                        how often any selection gives the class, and the reader misses it
    arbitrary-selection/by-class               the same, for each predicted class

The reader was trained on random masks together with the explainer or the model; the audit trains nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.explainers.explainer import PREDICTED, Saliency, class_balanced
from steadygaze.explainers.learned.removal_effects import predict_selected
from steadygaze.models.inference import selects
from steadygaze.properties.audit_case import AuditCase, Finding, Rows, missing_findings, selecting_explainers
from steadygaze.properties.measures import plausibility_measures, shortcut_measures
from steadygaze.properties.measures import plausibility_measures as measure
from steadygaze.properties.measures.measure import measures_of
from steadygaze.properties.property import Advice, AdviceKind, Threshold
from steadygaze.properties.protocols.plausibility import NO_RATIONALES, pooled_agreement, random_agreement
from steadygaze.results.leakage_warnings import (
    ARBITRARY,
    CLASS_MEASURES,
    CLASS_PROBE,
    GAP,
    MARGIN,
    RAW_GAP,
    READER,
)
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import MeasureKey

SELECTED = "selected"
SIZE = measures_of("selection", plausibility_measures.MEASURES)
FIRST, FIRST_RATIONALE = "first-sentence", "first-sentence/rationales"
AGREEMENT = {
    str(MeasureKey(name, SELECTED)): measure.function
    for name, measure in measures_of("choice", plausibility_measures.MEASURES, SELECTED).items()
}
MICRO = ("token-precision-micro/selected", "token-recall-micro/selected", "token-f1-micro/selected")
NOTHING_SELECTS, NO_SENTENCE_ENDS = Note(NoteCode.NOTHING_SELECTS), Note(NoteCode.NO_SENTENCE_ENDS)


def selection(case: AuditCase) -> Iterator[Finding]:
    names = selecting_explainers(case)
    for name in names:
        scores = case.gather(f"selection by {name}", lambda r, b, n=name: _size(case, n, r, b), case.rows(name))  # type: ignore[misc]
        yield from (Finding(measure_name, values, name) for measure_name, values in scores.items())
    yield from missing_findings(() if names else (*SIZE, FIRST, FIRST_RATIONALE), NOTHING_SELECTS)
    if names and not knows_sentences(case):
        yield from missing_findings((FIRST, FIRST_RATIONALE), NO_SENTENCE_ENDS)
    elif names:
        yield replace(_first_sentence_rationale(case), explainer=names[0])


def rationale_agreement(case: AuditCase) -> Iterator[Finding]:
    names, rationales = selecting_explainers(case), case.rationales
    marked = rationales is not None and bool((rationales & torch.from_numpy(case.data.text.words)).any())
    if not names or rationales is None or not marked:
        yield from missing_findings((*AGREEMENT, *MICRO), NO_RATIONALES if names else NOTHING_SELECTS)
        return
    for name in names:
        yield from _agreement(case, name, rationales)


def sentences(case: AuditCase) -> Tensor | None:
    """(M,) the sentence of each token for a model that selects sentences, else None."""
    model = case.model
    if not selects(model) or model.selection_config.granularity == "token":
        return None
    numbers = torch.full((len(case.data.text.ids),), -1)
    for rows, batch in case.batches():
        case.scatter_rows(numbers, rows, batch, model.sentences(batch))
    return numbers


def _size(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    selected = case.gather_rows(case.saliency(name), rows, batch) != 0
    sizes = {measure_name: of.score({"selected": selected, "mask": batch.mask}) for measure_name, of in SIZE.items()}
    first = first_sentence(case, rows, batch)
    return sizes if first is None else {**sizes, FIRST: measure.first_sentence(selected, first, batch.mask)}


def _first_sentence_rationale(case: AuditCase) -> Finding:
    rationales = case.rationales
    if rationales is None:
        return Finding(FIRST_RATIONALE, absent=NO_RATIONALES)

    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        marked, first = case.gather_rows(rationales, rows, batch), first_sentence(case, rows, batch)
        assert first is not None
        values = measure.first_sentence(marked, first, batch.mask)
        return {"first": values.masked_fill(~(marked & batch.mask).any(-1), torch.nan)}

    return Finding(FIRST_RATIONALE, case.gather("position of the rationales", work)["first"])


def _agreement(case: AuditCase, name: str, rationales: Tensor) -> Iterator[Finding]:
    def work(rows: Rows, batch: Batch) -> dict[str, Tensor]:
        weights, marked = (case.gather_rows(values, rows, batch) for values in (case.saliency(name), rationales))
        scores = {name: score(weights != 0, marked, batch.mask).double() for name, score in AGREEMENT.items()}
        tallies = (of(weights != 0, marked, batch.mask) for of in (measure.tally, measure.random_tally))
        return {**scores, **dict(zip(("tally", "random tally"), tallies, strict=True))}

    scores = case.gather(f"selection by {name} against rationales", work, case.rows(name))
    tally, random = scores.pop("tally"), scores.pop("random tally")
    chances = random_agreement(random, AGREEMENT)
    yield from (
        Finding(measure_name, values, name, chance=chances[measure_name]) for measure_name, values in scores.items()
    )
    yield from pooled_agreement(case, name, tally, random, MICRO, {})


def knows_sentences(case: AuditCase) -> bool:
    return case.first is not None or (selects(case.model) and bool(case.model.ends.any()))


def first_sentence(case: AuditCase, rows: Rows, batch: Batch) -> Tensor | None:
    """(B,T) bool; None if the sentences are unknown."""
    model = case.model
    if selects(model) and bool(model.ends.any()):
        sentences: Tensor = model.sentences(batch)
        return sentences == 0
    return None if case.first is None else case.gather_rows(case.first, rows, batch)


NAMES = [str(key) for m in shortcut_measures.MEASURES for key in m.keys if key.measure in (READER, GAP, ARBITRARY)]
GAP_THRESHOLD = Threshold(
    MARGIN,
    2 * MARGIN,
    "a network trained on the selections recovers the label {size} {more} often than an independent reader",
    remark=NoteCode.EXEMPT_TEXTS,
    advice=Advice(AdviceKind.MITIGATION),
)
"""Thresholds of the leakage gap."""
NO_READER = Note(NoteCode.NO_INDEPENDENT_READER)


def label_leakage(case: AuditCase) -> Iterator[Finding]:
    names = selecting_explainers(case)
    readings = {
        name: case.gather(f"{name} read independently", partial(_readings, case, name), case.rows(name))
        for name in names
    }
    predicted = case.probs.argmax(-1)
    scores = {name: class_balanced({**values, PREDICTED: predicted}) for name, values in readings.items() if values}
    for name, values in scores.items():
        yield from (
            Finding(measure, numbers, name, notes=_exempt(values) if measure == GAP else ())
            for measure, numbers in values.items()
            if measure != PREDICTED
        )
        for measure_name in CLASS_MEASURES:
            yield from _by_class(case, name, measure_name, values)
    if not scores:
        yield from missing_findings(NAMES, NO_READER if names else NOTHING_SELECTS)


def _readings(case: AuditCase, name: str, rows: Rows, batch: Batch) -> dict[str, Tensor]:
    weights = case.gather_rows(case.saliency(name), rows, batch)
    logits = case.probs[torch.from_numpy(rows)].to(weights.device).log()
    readings = case.explainers[name].readings(case.model, batch, Saliency(weights, logits))
    if readings is None:
        return {}
    selected_logits = None if selects(case.model) else predict_selected(case.model, batch, weights > 0)
    return readings.measures(logits, selected_logits)


def _exempt(measures: Mapping[str, Tensor]) -> tuple[Note, ...]:
    """The note of a leakage gap that leaves out texts, if any of them changes it."""
    gap, raw = measures[GAP], measures.get(RAW_GAP)
    if raw is None or bool((raw == gap)[gap.isfinite()].all()):
        return ()
    return (note(NoteCode.EXEMPT_TEXTS, value=float(raw.nanmean())),)


def _by_class(case: AuditCase, name: str, measure_name: str, measures: Mapping[str, Tensor]) -> Iterator[Finding]:
    """One finding for each predicted class."""
    if (values := measures.get(measure_name)) is None:
        return
    predicted, key = case.probs.argmax(-1), str(MeasureKey(measure_name, CLASS_PROBE))
    for index in sorted(set(predicted[values.isfinite()].tolist())):
        label = str(case.classes[index]) if case.classes else str(index)
        yield Finding(key, values.masked_fill(predicted != index, torch.nan), name, {"class": label})
