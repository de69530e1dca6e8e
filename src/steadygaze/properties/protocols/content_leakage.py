"""Label leakage by content and by value; the formulas are in measures/label_readers.py.

    content-leak        how much better a reader recovers the label from what is shown than from the text's length,
                        where the shown words do not account for it
    label-unaccounted   share of the label that the shown words do not account for: the most that can leak
    value-leak          for explanations that select words: the same reader against the model's answer to these words
    encode-meter, stripe-x    the log-probabilities of both, and a ranking of explainers

The reader is trained on all explained texts; the model answers those of the sample, DRAWS times with other words of
other texts.  Each distinct text is predicted once.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.perturbations.word_removal import units_of
from steadygaze.properties.audit_case import (
    AuditCase,
    Finding,
    Rows,
    missing_findings,
    other_explainers,
    selecting_explainers,
    texts_without_selection,
)
from steadygaze.properties.measures import label_readers
from steadygaze.properties.measures.label_readers import Readings, ShownTexts
from steadygaze.properties.probes.erasure import Erasure, predict_erased
from steadygaze.results.intervals import wilson_interval
from steadygaze.results.note import Note, NoteCode, note

DRAWS = 3
"""Words of other texts in place of each word that is not shown."""
ROWS = tuple(measure.name for measure in label_readers.MEASURES)
OF_SELECTIONS = ("value-leak",)
ANSWERING = "shown words"
"""The task of the model's answers to the shown words."""
WORD_NUMBERS = RandomKey(0).child(21)
"""Makes a number of the subword tokens of a word."""


def content_leakage(case: AuditCase) -> Iterator[Finding]:
    names = [name for name in other_explainers(case) if len(case.rows(name))]
    if not names or len(case) < 2:
        yield from missing_findings(ROWS, Note(NoteCode.NO_OTHER_TEXTS if names else NoteCode.ONLY_RANDOM_EXPLAINER))
        return
    answers = case.gather(ANSWERING, partial(_answers, case, names), case.sample)
    for name in names:
        answers[name] = answers[name].masked_fill(texts_without_selection(case, name), torch.nan)
        case.unaccounted[name] = label_readers.label_unaccounted(
            answers[name], answers[f"{BEST} {name}"], answers[NONE], answers[f"{LABEL} {NONE}"]
        )
        yield from _findings(case, name, answers)
    if not selecting_explainers(case):
        yield from missing_findings(OF_SELECTIONS, Note(NoteCode.NOTHING_SELECTS))


def _findings(case: AuditCase, name: str, answers: dict[str, Tensor]) -> Iterator[Finding]:
    predicted, missing, readings = case.probs.argmax(-1), case.unaccounted[name], _readings(case, name)
    best = torch.maximum(answers[f"{BEST} {name}"], answers[BEST])
    label = answers[f"{LABEL} {name}"]
    balance = partial(label_readers.balance_classes, predicted=predicted)
    settings = {"draws": DRAWS}
    unaccounted = label_readers.label_unaccounted(answers[name], best, answers[NONE], answers[f"{LABEL} {NONE}"])
    yield _share(balance(unaccounted), name, settings)
    if not (read := (readings.shown * missing).isfinite()).any():
        few = note(NoteCode.FEW_TEXTS_TO_READ, least=label_readers.FEWEST)
        yield from (Finding(row, explainer=name, absent=few) for row in ROWS if row != "label-unaccounted")
        return
    yield Finding("content-leak", balance(missing * (readings.shown - readings.length)), name, settings)
    if name in selecting_explainers(case):
        yield Finding("value-leak", balance(readings.shown - label), name, settings)
    yield Finding("encode-meter", label_readers.encode_meter(readings.shown, label), name, settings)
    rank = label_readers.stripe_x(readings.shown[read], label[read])
    n = int(read.sum())
    yield Finding("stripe-x", None, name, settings, _not_sampled(read, n), value=rank, n=n)


def _share(missing: Tensor, name: str, settings: dict[str, int]) -> Finding:
    """The mean with Wilson's interval: a bootstrap of few values other than 0 is too narrow or far too wide."""
    values = missing[missing.isfinite()]
    if not (n := len(values)):
        return Finding(
            "label-unaccounted", explainer=name, settings=settings, absent=note(NoteCode.UNDEFINED, notes=())
        )
    total, notes = min(float(values.sum()), n), _not_sampled(missing, n)  # weights of classes may round up
    interval = wilson_interval(total, n)
    return Finding("label-unaccounted", None, name, settings, notes, value=total / n, interval=interval, n=n)


def _not_sampled(values: Tensor, n: int) -> tuple[Note, ...]:
    return (note(NoteCode.NOT_SAMPLED, texts=n, others=len(values) - n),) if n < len(values) else ()


NONE, BEST, LABEL = "no words", "best words", "label of"


def _answers(case: AuditCase, names: list[str], rows: Rows, batch: Batch) -> dict[str, Tensor]:
    """The model's probability of the predicted class from the shown words, and how often it predicts the class.

    (B,) each.  BEST: the best known words; `BEST name`: as many as the explainer shows.
    """
    units = units_of(batch, question=False)
    orders = [units.total(case.gather_rows(order, rows, batch)) for order in case.best_orders]
    kept = {
        NONE: [torch.zeros_like(units.mask)],
        BEST: [label_readers.shown_words(order, units.mask) for order in orders],
    }
    for name in names:
        weights = units.total(case.gather_rows(case.saliency(name), rows, batch))
        kept[name] = [label_readers.shown_words(weights, units.mask)]
        count = kept[name][0].sum(-1, keepdim=True)
        kept[f"{BEST} {name}"] = [_largest(order, units.mask, count) for order in orders]
    erased = torch.stack([batch.mask & ~units.tokens(words) for group in kept.values() for words in group], 1)
    probabilities, labels = (
        torch.split(values, [len(group) for group in kept.values()], dim=1)
        for values in _predicted(case, rows, batch, erased)
    )
    answers = {name: part.amax(1) for name, part in zip(kept, probabilities, strict=True)}
    named = (NONE, *names)
    return answers | {f"{LABEL} {name}": part.amax(1) for name, part in zip(kept, labels, strict=True) if name in named}


def _largest(order: Tensor, mask: Tensor, count: Tensor) -> Tensor:
    """True on as many words, those with the largest weights.  (B,U), (B,U), (B,1) -> (B,U)"""
    rank = order.masked_fill(~mask, -torch.inf).argsort(dim=-1, descending=True, stable=True).argsort(-1)
    return mask & (rank < count)


def _predicted(case: AuditCase, rows: Rows, batch: Batch, erased: Tensor) -> tuple[Tensor, Tensor]:
    """Probability of the predicted class with words of other texts in place of the erased ones, and its frequency.

    (B,K,T) -> (B,K), (B,K)
    """
    full = case.probs[torch.from_numpy(rows)].to(batch.ids.device)
    predicted = full.argmax(-1).repeat_interleave(erased.shape[1])
    text = torch.arange(len(batch), device=batch.ids.device).repeat_interleave(erased.shape[1])
    limits = Erasure(max_tokens=case.runtime.max_tokens)
    draws = []
    for draw in range(1, DRAWS + 1):
        words = case.gather_rows(case.other_words(draw), rows, batch)
        probs = predict_erased(case.model, batch, text, erased.flatten(0, 1), limits, words)
        label = (probs.argmax(-1) == predicted).double()
        draws.append(torch.stack([probs.gather(-1, predicted.unsqueeze(-1)).squeeze(-1), label]))
    probability, frequency = torch.stack(draws).mean(0).view(2, len(batch), -1)
    return probability, frequency


def _readings(case: AuditCase, name: str) -> Readings:
    """The reader's probabilities for all explained texts; NaN for the others."""
    rows, features, pairs, lengths = [], [], [], []
    for batch_rows, batch in case.batches(case.rows(name)):
        units = units_of(batch, question=False)
        weights = units.total(case.gather_rows(case.saliency(name), batch_rows, batch)).double()
        ids = batch.permanent_ids
        number = units.total(WORD_NUMBERS.scramble(ids).double() * 2.0**-63)
        vocabulary = units.total((ids * units.first[:, : ids.shape[1]]).double())
        shown = label_readers.shown_words(weights, units.mask)
        text, unit = shown.nonzero(as_tuple=True)
        pairs.append(torch.stack([torch.from_numpy(batch_rows)[text.cpu()].double(), number[text, unit].cpu()], -1))
        features.append(label_readers.shape_features(weights, shown, vocabulary, units.mask).cpu())
        lengths.append(units.mask.sum(-1).cpu())
        rows.append(torch.from_numpy(batch_rows))
    order = torch.cat(rows)
    place = torch.full((len(case),), -1)
    place[order] = torch.arange(len(order))
    text, number = torch.cat(pairs).unbind(-1)
    shown_texts = ShownTexts(
        torch.cat(features),
        place[text.long()],
        torch.unique(number, return_inverse=True)[1],
        torch.cat(lengths),
        case.probs.argmax(-1)[order],
        case.keys[order],
    )
    readings = label_readers.read_labels(shown_texts)
    empty = torch.full((2, len(case)), torch.nan, dtype=torch.float64)
    empty[0, order], empty[1, order] = readings.shown, readings.length
    return Readings(empty[0], empty[1])
