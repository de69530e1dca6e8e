"""Questions to a black box, batch by batch: what it says is checked, and kept as it comes.

A black box that fails half-way costs what it was asked last; the same call goes on from there.  One that cannot be
explained is found out:

    answers that are no probabilities                              at once
    other answers to the same inputs, or the classes in another    at the end, when the first inputs are
    order                                                          asked about again
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.batch import Data, by_length, collate
from steadygaze.errors import UserError
from steadygaze.explain.learned.credible import checked, steady
from steadygaze.explain.learned.kept import Kept, Lines
from steadygaze.explain.learned.views import Rows
from steadygaze.infer import BATCH, inference
from steadygaze.reader import Reader

Watch = Callable[[str, int, int], None]
"""Told what is being done, how many inputs are done and of how many."""
AGAIN = 32
"""Inputs asked about twice."""
TOKENS = 1 << 16
"""Read at once, padding included."""


def silent(what: str, done: int, total: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Question:
    """Something to be asked of every input of a split."""

    what: str
    """As progress calls it."""
    say: Callable[[Rows], Lines]
    """What is said of these inputs: any number of lines for each."""
    cut: Callable[[Rows], Iterable[Rows]]
    """Which of these inputs are put together."""


@dataclass(frozen=True)
class Answering:
    """A black box and a split: texts, images or anything else that has rows."""

    say: Callable[[Rows], Any]
    """Probabilities of these inputs.  (n,) -> (n,C)"""
    cut: Callable[[Rows], Iterable[Rows]]
    forget: Callable[[], None] = lambda: None
    """Makes it look again at what it has already answered."""


def put(question: Question, many: int, kept: Kept, watch: Watch = silent) -> Lines:
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


def answers(box: Answering, many: int, kept: Kept, watch: Watch = silent) -> NDArray[np.float64]:
    """What a black box says of every input, in their order.  (N,C)"""

    def say(rows: Rows) -> Lines:
        return rows, checked(box.say(rows), len(rows), kept.width)

    found = put(Question("asking the black box", say, box.cut), many, kept, watch)[1]
    box.forget()
    with _kept_so_far(f"{many} of {many}", kept):
        again = [say(rows) for rows in box.cut(np.arange(min(many, AGAIN)))]
    if again:
        rows, twice = map(np.concatenate, zip(*again, strict=True))
        steady(found[rows], twice, kept.folder)
    return found


def ask(model: Reader, data: Data, kept: Kept | None = None, watch: Watch = silent, batch_size: int = BATCH) -> Tensor:
    """What a model says of every text, in their order: doubles, on the CPU.  (N,C)"""

    def say(rows: Rows) -> Tensor:
        with inference(model):
            logits: Tensor = model(collate(data, rows).to(model.device)).logits
        return logits.double().softmax(-1)

    box = Answering(say, lambda rows: alike(data, rows, batch_size), model.forget)
    return torch.from_numpy(answers(box, len(data), Kept() if kept is None else kept, watch))


def alike(data: Data, rows: Rows, batch_size: int) -> Iterator[Rows]:
    """These rows in batches of like length, shortest first."""
    question = None if data.question is None else data.question.select(rows)
    for some in by_length(Data(data.text.select(rows), question), batch_size, TOKENS):
        yield rows[some]


@contextmanager
def _kept_so_far(done: str, kept: Kept) -> Iterator[None]:
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
