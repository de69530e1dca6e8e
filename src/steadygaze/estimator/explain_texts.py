"""Explain texts: tokenize, batch by length, explain, and merge subwords into words.

With `granularity` "word", explainers that perturb the text remove all subwords of a word together.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Label, Picked, Sentences, Span
from steadygaze.data.batches import by_length, collate, placed_data
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.data.token_alignment import mean_of_words, merge_words, truncation
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.inputs import (
    explain_nonempty,
    is_single_text,
    join_questions,
    known_label,
    read_inputs,
    warn_of_empty,
)
from steadygaze.explainers.explainer import Explainer, finite_weights, missing_capability
from steadygaze.explainers.resolve_explainer import resolve_explainer, with_output
from steadygaze.models import inference
from steadygaze.models.inference import Model, selects
from steadygaze.results.explanation import Explanation, Explanations
from steadygaze.results.health import HEALTHY, Health


@dataclass(frozen=True)
class ResolvedRequest:
    """The explainer of a request and its options, which a model supports."""

    explainer: Explainer
    name: str
    target: Label | None = None
    granularity: str = "word"
    batch_size: int = inference.BATCH


def resolve_request(
    request: ExplainRequest,
    model: Model,
    classes: Sequence[Label],
    *,
    pair: bool,
    model_name: str = "this model",
    segments: bool = False,
) -> ResolvedRequest:
    """Resolve explainer and target; raise an error if the model or the explainer does not support them.

    `segments`: the model has a prompt, whose segments can be explained.
    """
    if request.granularity == "segment" and not segments:
        raise UserError(f"granularity='segment' is for the prompt of a language model, and {model_name} has none")
    name, method = resolve_explainer(request.explainer, model, request.settings, request.seed, pair=pair)
    method = with_output(method, name, request.output)
    label = None if request.target is None else known_label(request.target, classes)
    if reason := missing_capability(method, model):
        raise UserError(f"{name} cannot explain {model_name}: {reason}; choose another explainer")
    if label is not None and not method.class_specific:
        raise UserError(f"{name} is the same for every class: remove the target {label!r}")
    return ResolvedRequest(method, name, label, request.granularity, request.batch_size)


def explain_inputs(inputs: Any, tokens: Tokens, explain: Callable[[list[Any]], Explanations]) -> Any:
    """An Explanation for one text, a list for a list; warn the user of empty and truncated texts."""
    is_single = is_single_text(inputs)
    explanations = explain_nonempty(join_questions(*read_inputs([inputs])) if is_single else inputs, explain)
    warn_of_empty((explanation is None for explanation in explanations), stacklevel=4)
    read_to = [explanation.read_to for explanation in explanations if explanation is not None]
    for warning in truncation(tokens, read_to).warnings():
        warnings.warn(warning, stacklevel=4)
    return explanations[0] if is_single else explanations


def explain_texts(
    model: Model,
    tokenizer: Tokens,
    classes: Sequence[Label],
    texts: Sequence[str],
    questions: Sequence[str] | None,
    request: ResolvedRequest,
    sentences: Sentences | None = None,
    health: Health = HEALTHY,
) -> Explanations:
    """One Explanation per text, in order; `sentences`: given sentences, for a model that selects them.

    `health`: of the model and, if it is fitted, of the explainer.
    """
    tokenized = tokenizer.place(texts)
    tokenized_questions = None if questions is None else tokenizer.place(questions, question=True)
    whole_words = tokenizer.kind == "pieces" and request.granularity != "piece"
    units = sentences if selects(model) else None
    data = placed_data(tokenized, tokenized_questions, whole_words=whole_words, sentences=units)
    target = None if request.target is None else classes.index(request.target)
    facts = request.explainer.reader_facts(model)
    explanations: list[Any] = [None] * len(texts)
    for rows in by_length(data, request.batch_size):
        batch = collate(data, rows).to(model.device)
        aim = None if target is None else torch.full((len(rows),), target, device=model.device)
        saliency = request.explainer.explain(model, batch, aim)
        probabilities = saliency.logits.double().softmax(-1).cpu().tolist()
        columns = [_per_row(v, batch.mask) for v in (finite_weights(saliency, batch), *(saliency.bounds or ()))]
        selection = None if saliency.chances is None else _per_row(saliency.chances, batch.mask)
        numbers = [None] * len(rows) if saliency.sentences is None else saliency.sentences.tolist()
        for i, (row, chances) in enumerate(zip(rows.tolist(), probabilities, strict=True)):
            spans, (weights, *bounds) = _merged(tokenized, row, [column[i] for column in columns], whole_words)
            label = classes[chances.index(max(chances))]
            rationale = None
            if selection is not None:
                means = mean_of_words(tokenized.groups[row], selection[i]) if whole_words else selection[i]
                rationale = rationale_spans(spans, weights, means)
            explanations[row] = Explanation(
                text=texts[row],
                tokens=tuple([texts[row][start:end] for start, end in spans]),
                spans=tuple(spans),
                weights=tuple(weights),
                label=label,
                probabilities=dict(zip(classes, chances, strict=True)),
                question=None if questions is None else questions[row],
                target=request.target,
                explainer=request.name,
                granularity=request.granularity,
                read_to=(spans[-1][1] if spans else 0) if tokenized.ragged.cut[row] else None,
                bounds=tuple(zip(*bounds, strict=True)) if bounds else None,
                selected=request.explainer.selects_words,
                rationale=rationale,
                sentences=numbers[i],
                reader_accuracy=facts.accuracy,
                unit=request.explainer.unit,
                arbitrary_selections=facts.arbitrary.get(str(label)),
                health=health,
            )
        if questions is not None and tokenized_questions is not None and saliency.question is not None:
            assert batch.question_mask is not None
            for row, weights in zip(rows.tolist(), _per_row(saliency.question, batch.question_mask), strict=True):
                spans, (weights,) = _merged(tokenized_questions, row, [weights], whole_words)
                explanations[row] = _with_question(explanations[row], questions[row], spans, weights)
    return Explanations(explanations)


def _merged(
    tokenized: TokenizedTexts, row: int, columns: list[list[float]], whole_words: bool
) -> tuple[list[Span], list[list[float]]]:
    """Spans and numbers of words, whose subwords are summed, or of tokens."""
    spans = tokenized.spans[row]
    if not whole_words:
        return spans, columns
    words = [merge_words("", spans, tokenized.groups[row], column) for column in columns]
    return words[0][1], [column.tolist() for _, _, column in words]


def _with_question(explanation: Explanation, question: str, spans: list[Span], weights: list[float]) -> Explanation:
    tokens = tuple([question[start:end] for start, end in spans])
    return replace(explanation, question_tokens=tokens, question_spans=tuple(spans), question_weights=tuple(weights))


def rationale_spans(spans: Sequence[Span], weights: Iterable[float], chances: Iterable[float]) -> tuple[Picked, ...]:
    """Spans of consecutive selected tokens (nonzero weight) with their mean selection probability.

    >>> rationale_spans([(0, 3), (4, 8), (9, 10), (11, 14)], [0.0, 0.5, 0.5, 0.0], [0.1, 0.75, 0.75, 0.1])
    ((4, 10, 0.75),)
    """
    rationales = []
    for selected, run in groupby(zip(spans, weights, chances, strict=True), key=lambda token: token[1] != 0):
        tokens = list(run)
        if selected:
            mean = sum(chance for _, _, chance in tokens) / len(tokens)
            rationales.append((tokens[0][0][0], tokens[-1][0][1], mean))
    return tuple(rationales)


def _per_row(weights: Tensor, mask: Tensor) -> list[list[float]]:
    """The weights of each row's words.  (B,T), (B,T) -> B lists"""
    flat = weights.double()[mask].tolist()
    ends = mask.sum(-1).cumsum(-1).tolist()
    return [flat[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
