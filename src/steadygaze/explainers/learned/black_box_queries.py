"""Batched queries of a black box; the answers are checked and cached.

After a failure of the black box the same call resumes.  Two checks detect a black box that cannot be explained:

    every answer must consist of probabilities
    the first inputs are queried again at the end, and must get the same probabilities in the same order of classes
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from steadygaze.core.errors import UserError
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.explainers.learned.answer_cache import AnswerCache, Lines
from steadygaze.explainers.learned.selector import Rows
from steadygaze.models.inference import BATCH, inference
from steadygaze.models.model_protocol import Model

NEAR = 1e-2
"""Largest difference between two answers to one input: half precision rounds differently in other batches."""
ROUNDING = 1e-3
"""Largest difference of the sum of probabilities from one."""


def predicted(predict: Callable[[Any], Any], inputs: Any, many: int, classes: int | None = None) -> NDArray[np.float64]:
    """Call a black box on inputs that it may change; return (n,C) probabilities.

    Raises
    ------
    UserError
        The black box raised an exception, which is the cause of this one, or did not return probabilities.
    """
    try:
        found = predict(inputs)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"the black box failed: {type(error).__name__}: {error!s:.300}") from error
    return check_probabilities(found, many, classes)


def check_probabilities(found: Any, many: int, classes: int | None = None) -> NDArray[np.float64]:
    """Return (n,C) probabilities, or raise an error that describes the value."""
    expected = f"{many} rows of {classes or 'two or more'} probabilities were expected, one row per input"
    try:
        array = np.asarray(found.detach().cpu() if isinstance(found, Tensor) else found)
        if np.iscomplexobj(array):
            raise TypeError
        probs = array.astype(np.float64)
    except (TypeError, ValueError):
        raise UserError(f"the black box returned {found!r:.80}; {expected}") from None
    if probs.ndim != 2 or len(probs) != many or probs.shape[1] < 2 or classes not in (None, probs.shape[1]):
        raise UserError(f"the black box returned numbers of shape {probs.shape}; {expected}")
    for wrong, problem in (
        (~np.isfinite(probs), "are not all finite"),
        (probs < 0, "are not all at least 0"),
        (np.abs(probs.sum(1, keepdims=True) - 1) > ROUNDING, "do not sum to 1"),
    ):
        if wrong.any():
            row = np.round(probs[wrong.any(1)][0], 6).tolist()
            raise UserError(f"the black box returned the probabilities {row!s:.80}, which {problem}")
    return probs


def check_deterministic(first: NDArray[np.float64], again: NDArray[np.float64], kept: Path | None) -> None:
    """Raise an error if the answers to the same inputs differ; `kept`: folder of the first ones.  (n,C), (n,C)"""
    differences = np.abs(first - again).max(1)
    if differences.max(initial=0.0) <= NEAR:
        return
    worst = int(differences.argmax())
    pair = [np.round(probs[worst], 4).tolist() for probs in (first, again)]
    problem = (
        "changed the order of its classes"
        if _is_permuted(first, again)
        else "predicts different probabilities for the same input"
    )
    other = f", unless {kept} has the answers of another black box" if kept else ""
    raise UserError(
        f"the black box {problem}: first {pair[0]!s:.80}, then {pair[1]!s:.80}; "
        f"only a deterministic black box can be explained{other}"
    )


def _is_permuted(first: NDArray[np.float64], again: NDArray[np.float64]) -> bool:
    """Whether the columns of one are a permutation of the other's."""
    distances = np.zeros((first.shape[1], first.shape[1]))
    for before, after in zip(first, again, strict=True):
        distances = np.maximum(distances, np.abs(before[:, None] - after[None, :]))
    return bool(distances[linear_sum_assignment((distances > NEAR).astype(np.float64))].max() <= NEAR)


Watch = Callable[[str, int, int], None]
"""Progress callback: task, inputs done, inputs in all."""
AGAIN = 32
"""Inputs that are queried twice."""
TOKENS = 1 << 16
"""Tokens per forward pass, padding included."""


def silent(what: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class BlackBoxQuery:
    """A query for every input of a split."""

    what: str
    """Name of the task in progress reports."""
    say: Callable[[Rows], Lines]
    """Answers for these inputs: any number of lines each."""
    cut: Callable[[Rows], Iterable[Rows]]
    """Splits the inputs into batches."""


@dataclass(frozen=True)
class BlackBoxAnswers:
    """A black box and a split with rows: texts, images or other inputs."""

    say: Callable[[Rows], Any]
    """Probabilities of these inputs.  (n,) -> (n,C)"""
    cut: Callable[[Rows], Iterable[Rows]]
    clear_cache: Callable[[], None] = lambda: None
    """Clears the cache of the black box, so that it predicts again."""


def query_batch(question: BlackBoxQuery, many: int, kept: AnswerCache, watch: Watch = silent) -> Lines:
    """Run the query for each of `many` inputs without cached answers."""
    rows = kept.missing(many)
    done = many - len(rows)
    watch(question.what, done, many)
    for batch in question.cut(rows):
        with _reporting_progress(f"{done} of {many}", kept):
            lines = question.say(batch)
        kept.add(*lines)
        done += len(batch)
        watch(question.what, done, many)
    return kept.lines()


def answers(box: BlackBoxAnswers, many: int, kept: AnswerCache, watch: Watch = silent) -> NDArray[np.float64]:
    """Predictions of a black box for every input, in order.  (N,C)"""

    def say(rows: Rows) -> Lines:
        return rows, check_probabilities(box.say(rows), len(rows), kept.width)

    probs = query_batch(BlackBoxQuery("querying the black box", say, box.cut), many, kept, watch)[1]
    box.clear_cache()
    with _reporting_progress(f"{many} of {many}", kept):
        again = [say(rows) for rows in box.cut(np.arange(min(many, AGAIN)))]
    if again:
        rows, repeated = map(np.concatenate, zip(*again, strict=True))
        check_deterministic(probs[rows], repeated, kept.folder)
    return probs


def query(
    model: Model, data: Data, kept: AnswerCache | None = None, watch: Watch = silent, batch_size: int = BATCH
) -> Tensor:
    """Predictions of a model for every text, in order: double precision, on the CPU.  (N,C)"""

    def say(rows: Rows) -> Tensor:
        with inference(model):
            logits: Tensor = model(collate(data, rows).to(model.device)).logits
        return logits.double().softmax(-1)

    box = BlackBoxAnswers(say, lambda rows: check_repeatable(data, rows, batch_size), model.clear_cache)
    return torch.from_numpy(answers(box, len(data), AnswerCache() if kept is None else kept, watch))


def check_repeatable(data: Data, rows: Rows, batch_size: int) -> Iterator[Rows]:
    """Batches of rows of similar length, shortest first."""
    question = None if data.question is None else data.question.select(rows)
    for batch in by_length(Data(data.text.select(rows), question), batch_size, TOKENS):
        yield rows[batch]


@contextmanager
def _reporting_progress(done: str, kept: AnswerCache) -> Iterator[None]:
    """Add to an error how many inputs are done and where their answers are."""
    try:
        yield
    except Exception as error:
        own = isinstance(error, UserError)
        why = str(error) if own else f"the black box failed: {type(error).__name__}: {error!s:.300}"
        outcome = f"are done and cached in {kept.folder}; the same call resumes"
        if kept.folder is None:
            outcome = "were done; pass a folder to be able to resume"
        raise UserError(f"{why}.  {done} inputs {outcome}") from error
