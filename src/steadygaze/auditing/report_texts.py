"""The texts of a report: explanations, wrong predictions, and the largest shifts under each perturbation."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from steadygaze.auditing.prepare_case import PreparedCase
from steadygaze.core.types import Span, texts_of
from steadygaze.data.batches import collate
from steadygaze.data.token_alignment import mean_of_words, merge_words
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.estimator.explain_texts import rationale_spans
from steadygaze.properties.audit_case import Finding, PerturbedSaliency, Rows
from steadygaze.properties.probes.text_perturbations import PerturbedBatch
from steadygaze.results.evaluation import Evaluation, tabulate
from steadygaze.results.explanation import Explanation, Explanations
from steadygaze.results.row import Row, Shift

EVALUATED = ("accuracy", "macro-f1", "expected-calibration-error")
"""Measures of the evaluation."""
WRONG, EXPLAINED = 20, 200
"""Wrong predictions and explanations in a report."""
SHIFTS_PER_PROBE = 3
"""Texts per probe."""
SHIFT_MEASURE = "jensen-shannon/"


def evaluation_and_explanations(
    prepared: PreparedCase, explainer: str, rows: Sequence[Row]
) -> tuple[Evaluation | None, Explanations]:
    """The predictions against the labels, if any, with explanations; and the explanations of the first texts."""
    case, adapter = prepared.case, prepared.adapter
    evaluation = None
    if case.data.label is not None:
        scores = [row for row in rows if row.measure in EVALUATED and row.n]
        texts, probs = [example.text for example in prepared.examples], case.probs.numpy()
        evaluation = tabulate(adapter.name, adapter.classes, scores, texts, case.data.label, probs, WRONG)
        evaluation = replace(evaluation, training_texts=adapter.training_overlap(texts_of(prepared.examples)))
    explained = case.rows(explainer)
    wrong = [] if evaluation is None else [error.row for error in evaluation.errors]
    chosen = np.union1d(explained[:EXPLAINED], np.intersect1d(explained, wrong)).astype(np.int64)
    explanations = _explain_rows(prepared, explainer, chosen)
    if evaluation is not None:
        errors = tuple(replace(error, explanation=explanations.get(error.row)) for error in evaluation.errors)
        evaluation = replace(evaluation, errors=errors)
    return evaluation, Explanations(explanations[row] for row in explained[:EXPLAINED].tolist())


def _explain_rows(prepared: PreparedCase, explainer: str, rows: Rows) -> dict[int, Explanation]:
    """The explanations of these texts by row, from the saliency that the audit has computed."""
    case, labels = prepared.case, prepared.case.data.label
    batch = collate(case.data, rows)
    if explainer == "rationale":  # the selected spans need another forward pass
        original = PerturbedBatch(batch.to(case.model.device), None, torch.zeros(len(rows)))
        explanations = _explanations(prepared, explainer, rows, original)
    else:
        clean = PerturbedSaliency(case.saliency(explainer), case.probs)
        explanations = _from_saliency(prepared, explainer, rows, clean)
    return {
        row: replace(
            explanation,
            true_label=None if labels is None else prepared.adapter.classes[labels[row]],
            rationales=prepared.examples[row].rationales,
        )
        for row, explanation in zip(rows.tolist(), explanations, strict=True)
    }


def _from_saliency(
    prepared: PreparedCase, explainer: str, rows: Rows, outputs: PerturbedSaliency
) -> Iterator[Explanation]:
    """The explanations of texts with their own words, from outputs that the audit has computed."""
    case = prepared.case
    batch = collate(case.data, rows)
    weights, probs = case.gather_rows(outputs.weights, rows, batch), outputs.probs[rows].tolist()
    for i, row in enumerate(rows.tolist()):
        yield _explanation(prepared, row, explainer, weights[i][batch.mask[i]].tolist(), probs[i], {})


def largest_shifts(
    prepared: PreparedCase, explainer: str, findings: Sequence[Finding], limit: int = SHIFTS_PER_PROBE
) -> tuple[Shift, ...]:
    """The texts with the largest shift under each probe, largest first, and the text with the smallest."""
    probes = prepared.case.probes
    shifts: list[Shift] = []
    for finding in findings:
        name = finding.measure.removeprefix(SHIFT_MEASURE)
        is_shift = finding.measure.startswith(SHIFT_MEASURE) and name in probes and finding.explainer == explainer
        if is_shift and finding.values is not None:
            shifts += _worst(prepared, explainer, name, finding.values, limit)
    return tuple(shifts)


def extreme_rows(divergence: Tensor, limit: int) -> Tensor:
    """The texts with the largest shifts, largest first, and the one with the smallest; shifts of 0 do not count."""
    order = divergence.nan_to_num(nan=-1.0).argsort(descending=True, stable=True)
    shifted = order[divergence[order] > 0]
    return torch.cat([shifted[:limit], shifted[limit:][-1:]])


def _worst(prepared: PreparedCase, explainer: str, probe: str, divergence: Tensor, limit: int) -> Iterator[Shift]:
    rows = extreme_rows(divergence, limit).numpy()
    if not len(rows):
        return
    case = prepared.case
    kept = case.perturbed.get((probe, explainer))
    if kept is not None and explainer != "rationale":  # selected spans need another forward pass
        clean = PerturbedSaliency(case.saliency(explainer), case.probs)
        for states in zip(
            rows.tolist(), *(_from_saliency(prepared, explainer, rows, of) for of in (clean, kept)), strict=True
        ):
            yield Shift(probe, float(divergence[states[0]]), states[1], states[2])
        return
    batch = collate(case.data, rows).to(case.model.device)
    after = case.probes[probe].move(case.model, batch)
    for states in zip(
        rows.tolist(),
        _explanations(prepared, explainer, rows, PerturbedBatch(batch, None, after.touched)),
        _explanations(prepared, explainer, rows, after),
        strict=True,
    ):
        row, old, new = states
        yield Shift(probe, float(divergence[row]), old, new)


def _explanations(
    prepared: PreparedCase, explainer: str, rows: np.ndarray, at: PerturbedBatch
) -> Iterator[Explanation]:
    saliency = prepared.case.explainers[explainer].explain(prepared.case.model, at.batch, embedded=at.embedded)
    chances = None if saliency.chances is None else saliency.chances.double().cpu()
    weights, probs = saliency.weights.double().cpu(), saliency.logits.double().softmax(-1).cpu()
    mask, ids = at.batch.mask.cpu(), at.batch.ids.cpu()
    clean = collate(prepared.case.data, rows).ids
    for i, row in enumerate(rows.tolist()):
        new = [(position, int(ids[i, t])) for position, t in enumerate(_positions(mask[i])) if ids[i, t] != clean[i, t]]
        explanation = _explanation(prepared, row, explainer, weights[i][mask[i]].tolist(), probs[i].tolist(), dict(new))
        if saliency.sentences is not None:
            explanation = replace(explanation, sentences=int(saliency.sentences[i]))
        yield (
            explanation
            if chances is None
            else _with_rationale(prepared, row, explanation, chances[i][mask[i]].tolist())
        )


def _explanation(
    prepared: PreparedCase, row: int, explainer: str, weights: list[float], probs: list[float], new: dict[int, int]
) -> Explanation:
    example, adapter = prepared.examples[row], prepared.adapter
    text, spans = _rewritten(prepared, row, new)
    tokens = [text[start:end] for start, end in spans]
    if adapter.tokens.kind == "pieces":
        tokens, spans, merged = merge_words(text, spans, prepared.placed.groups[row], weights)
        weights = merged.tolist()
    return Explanation(
        text=text,
        tokens=tuple(tokens),
        spans=tuple(spans),
        weights=tuple(weights),
        label=adapter.classes[probs.index(max(probs))],
        probabilities=dict(zip(adapter.classes, probs, strict=True)),
        question=example.question,
        explainer=explainer,
        selected=prepared.case.explainers[explainer].selects_words,
        unit=prepared.case.explainers[explainer].unit,
    )


def _with_rationale(prepared: PreparedCase, row: int, explanation: Explanation, chances: list[float]) -> Explanation:
    pieces = prepared.adapter.tokens.kind == "pieces"
    chances = mean_of_words(prepared.placed.groups[row], chances) if pieces else chances
    return replace(explanation, rationale=rationale_spans(explanation.spans, explanation.weights, chances))


def _rewritten(prepared: PreparedCase, row: int, new: dict[int, int]) -> tuple[str, list[Span]]:
    """The text with these tokens substituted, and the new token spans."""
    text, spans = prepared.examples[row].text, prepared.placed.spans[row]
    if not new:
        return text, list(spans)
    names = vocabulary_lexicon(prepared.adapter.tokens.vocabulary, prepared.adapter.tokens.kind).names
    rewritten, new_spans, end = "", [], 0
    for i, (start, stop) in enumerate(spans):
        rewritten += text[end:start]
        word = names[new[i]].strip() if i in new else text[start:stop]
        new_spans.append((len(rewritten), len(rewritten) + len(word)))
        rewritten, end = rewritten + word, stop
    return rewritten + text[end:], new_spans


def _positions(mask: Tensor) -> list[int]:
    return torch.nonzero(mask).squeeze(-1).tolist()
