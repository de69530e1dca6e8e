"""Texts -> Explanations: tokens placed in the user's text, batched by length, explained, pieces pooled into words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from steadygaze import infer
from steadygaze.batch import Data, by_length, collate
from steadygaze.explain.explainer import Explainer
from steadygaze.explanation import Explanation
from steadygaze.reader import Reader
from steadygaze.tokens.align import mean_of_words, merge_words
from steadygaze.tokens.tokenizer import Tokens
from steadygaze.types import Label, Picked, Span


@dataclass(frozen=True)
class Request:
    """What is asked about each text."""

    explainer: Explainer
    name: str
    target: Label | None = None
    granularity: str = "word"


def explain_texts(
    model: Reader,
    tokenizer: Tokens,
    classes: Sequence[Label],
    texts: Sequence[str],
    questions: Sequence[str] | None,
    request: Request,
    batch_size: int = infer.BATCH,
) -> list[Explanation]:
    """One Explanation per text, in their order."""
    placed = tokenizer.place(texts)
    asked = None if questions is None else tokenizer.encode(questions, question=True)
    data = Data(placed.ragged, asked)
    device = model.device
    target = None if request.target is None else classes.index(request.target)
    found: list[Any] = [None] * len(texts)
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(device)
        aim = None if target is None else torch.full((len(rows),), target, device=device)
        saliency = request.explainer.explain(model, batch, aim)
        columns = [_per_row(one, batch.mask) for one in (saliency.weights, *(saliency.bounds or ()))]
        likely = None if saliency.chances is None else _per_row(saliency.chances, batch.mask)
        probabilities = saliency.logits.double().softmax(-1).cpu().tolist()
        for i, (row, chances, *values) in enumerate(zip(rows.tolist(), probabilities, *columns, strict=True)):
            spans, text = placed.spans[row], texts[row]
            sure = None if likely is None else likely[i]
            if tokenizer.kind == "pieces" and request.granularity == "word":
                whole = [merge_words(text, spans, placed.groups[row], one) for one in values]
                spans, values = whole[0][1], [merged.tolist() for _, _, merged in whole]
                sure = None if sure is None else mean_of_words(placed.groups[row], sure)
            weights, *bounds = values
            found[row] = Explanation(
                text=text,
                tokens=tuple([text[start:end] for start, end in spans]),
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
                selected=request.explainer.selects,
                rationale=None if sure is None else picked(spans, weights, sure),
            )
    return found


def picked(spans: Sequence[Span], weights: Iterable[float], chances: Iterable[float]) -> tuple[Picked, ...]:
    """Runs of selected tokens, those that have a weight, as pieces of the text with the mean chance of their tokens.

    >>> picked([(0, 3), (4, 8), (9, 10), (11, 14)], [0.0, 0.5, 0.5, 0.0], [0.1, 0.75, 0.75, 0.1])
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
