"""Texts -> Explanations: tokens placed in the user's text, batched by length, explained, pieces pooled into words.

Explainers that perturb the text are told which pieces make a word (`granularity` "word"), and remove them together.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Batch, Label, Picked, Span
from steadygaze.data.batches import by_length, collate, placed_data
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.data.token_alignment import mean_of_words, merge_words
from steadygaze.explainers.explainer import Explainer, Saliency, finite_weights
from steadygaze.models import inference
from steadygaze.models.model_protocol import Model
from steadygaze.results.explanation import Explanation


@dataclass(frozen=True)
class ExplainRequest:
    """What is asked about each text."""

    explainer: Explainer
    name: str
    target: Label | None = None
    granularity: str = "word"


def explain_texts(
    model: Model,
    tokenizer: Tokens,
    classes: Sequence[Label],
    texts: Sequence[str],
    questions: Sequence[str] | None,
    request: ExplainRequest,
    batch_size: int = inference.BATCH,
) -> list[Explanation]:
    """One Explanation per text, in their order."""
    placed = tokenizer.place(texts)
    asked = None if questions is None else tokenizer.place(questions, question=True)
    whole = tokenizer.kind == "pieces" and request.granularity == "word"
    data = placed_data(placed, asked, whole_words=whole)
    target = None if request.target is None else classes.index(request.target)
    accuracy = request.explainer.reader_accuracy(model)
    found: list[Any] = [None] * len(texts)
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(model.device)
        aim = None if target is None else torch.full((len(rows),), target, device=model.device)
        saliency = request.explainer.explain(model, batch, aim)
        probabilities = saliency.logits.double().softmax(-1).cpu().tolist()
        per_row = _columns(saliency, batch)
        for i, (row, chances) in enumerate(zip(rows.tolist(), probabilities, strict=True)):
            spans, (weights, *bounds), sure = _shown(placed, row, per_row(i), whole)
            found[row] = Explanation(
                text=texts[row],
                tokens=tuple([texts[row][start:end] for start, end in spans]),
                spans=tuple(spans),
                weights=tuple(weights),
                label=classes[chances.index(max(chances))],
                probabilities=dict(zip(classes, chances, strict=True)),
                question=None if questions is None else questions[row],
                target=request.target,
                explainer=request.name,
                granularity=request.granularity,
                read_to=_end(spans) if placed.ragged.cut[row] else None,
                bounds=tuple(zip(*bounds, strict=True)) if bounds else None,
                selected=request.explainer.selects_words,
                rationale=None if sure is None else rationale_spans(spans, weights, sure),
                reader_accuracy=accuracy,
            )
        if questions is not None and asked is not None and saliency.question is not None:
            per_question = _per_row(saliency.question, _words(batch))
            for row, own in zip(rows.tolist(), per_question, strict=True):
                found[row] = _with_question(found[row], questions[row], _shown(asked, row, ([own], None), whole)[:2])
    return found


def _columns(saliency: Saliency, batch: Batch) -> Callable[[int], tuple[list[list[float]], list[float] | None]]:
    """Of a row: its weights, with bounds where there are some; and how likely each token was to be selected."""
    columns = [_per_row(one, batch.mask) for one in (finite_weights(saliency, batch), *(saliency.bounds or ()))]
    likely = None if saliency.chances is None else _per_row(saliency.chances, batch.mask)
    return lambda i: ([column[i] for column in columns], None if likely is None else likely[i])


def _shown(
    placed: TokenizedTexts, row: int, found: tuple[list[list[float]], list[float] | None], whole: bool
) -> tuple[list[Span], list[list[float]], list[float] | None]:
    """Spans, weights and chances of what is shown: words, whose pieces are added up, or tokens."""
    spans, groups, (values, sure) = placed.spans[row], placed.groups[row], found
    if not whole:
        return spans, values, sure
    merged = [merge_words("", spans, groups, one) for one in values]
    chances = None if sure is None else mean_of_words(groups, sure)
    return merged[0][1], [one.tolist() for _, _, one in merged], chances


def _with_question(found: Explanation, question: str, shown: tuple[list[Span], list[list[float]]]) -> Explanation:
    spans, (weights,) = shown
    tokens = tuple([question[start:end] for start, end in spans])
    return replace(found, question_tokens=tokens, question_spans=tuple(spans), question_weights=tuple(weights))


def _words(batch: Batch) -> Tensor:
    if batch.question_mask is None:
        raise ValueError("the words of the questions are not known")
    return batch.question_mask


def rationale_spans(spans: Sequence[Span], weights: Iterable[float], chances: Iterable[float]) -> tuple[Picked, ...]:
    """Runs of selected tokens, those that have a weight, as pieces of the text with the mean chance of their tokens.

    >>> rationale_spans([(0, 3), (4, 8), (9, 10), (11, 14)], [0.0, 0.5, 0.5, 0.0], [0.1, 0.75, 0.75, 0.1])
    ((4, 10, 0.75),)
    """
    found = []
    for chosen, run in groupby(zip(spans, weights, chances, strict=True), key=lambda token: token[1] != 0):
        tokens = list(run)
        if chosen:
            likely = sum(chance for _, _, chance in tokens) / len(tokens)
            found.append((tokens[0][0][0], tokens[-1][0][1], likely))
    return tuple(found)


def _per_row(weights: Tensor, mask: Tensor) -> list[list[float]]:
    """The weights of each row's words.  (B,T), (B,T) -> B lists"""
    flat = weights.double()[mask].tolist()
    ends = mask.sum(-1).cumsum(-1).tolist()
    return [flat[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _end(spans: Sequence[tuple[int, int]]) -> int:
    return spans[-1][1] if spans else 0
