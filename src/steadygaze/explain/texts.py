"""Texts -> Explanations: tokens placed in the user's text, batched by length, explained, pieces pooled into words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from steadygaze import infer
from steadygaze.batch import Data, by_length, collate
from steadygaze.explain.explainer import Explainer
from steadygaze.explanation import Explanation
from steadygaze.model import Classifier
from steadygaze.tokens.align import merge_words
from steadygaze.tokens.tokenizer import TextTokenizer
from steadygaze.types import Label


@dataclass(frozen=True)
class Request:
    """What is asked about each text."""

    explainer: Explainer
    name: str
    target: Label | None = None
    granularity: str = "word"


def explain_texts(
    model: Classifier,
    tokenizer: TextTokenizer,
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
    device = next(model.parameters()).device
    target = None if request.target is None else classes.index(request.target)
    found: list[Any] = [None] * len(texts)
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(device)
        aim = None if target is None else torch.full((len(rows),), target, device=device)
        saliency = request.explainer.explain(model, batch, aim)
        weights = _per_row(saliency.weights.double().cpu().numpy(), batch.mask.cpu().numpy())
        probabilities = saliency.logits.double().softmax(-1).cpu().tolist()
        for row, values, chances in zip(rows.tolist(), weights, probabilities, strict=True):
            spans, text = placed.spans[row], texts[row]
            if tokenizer.kind == "pieces" and request.granularity == "word":
                tokens, spans, merged = merge_words(text, spans, placed.groups[row], values)
                values = merged.tolist()
            else:
                tokens = [text[start:end] for start, end in spans]
            found[row] = Explanation(
                text=text,
                tokens=tuple(tokens),
                spans=tuple(spans),
                weights=tuple(values),
                label=classes[chances.index(max(chances))],
                probabilities=dict(zip(classes, chances, strict=True)),
                question=None if questions is None else questions[row],
                target=request.target,
                explainer=request.name,
                granularity=request.granularity,
                read_to=_end(spans) if placed.ragged.cut[row] else None,
            )
    return found


def _per_row(weights: NDArray[np.float64], mask: NDArray[np.bool_]) -> list[list[float]]:
    """The weights of each row's words.  (B,T), (B,T) -> B lists"""
    flat = weights[mask].tolist()
    ends = mask.sum(-1).cumsum().tolist()
    return [flat[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _end(spans: Sequence[tuple[int, int]]) -> int:
    return spans[-1][1] if spans else 0
