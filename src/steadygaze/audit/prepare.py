"""A subject and examples -> a Case: tokens placed, labels and marks turned into numbers, everything checked."""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from steadygaze.audit.case import Case, Plan, silent
from steadygaze.errors import UserError
from steadygaze.explain.explainer import Explainer
from steadygaze.subject import Subject
from steadygaze.tokens.align import mark
from steadygaze.tokens.ragged import Placed
from steadygaze.types import Example, Span

SAYS = re.compile(r"[^\W_]")
"""A letter or a digit: what a token must hold to say anything."""


@dataclass(frozen=True)
class Prepared:
    """A case, and what is needed to show its texts to a person."""

    subject: Subject
    examples: Sequence[Example]
    placed: Placed
    case: Case


def prepare(
    subject: Subject,
    examples: Sequence[Example],
    explainers: Mapping[str, Explainer],
    plan: Plan,
    watch: Callable[[str, int, int], None] = silent,
) -> Prepared:
    if not examples:
        raise UserError("there are no texts to audit with")
    subject = _in_doubles(subject.reading(_paired(examples)))
    placed = subject.tokens.place([example.text for example in examples])
    read = subject.data(placed, [example.question or "" for example in examples] if subject.pair else None)
    labels = [example.label for example in examples]
    known = [label for label in labels if label is not None]
    if known and None in labels:
        row = labels.index(None)
        raise UserError(f"labels[{row}] is missing, but other texts have a label; give every text a label, or none")
    codes = np.array(subject.codes(known), np.int64) if known else None
    said = _tokens(placed, [[found.span() for found in SAYS.finditer(example.text)] for example in examples])
    case = Case(
        subject.model,
        replace(read, label=codes),
        explainers,
        plan,
        evidence=_tokens(placed, [example.evidence for example in examples]),
        first=_tokens(placed, [example.sentences and example.sentences[:1] for example in examples]),
        blank=None if said is None else ~said,
        watch=watch,
        classes=tuple(subject.classes),
    )
    return Prepared(subject, examples, placed, case)


def _in_doubles(subject: Subject) -> Subject:
    """An Apple GPU has no double precision: a copy of the model is read on the CPU."""
    if subject.model.device.type != "mps":
        return subject
    return replace(subject, model=copy.deepcopy(subject.model).cpu())


def _paired(examples: Sequence[Example]) -> bool:
    found = {example.question is not None for example in examples}
    if len(found) > 1:
        raise UserError("some texts have a question and some have none: an audit reads one kind at a time")
    return found.pop()


def _tokens(placed: Placed, spans: Sequence[Sequence[Span] | None]) -> Tensor | None:
    """Characters -> the tokens that share one, (M,) end to end; None where they are known of no text."""
    if all(marked is None for marked in spans):
        return None
    read = placed.ragged
    found = np.zeros(len(read.ids), np.bool_)
    found[read.words] = np.concatenate([mark(at, marked or ()) for at, marked in zip(placed.spans, spans, strict=True)])
    return torch.from_numpy(found)
