"""The texts with the largest shift under each probe, with their explanations before and after."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from steadygaze.audit.finding import Finding
from steadygaze.audit.prepare_case import PreparedCase
from steadygaze.audit.probes.text_perturbations import PerturbedBatch
from steadygaze.core.types import Span
from steadygaze.data.batches import collate
from steadygaze.data.synonyms import vocabulary_lexicon
from steadygaze.data.token_alignment import mean_of_words, merge_words
from steadygaze.estimator.explain_texts import rationale_spans
from steadygaze.results.explanation import Explanation
from steadygaze.results.verdict import Shift

EACH = 3
"""Texts per probe."""
MOVED = "jensen-shannon/"


def largest_shifts(here: PreparedCase, explainer: str, found: Sequence[Finding], each: int = EACH) -> tuple[Shift, ...]:
    """The texts with the largest shift under each probe, largest first."""
    known = here.case.probes
    shown: list[Shift] = []
    for finding in found:
        name = finding.measure.removeprefix(MOVED)
        mine = finding.measure.startswith(MOVED) and name in known and finding.explainer == explainer
        if mine and finding.values is not None:
            shown += _worst(here, explainer, name, finding.values, each)
    return tuple(shown)


def _worst(here: PreparedCase, explainer: str, probe: str, moved: Tensor, each: int) -> Iterator[Shift]:
    far = moved.nan_to_num(nan=-1.0).argsort(descending=True, stable=True)[:each]
    rows = far[moved[far] > 0].numpy()
    if not len(rows):
        return
    case = here.case
    batch = collate(case.data, rows).to(case.model.device)
    after = case.probes[probe].move(case.model, batch)
    for states in zip(
        rows.tolist(),
        _explained(here, explainer, rows, PerturbedBatch(batch, None, after.touched)),
        _explained(here, explainer, rows, after),
        strict=True,
    ):
        row, old, new = states
        yield Shift(probe, float(moved[row]), old, new)


def _explained(here: PreparedCase, explainer: str, rows: np.ndarray, at: PerturbedBatch) -> Iterator[Explanation]:
    said = here.case.explainers[explainer].explain(here.case.model, at.batch, embedded=at.embedded)
    sure = None if said.chances is None else said.chances.double().cpu()
    weights, probs = said.weights.double().cpu(), said.logits.double().softmax(-1).cpu()
    mask, ids = at.batch.mask.cpu(), at.batch.ids.cpu()
    clean = collate(here.case.data, rows).ids
    for i, row in enumerate(rows.tolist()):
        new = [(place, int(ids[i, t])) for place, t in enumerate(_places(mask[i])) if ids[i, t] != clean[i, t]]
        shown = _explanation(here, row, explainer, weights[i][mask[i]].tolist(), probs[i].tolist(), dict(new))
        yield shown if sure is None else _with_rationale(here, row, shown, sure[i][mask[i]].tolist())


def _explanation(
    here: PreparedCase, row: int, explainer: str, weights: list[float], probs: list[float], new: dict[int, int]
) -> Explanation:
    example, subject = here.examples[row], here.adapter
    text, spans = _rewritten(here, row, new)
    tokens = [text[start:end] for start, end in spans]
    if subject.tokens.kind == "pieces":
        tokens, spans, merged = merge_words(text, spans, here.placed.groups[row], weights)
        weights = merged.tolist()
    return Explanation(
        text=text,
        tokens=tuple(tokens),
        spans=tuple(spans),
        weights=tuple(weights),
        label=subject.classes[probs.index(max(probs))],
        probabilities=dict(zip(subject.classes, probs, strict=True)),
        question=example.question,
        explainer=explainer,
        selected=here.case.explainers[explainer].selects_words,
    )


def _with_rationale(here: PreparedCase, row: int, shown: Explanation, chances: list[float]) -> Explanation:
    pieces = here.adapter.tokens.kind == "pieces"
    sure = mean_of_words(here.placed.groups[row], chances) if pieces else chances
    return replace(shown, rationale=rationale_spans(shown.spans, shown.weights, sure))


def _rewritten(here: PreparedCase, row: int, new: dict[int, int]) -> tuple[str, list[Span]]:
    """The text with these tokens substituted, and the new token spans."""
    text, spans = here.examples[row].text, here.placed.spans[row]
    if not new:
        return text, list(spans)
    names = vocabulary_lexicon(here.adapter.tokens.vocabulary, here.adapter.tokens.kind).names
    written, moved, end = "", [], 0
    for i, (start, stop) in enumerate(spans):
        written += text[end:start]
        word = names[new[i]].strip() if i in new else text[start:stop]
        moved.append((len(written), len(written) + len(word)))
        written, end = written + word, stop
    return written + text[end:], moved


def _places(mask: Tensor) -> list[int]:
    return torch.nonzero(mask).squeeze(-1).tolist()
