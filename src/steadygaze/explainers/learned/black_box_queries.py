"""Batched queries of a black box; the answers are checked and cached.

After a failure of the black box the same call resumes.  Two checks detect a black box that cannot be explained:

    every answer must consist of probabilities
    the first inputs are queried again at the end, and must get the same probabilities in the same order of classes
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress, no_progress
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.explainers.learned.answer_cache import AnswerCache, Lines
from steadygaze.explainers.learned.l2x import Rows
from steadygaze.models.inference import BATCH, Model, inference

TOLERANCE = 1e-2
"""Largest difference between two answers to one input: half precision rounds differently in other batches."""
ROUNDING = 1e-3
"""Largest difference of the sum of probabilities from one; bfloat16 rounds more coarsely."""


def predicted(
    predict: Callable[[Any], Any], inputs: Any, count: int, classes: int | None = None
) -> NDArray[np.float64]:
    """Call a black box on inputs that it may change; return (n,C) probabilities.

    Raises
    ------
    UserError
        The black box raised an exception, which is the cause of this one, or did not return probabilities.
    """
    with black_box_errors():
        answer = predict(inputs)
    return check_probabilities(answer, count, classes)


@contextmanager
def black_box_errors() -> Iterator[None]:
    """Convert an exception of a black box to a UserError, with the exception as its cause."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"the black box failed: {type(error).__name__}: {error!s:.300}") from error


def check_probabilities(answer: Any, count: int, classes: int | None = None) -> NDArray[np.float64]:
    """Return (n,C) probabilities, or raise an error that describes the value."""
    rounding = ROUNDING if getattr(answer, "dtype", None) != torch.bfloat16 else torch.finfo(torch.bfloat16).eps
    expected = f"{count} rows of {classes or 'two or more'} probabilities were expected, one row per input"
    try:
        probs = as_numbers(answer)
    except (TypeError, ValueError):
        raise UserError(f"the black box returned {answer!r:.80}; {expected}") from None
    if probs.ndim != 2 or len(probs) != count or probs.shape[1] < 2 or classes not in (None, probs.shape[1]):
        raise UserError(f"the black box returned numbers of shape {probs.shape}; {expected}")
    for invalid, problem in (
        (~np.isfinite(probs), "are not all finite"),
        (probs < 0, "are not all at least 0"),
        (np.abs(probs.sum(1, keepdims=True) - 1) > rounding, "do not sum to 1"),
    ):
        if invalid.any():
            row = np.round(probs[invalid.any(1)][0], 6).tolist()
            raise UserError(f"the black box returned the probabilities {row!s:.80}, which {problem}")
    return probs


def as_numbers(answer: Any) -> NDArray[np.float64]:
    """An array, or a tensor of any precision; TypeError or ValueError for others."""
    if isinstance(answer, Tensor):  # NumPy has no bfloat16
        answer = answer.detach().to("cpu", torch.promote_types(answer.dtype, torch.float32))
    array = np.asarray(answer)
    if np.iscomplexobj(array):
        raise TypeError
    return array.astype(np.float64)


def check_deterministic(first: NDArray[np.float64], second: NDArray[np.float64], folder: Path | None) -> None:
    """Raise an error if the answers to the same inputs differ; `folder`: folder of the first ones.  (n,C), (n,C)"""
    differences = np.abs(first - second).max(1)
    if differences.max(initial=0.0) <= TOLERANCE:
        return
    worst = int(differences.argmax())
    pair = [np.round(probs[worst], 4).tolist() for probs in (first, second)]
    problem = (
        "changed the order of its classes"
        if _is_permuted(first, second)
        else "predicts different probabilities for the same input"
    )
    exception = f", unless {folder} has the answers of another black box" if folder else ""
    raise UserError(
        f"the black box {problem}: first {pair[0]!s:.80}, then {pair[1]!s:.80}; "
        f"only a deterministic black box can be explained{exception}"
    )


def _is_permuted(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    """True if the columns of one are a permutation of the other's."""
    distances = np.zeros((first.shape[1], first.shape[1]))
    for first_row, second_row in zip(first, second, strict=True):
        distances = np.maximum(distances, np.abs(first_row[:, None] - second_row[None, :]))
    return bool(distances[linear_sum_assignment((distances > TOLERANCE).astype(np.float64))].max() <= TOLERANCE)


REPEATED_INPUTS = 32
"""Inputs that are queried twice."""
TOKENS = 1 << 16
"""Tokens per forward pass, padding included."""


def query_batch(
    task: str,
    answer: Callable[[Rows], Lines],
    batches: Callable[[Rows], Iterable[Rows]],
    count: int,
    cache: AnswerCache,
    on_progress: OnProgress = no_progress,
) -> Lines:
    """Query each of `count` inputs without cached answers.

    `task`: its name in progress reports.  `answer`: any number of lines for each input.  `batches` splits the inputs.
    """
    rows = cache.missing(count)
    done = count - len(rows)
    on_progress(task, done, count)
    for batch in batches(rows):
        with _reporting_progress(f"{done} of {count}", cache):
            lines = answer(batch)
        cache.add(*lines)
        done += len(batch)
        on_progress(task, done, count)
    return cache.lines()


def answers(
    predict: Callable[[Rows], Any],
    batches: Callable[[Rows], Iterable[Rows]],
    count: int,
    cache: AnswerCache,
    on_progress: OnProgress = no_progress,
    clear_cache: Callable[[], None] = lambda: None,
) -> NDArray[np.float64]:
    """Predictions of a black box for every input, in order.  (N,C)

    `predict`: probabilities of some inputs, (n,) -> (n,C).  `clear_cache`: makes the black box predict again.
    """

    def answer(rows: Rows) -> Lines:
        return rows, check_probabilities(predict(rows), len(rows), cache.width)

    probs = query_batch("querying the black box", answer, batches, count, cache, on_progress)[1]
    clear_cache()
    with _reporting_progress(f"{count} of {count}", cache):
        repetitions = [answer(rows) for rows in batches(np.arange(min(count, REPEATED_INPUTS)))]
    if repetitions:
        rows, repeated = map(np.concatenate, zip(*repetitions, strict=True))
        check_deterministic(probs[rows], repeated, cache.folder)
    return probs


def query(
    model: Model,
    data: Data,
    cache: AnswerCache | None = None,
    on_progress: OnProgress = no_progress,
    batch_size: int = BATCH,
) -> Tensor:
    """Predictions of a model for every text, in order: double precision, on the CPU.  (N,C)"""

    def predict(rows: Rows) -> Tensor:
        with inference(model):
            logits: Tensor = model(collate(data, rows).to(model.device)).logits
        return logits.double().softmax(-1)

    batches = partial(check_repeatable, data, batch_size=batch_size)
    cache = AnswerCache() if cache is None else cache
    return torch.from_numpy(answers(predict, batches, len(data), cache, on_progress, model.clear_cache))


def check_repeatable(data: Data, rows: Rows, batch_size: int) -> Iterator[Rows]:
    """Batches of rows of similar length, shortest first."""
    question = None if data.question is None else data.question.select(rows)
    for batch in by_length(Data(data.text.select(rows), question), batch_size, TOKENS):
        yield rows[batch]


@contextmanager
def _reporting_progress(done: str, cache: AnswerCache) -> Iterator[None]:
    """Add to an error how many inputs are done and where their answers are."""
    try:
        with black_box_errors():
            yield
    except UserError as error:
        outcome = f"are done and cached in {cache.folder}; the same call resumes"
        if cache.folder is None:
            outcome = "were done; pass a folder to be able to resume"
        raise UserError(f"{error}.  {done} inputs {outcome}") from error.__cause__ or error
