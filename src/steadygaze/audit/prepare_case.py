"""Models given beside the audited one: may they be compared with it, and do they differ by their seed alone?

Which explanations of a model are audited, and which cannot be.

A subject and examples -> a Case: tokens placed, labels and marks turned into numbers, everything checked.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.audit.audit_case import AuditCase, silent
from steadygaze.audit.audit_config import ProbeConfig
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Example, Span
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import Explainer
from steadygaze.explainers.resolve import missing_capability as lacking
from steadygaze.explainers.resolve import resolve_explainer as named

SEED = "seed"


def check_comparable(subject: ModelAdapter, other: ModelAdapter) -> ModelAdapter:
    """The other one, which reads the same tokens and knows the same labels; refused where it does not."""
    if subject.fingerprint and subject.fingerprint == other.fingerprint:
        raise UserError(f"{other.name} is the audited model itself: another seed is another training")
    if not subject.is_comparable(other):
        raise UserError(
            f"{other.name} was not trained alike: its labels or its vocabulary differ from {subject.name}'s"
        )
    return other


def training_difference(subject: ModelAdapter, others: Sequence[ModelAdapter]) -> str:
    """In what else than its seed the training of another model differs, as far as the facts tell; '': in nothing."""
    here = {"kind": subject.kind, **subject.facts}
    for other in others:
        there = {"kind": other.kind, **other.facts}
        for name in [*here, *(there.keys() - here.keys())]:
            ours, theirs = here.get(name, "not known"), there.get(name, "not known")
            if name != SEED and ours != theirs:
                return f"{other.name} was not trained alike ({name}: {theirs}, here {ours})"
        if SEED in here and here[SEED] == there.get(SEED):
            return f"{other.name} was not trained alike: its seed is {here[SEED]} too, but not its weights"
    return ""


ORDER = ("rationale", "attention", "gradient", "leave-one-out")
"""What is audited where nobody says: the first of these that the model has."""


def choose_explainers(subject: ModelAdapter, asked: Sequence[Any]) -> tuple[dict[str, Explainer], dict[str, str]]:
    """Those that the model can be asked for; and of the others, why it cannot."""
    pairs = [named(one.for_adapter(subject) if isinstance(one, TextExplainer) else one) for one in asked]
    chosen = dict(pairs) or _default(subject)
    if len(pairs) > len(chosen):
        raise UserError(
            f"two explainers are called alike, among {', '.join(name for name, _ in pairs)}: audit one at a time"
        )
    unable = {name: why for name, explainer in chosen.items() if (why := lacking(explainer, subject.model))}
    able = {name: explainer for name, explainer in chosen.items() if name not in unable}
    if not able:
        name, why = next(iter(unable.items()))
        raise UserError(f"{name} of {subject.name} cannot be audited: {why}; ask for another explainer")
    return able, unable


def _default(subject: ModelAdapter) -> dict[str, Explainer]:
    name = next(name for name in ORDER if not lacking(EXPLAINERS[name](), subject.model))
    return {name: EXPLAINERS[name]()}


SAYS = re.compile(r"[^\W_]")
"""A letter or a digit: what a token must hold to say anything."""


@dataclass(frozen=True)
class PreparedCase:
    """A case, and what is needed to show its texts to a person."""

    adapter: ModelAdapter
    examples: Sequence[Example]
    placed: TokenizedTexts
    case: AuditCase


def prepare(
    subject: ModelAdapter,
    examples: Sequence[Example],
    explainers: Mapping[str, Explainer],
    plan: ProbeConfig,
    watch: Callable[[str, int, int], None] = silent,
) -> PreparedCase:
    if not examples:
        raise UserError("there are no texts to audit with")
    subject = _in_doubles(subject.for_pairs(_paired(examples)))
    placed = subject.tokens.place([example.text for example in examples])
    read = subject.data(placed, [example.question or "" for example in examples] if subject.pair else None)
    labels = [example.label for example in examples]
    known = [label for label in labels if label is not None]
    if known and None in labels:
        row = labels.index(None)
        raise UserError(f"labels[{row}] is missing, but other texts have a label; give every text a label, or none")
    codes = np.array(subject.label_codes(known), np.int64) if known else None
    said = _tokens(placed, [[found.span() for found in SAYS.finditer(example.text)] for example in examples])
    case = AuditCase(
        subject.model,
        replace(read, label=codes),
        explainers,
        plan,
        rationales=_tokens(placed, [example.rationales for example in examples]),
        first=_tokens(placed, [example.sentences and example.sentences[:1] for example in examples]),
        blank=None if said is None else ~said,
        watch=watch,
        classes=tuple(subject.classes),
    )
    return PreparedCase(subject, examples, placed, case)


def _in_doubles(subject: ModelAdapter) -> ModelAdapter:
    """An Apple GPU has no double precision: a copy of the model is read on the CPU."""
    if subject.model.device.type != "mps":
        return subject
    return replace(subject, model=copy.deepcopy(subject.model).cpu())


def _paired(examples: Sequence[Example]) -> bool:
    found = {example.question is not None for example in examples}
    if len(found) > 1:
        raise UserError("some texts have a question and some have none: an audit reads one kind at a time")
    return found.pop()


def _tokens(placed: TokenizedTexts, spans: Sequence[Sequence[Span] | None]) -> Tensor | None:
    """Characters -> the tokens that share one, (M,) end to end; None where they are known of no text."""
    if all(marked is None for marked in spans):
        return None
    read = placed.ragged
    found = np.zeros(len(read.ids), np.bool_)
    found[read.words] = np.concatenate(
        [mark_tokens(at, marked or ()) for at, marked in zip(placed.spans, spans, strict=True)]
    )
    return torch.from_numpy(found)
