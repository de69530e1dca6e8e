"""Many texts with words taken out, read with little padding: those of like length together, so many at once.

How likely a class is: what every explainer but attention explains.

    p_c(x) = softmax(z(x))_c          c the class that is asked about

of the texts as they are, with words taken out, or with other vectors in place of the words' own.  In double precision:
single rounds a sure prediction to 1, which no word would then seem to matter to.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import neg

import torch
from torch import Tensor

from steadygaze.core.types import Batch
from steadygaze.models.inference import inference
from steadygaze.models.model_protocol import Model
from steadygaze.techniques.perturbations.word_removal import delete_words, take_rows, trim_padding

NEAR = 0.75
"""A text is read beside one no longer than 1 / this of its length: what is longer would make it mostly padding."""


def length_batches(
    lengths: Tensor, batch: Batch, max_tokens: int, max_texts: int | None = None
) -> Iterator[tuple[Tensor, int]]:
    """Which of K texts to read at once, and how wide the longest is, until each was named.  (K,) -> (k,), number

    `batch` has their questions, if any: they count among the tokens.
    """
    asked = 0 if batch.question_ids is None else batch.question_ids.shape[1]
    for some, width in length_groups(lengths.clamp_min(1) + asked, max_tokens, max_texts):
        yield some, width - asked


def length_groups(
    lengths: Tensor, max_tokens: int, max_texts: int | None = None, near: float = NEAR
) -> Iterator[tuple[Tensor, int]]:
    """The same of texts of these lengths in all, questions included.  (K,) -> (k,), number"""
    lengths, order = lengths.clamp_min(1).sort(descending=True, stable=True)
    widths = lengths.tolist()
    for start, end in forward_passes(widths, max_tokens, max_texts, near):
        yield order[start:end], widths[start]


def forward_passes(
    lengths: list[int], max_tokens: int, max_texts: int | None = None, near: float = NEAR
) -> Iterator[tuple[int, int]]:
    """Where to cut texts, longest first, into forward passes: [start, end) each.  A longer text is read alone."""
    start = 0
    while start < len(lengths):
        longest = lengths[start]
        like = bisect_right(lengths, -near * longest, lo=start, key=neg)
        end = min(like, start + max(1, max_tokens // longest), start + (max_texts or len(lengths)))
        yield start, end
        start = end


TOKENS = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Tokens read at once where no slopes are wanted.  On a CPU four times as many were slower; a GPU was not tried."""
SLOPED = 1 << 11
"""Tokens read at once with slopes, which keep all that was on the way: by reckoning 4 GB in a BERT-base."""


@dataclass(frozen=True, slots=True)
class CleanPrediction:
    """The texts as they are."""

    logits: Tensor  # (B,C)
    target_class: Tensor  # (B,) the class that is asked about
    probability: Tensor  # (B,) how likely it is


def clean_prediction(
    model: Model, batch: Batch, target: Tensor | None = None, embedded: Tensor | None = None
) -> CleanPrediction:
    """The class asked about is `target`, or else the predicted one."""
    with inference(model):
        logits = model.logits(batch, embedded)
    aim = logits.argmax(-1) if target is None else target
    return CleanPrediction(logits, aim, _of(logits, aim))


def predict_without(model: Model, batch: Batch, rows: Tensor, gone: Tensor, aim: Tensor) -> Tensor:
    """p of each of K texts, named by their rows, with these words taken out; of a pair, from text and question.

    (K,), (K,T) or (K,T+Q), (B,) -> (K,)
    """
    width = batch.ids.shape[1]
    text = batch.present.sum(-1)[rows] - gone[:, :width].sum(-1)
    asked = torch.zeros_like(text)
    if batch.question_present is not None:
        asked = batch.question_present.sum(-1)[rows] - gone[:, width:].sum(-1)
    found = torch.empty(len(rows), dtype=torch.float64, device=batch.ids.device)
    with inference(model):
        for some, _ in length_groups(text + asked, max_tokens(batch.ids)):
            widths = (max(1, int(one[some].max())) for one in (text, asked))
            part = trim_padding(delete_words(take_rows(batch, rows[some]), gone[some]), *widths)
            found[some] = _of(model.logits(part), aim[rows[some]])
    return found


def probability_of_embeddings(model: Model, batch: Batch, aim: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """p as a function of K texts' vectors and their rows (K,).  (K,T,E), of pairs (K,T+Q,E) -> (K,)"""
    width = batch.ids.shape[1]

    def chance(vectors: Tensor, rows: Tensor) -> Tensor:
        asked = vectors[:, width:] if vectors.shape[1] > width else None
        return _of(model.logits(take_rows(batch, rows), vectors[:, :width], asked), aim[rows])

    return chance


def max_tokens(like: Tensor) -> int:
    """That can be read at once where this tensor is."""
    return TOKENS.get(like.device.type, TOKENS["cpu"])


def _of(logits: Tensor, aim: Tensor) -> Tensor:
    return logits.double().softmax(-1).gather(-1, aim.unsqueeze(-1)).squeeze(-1)
