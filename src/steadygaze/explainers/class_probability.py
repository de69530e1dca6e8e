"""The explained output, for original texts, texts with deleted words, and replaced word vectors.

    p_c(x) = softmax(z(x))_c          c the explained class; output="probability"
    z_c(x)                            its logit; output="logit"

A black box has no logits; its logarithms of probabilities take their place.

Texts of similar length share a forward pass, so that little of it is padding.  The probability has double precision:
single precision rounds a confident prediction to 1, and no word would change it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import neg
from typing import Literal

import torch
from torch import Tensor

from steadygaze.core.types import Batch, Removal
from steadygaze.models.inference import Model, inference
from steadygaze.perturbations.word_removal import remove_words, take_rows, trim_padding

Output = Literal["probability", "logit"]
"""The explained output: the probability or the logit of a class."""
MIN_LENGTH_RATIO = 0.75
"""Smallest length of a text relative to the longest text of its forward pass; limits padding."""


def length_groups(
    lengths: Tensor, max_tokens: int, max_texts: int | None = None, min_length_ratio: float = MIN_LENGTH_RATIO
) -> Iterator[tuple[Tensor, int]]:
    """Rows of the texts of each forward pass, and the length of the longest; questions count.  (K,) -> (k,), number"""
    lengths, order = lengths.clamp_min(1).sort(descending=True, stable=True)
    widths = lengths.tolist()
    for start, end in forward_passes(widths, max_tokens, max_texts, min_length_ratio):
        yield order[start:end], widths[start]


def forward_passes(
    lengths: list[int], max_tokens: int, max_texts: int | None = None, min_length_ratio: float = MIN_LENGTH_RATIO
) -> Iterator[tuple[int, int]]:
    """Split texts, longest first, into forward passes [start, end).  A text above `max_tokens` has its own."""
    start = 0
    while start < len(lengths):
        longest = lengths[start]
        similar_length_end = bisect_right(lengths, -min_length_ratio * longest, lo=start, key=neg)
        end = min(similar_length_end, start + max(1, max_tokens // longest), start + (max_texts or len(lengths)))
        yield start, end
        start = end


TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Tokens per forward pass without gradients.  On a CPU four times as many were slower; a GPU was not tried."""
GRADIENT_TOKENS = {"cpu": 1 << 10, "cuda": 1 << 11}
"""Tokens per forward pass with gradients: activations of 2,048 tokens take about 4 GB in a BERT-base."""


@dataclass(frozen=True, slots=True)
class CleanPrediction:
    """Prediction for the unperturbed texts."""

    logits: Tensor  # (B,C)
    target_class: Tensor  # (B,) the explained class
    value: Tensor  # (B,) its probability or logit


def clean_prediction(
    model: Model,
    batch: Batch,
    target: Tensor | None = None,
    embedded: Tensor | None = None,
    output: Output = "probability",
) -> CleanPrediction:
    """The explained class is `target`, or the predicted one."""
    with inference(model):
        logits = model.logits(batch, embedded)
    aim = logits.argmax(-1) if target is None else target
    return CleanPrediction(logits, aim, _value(logits, aim, output))


def predict_rest(
    model: Model,
    batch: Batch,
    removed: Tensor,
    removal: Removal = "delete",
    widths: tuple[int, int | None] | None = None,
) -> Tensor:
    """Logits of the texts without these words, in one forward pass.  (B,T) or (B,T+Q) -> (B,C)

    `widths`: longest remaining text and question.
    """
    remaining = remove_words(batch, removed, removal, model.padding)
    remaining = remaining if widths is None else trim_padding(remaining, *widths)
    with inference(model):
        if removal != "zero":
            return model.logits(remaining)
        zeroed = removed[:, : remaining.ids.shape[1]].unsqueeze(-1)
        return model.logits(remaining, model.embed(remaining).masked_fill(zeroed, 0.0))


def logits_without(
    model: Model,
    batch: Batch,
    rows: Tensor,
    removed: Tensor,
    removal: Removal = "delete",
    most_tokens: int | None = None,
    most_texts: int | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Logits of K texts, given by row, without these words; `most_…`: limits of a forward pass.

    (K,), (K,T) or (K,T+Q) -> (k,) indices, (k,C)
    """
    width, deleted = batch.ids.shape[1], removed & (removal == "delete")
    text = batch.present.sum(-1)[rows] - deleted[:, :width].sum(-1)
    question = torch.zeros_like(text)
    if batch.question_present is not None and deleted.shape[1] > width:
        question = batch.question_present.sum(-1)[rows] - deleted[:, width:].sum(-1)
    elif batch.question_ids is not None:
        question = question + batch.question_ids.shape[1]
    for group, _ in length_groups(text + question, most_tokens or max_tokens(batch.ids), most_texts):
        widths = max(1, int(text[group].max())), max(1, int(question[group].max()))
        yield group, predict_rest(model, take_rows(batch, rows[group]), removed[group], removal, widths)


def predict_without(
    model: Model, batch: Batch, rows: Tensor, removed: Tensor, aim: Tensor, output: Output = "probability"
) -> Tensor:
    """The output of each of K texts, given by row, without these words; for a pair, of text and question.

    (K,), (K,T) or (K,T+Q), (B,) -> (K,)
    """
    values = torch.empty(len(rows), dtype=torch.float64, device=batch.ids.device)
    for group, logits in logits_without(model, batch, rows, removed):
        values[group] = _value(logits, aim[rows[group]], output)
    return values


def output_of_embeddings(
    model: Model, batch: Batch, aim: Tensor, output: Output = "probability"
) -> Callable[[Tensor, Tensor], Tensor]:
    """The output as a function of the vectors of K texts and their rows (K,).  (K,T,E), for pairs (K,T+Q,E) -> (K,)"""
    width = batch.ids.shape[1]

    def value(vectors: Tensor, rows: Tensor) -> Tensor:
        question = vectors[:, width:] if vectors.shape[1] > width else None
        return _value(model.logits(take_rows(batch, rows), vectors[:, :width], question), aim[rows], output)

    return value


def max_tokens(tensor: Tensor) -> int:
    """Tokens per forward pass on this tensor's device."""
    return TOKENS.get(tensor.device.type, TOKENS["cpu"])


def _value(logits: Tensor, aim: Tensor, output: Output) -> Tensor:
    """(B,C), (B,) -> (B,)"""
    values = logits.double() if output == "logit" else logits.double().softmax(-1)
    return values.gather(-1, aim.unsqueeze(-1)).squeeze(-1)
