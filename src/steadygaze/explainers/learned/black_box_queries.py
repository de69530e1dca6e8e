"""What a black box must say to be explained: probabilities, and of the same input the same.

Questions to a black box, batch by batch: what it says is checked, and kept as it comes.

A black box that fails half-way costs what it was asked last; the same call goes on from there.  One that cannot be
explained is found out:

    answers that are no probabilities                              at once
    other answers to the same inputs, or the classes in another    at the end, when the first inputs are
    order                                                          asked about again
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
"""How far two answers to one input may be apart: a network in half precision rounds so much by who is beside it."""
ROUNDING = 1e-3
"""How far probabilities may be from summing to one."""


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
    """(n,C) probabilities, or a sentence that says what they are instead."""
    wanted = f"{many} rows of {classes or 'two or more'} probabilities, one row for each input, were expected"
    try:
        given = np.asarray(found.detach().cpu() if isinstance(found, Tensor) else found)
        if np.iscomplexobj(given):
            raise TypeError
        probs = given.astype(np.float64)
    except (TypeError, ValueError):
        raise UserError(f"the black box gave {found!r:.80}; {wanted}") from None
    if probs.ndim != 2 or len(probs) != many or probs.shape[1] < 2 or classes not in (None, probs.shape[1]):
        raise UserError(f"the black box gave numbers of shape {probs.shape}; {wanted}")
    for wrong, what in (
        (~np.isfinite(probs), "are not all finite"),
        (probs < 0, "are not all from 0 up"),
        (np.abs(probs.sum(1, keepdims=True) - 1) > ROUNDING, "do not sum to one"),
    ):
        if wrong.any():
            row = np.round(probs[wrong.any(1)][0], 6).tolist()
            raise UserError(f"the black box gave an input the probabilities {row!s:.80}, which {what}")
    return probs


def check_deterministic(first: NDArray[np.float64], again: NDArray[np.float64], kept: Path | None) -> None:
    """The same answers to the same inputs, or a sentence; `kept`: where the first ones are.  (n,C), (n,C)"""
    apart = np.abs(first - again).max(1)
    if apart.max(initial=0.0) <= NEAR:
        return
    worst = int(apart.argmax())
    said = [np.round(one[worst], 4).tolist() for one in (first, again)]
    what = (
        "changed the order of its classes" if _dealt(first, again) else "does not say the same of the same input twice"
    )
    other = f", unless it is another one than that whose answers {kept} keeps" if kept else ""
    raise UserError(
        f"the black box {what}: it said {said[0]!s:.80}, then {said[1]!s:.80}; it cannot be explained so{other}"
    )


def _dealt(first: NDArray[np.float64], again: NDArray[np.float64]) -> bool:
    """Whether the columns of the one are those of the other in some order."""
    apart = np.zeros((first.shape[1], first.shape[1]))
    for one, other in zip(first, again, strict=True):
        apart = np.maximum(apart, np.abs(one[:, None] - other[None, :]))
    return bool(apart[linear_sum_assignment((apart > NEAR).astype(np.float64))].max() <= NEAR)


Watch = Callable[[str, int, int], None]
"""Told what is being done, how many inputs are done and of how many."""
AGAIN = 32
"""Inputs asked about twice."""
TOKENS = 1 << 16
"""Read at once, padding included."""


def silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class BlackBoxQuery:
    """Something to be asked of every input of a split."""

    what: str
    """As progress calls it."""
    say: Callable[[Rows], Lines]
    """What is said of these inputs: any number of lines for each."""
    cut: Callable[[Rows], Iterable[Rows]]
    """Which of these inputs are put together."""


@dataclass(frozen=True)
class BlackBoxAnswers:
    """A black box and a split: texts, images or anything else that has rows."""

    say: Callable[[Rows], Any]
    """Probabilities of these inputs.  (n,) -> (n,C)"""
    cut: Callable[[Rows], Iterable[Rows]]
    clear_cache: Callable[[], None] = lambda: None
    """Makes it look again at what it has already answered."""


def query_batch(question: BlackBoxQuery, many: int, kept: AnswerCache, watch: Watch = silent) -> Lines:
    """The question, put for every one of `many` inputs of which nothing is kept."""
    rows = kept.missing(many)
    done = many - len(rows)
    watch(question.what, done, many)
    for some in question.cut(rows):
        with _kept_so_far(f"{done} of {many}", kept):
            found = question.say(some)
        kept.add(*found)
        done += len(some)
        watch(question.what, done, many)
    return kept.lines()


def answers(box: BlackBoxAnswers, many: int, kept: AnswerCache, watch: Watch = silent) -> NDArray[np.float64]:
    """What a black box says of every input, in their order.  (N,C)"""

    def say(rows: Rows) -> Lines:
        return rows, check_probabilities(box.say(rows), len(rows), kept.width)

    found = query_batch(BlackBoxQuery("asking the black box", say, box.cut), many, kept, watch)[1]
    box.clear_cache()
    with _kept_so_far(f"{many} of {many}", kept):
        again = [say(rows) for rows in box.cut(np.arange(min(many, AGAIN)))]
    if again:
        rows, twice = map(np.concatenate, zip(*again, strict=True))
        check_deterministic(found[rows], twice, kept.folder)
    return found


def query(
    model: Model, data: Data, kept: AnswerCache | None = None, watch: Watch = silent, batch_size: int = BATCH
) -> Tensor:
    """What a model says of every text, in their order: doubles, on the CPU.  (N,C)"""

    def say(rows: Rows) -> Tensor:
        with inference(model):
            logits: Tensor = model(collate(data, rows).to(model.device)).logits
        return logits.double().softmax(-1)

    box = BlackBoxAnswers(say, lambda rows: check_repeatable(data, rows, batch_size), model.clear_cache)
    return torch.from_numpy(answers(box, len(data), AnswerCache() if kept is None else kept, watch))


def check_repeatable(data: Data, rows: Rows, batch_size: int) -> Iterator[Rows]:
    """These rows in batches of like length, shortest first."""
    question = None if data.question is None else data.question.select(rows)
    for some in by_length(Data(data.text.select(rows), question), batch_size, TOKENS):
        yield rows[some]


@contextmanager
def _kept_so_far(done: str, kept: AnswerCache) -> Iterator[None]:
    """What goes wrong inside, in a sentence that says what is not lost."""
    try:
        yield
    except Exception as error:
        own = isinstance(error, UserError)
        why = str(error) if own else f"the black box failed: {type(error).__name__}: {error!s:.300}"
        place = f"are done and kept in {kept.folder}: the same call goes on from there"
        if kept.folder is None:
            place = "were done; given a folder to keep them in, a next call would go on from there"
        raise UserError(f"{why}.  {done} inputs {place}") from error
