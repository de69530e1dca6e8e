"""sg.audit: how far may this explanation be believed?

Reads every text as it is, asks every protocol, turns what they found into Rows with intervals, and the Rows into
verdicts.  The model is left bit for bit as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadygaze import __version__
from steadygaze.audit.case import Case, Plan
from steadygaze.audit.finding import Finding
from steadygaze.audit.protocol import PROTOCOLS
from steadygaze.audit.protocol.holds_still import LACKING
from steadygaze.audit.verdict import verdicts
from steadygaze.batch import Data
from steadygaze.errors import UserError, unknown
from steadygaze.explain import EXPLAINERS
from steadygaze.explain.explainer import Explainer
from steadygaze.inputs import read_texts
from steadygaze.record import Row
from steadygaze.report.interval import mean_row
from steadygaze.report.report import Report
from steadygaze.subject import Subject, as_subject
from steadygaze.tokens.align import mark
from steadygaze.types import Example, Label, Span

ORDER = ("attention", "gradient", "leave-one-out")
"""What is audited where nobody says: the first of these that the model has."""
Settings = Mapping[str, str | int | float]


@dataclass(frozen=True)
class Asked:
    """What an audit is to do beyond reading the texts."""

    explainers: Mapping[str, Explainer] = field(default_factory=dict)
    """By name; the first is the one the verdicts are about.  None: the first of ORDER the model has."""
    plan: Plan = field(default_factory=Plan)
    settings: Settings = field(default_factory=dict)
    """What every number depends on: corpus, split …"""
    title: str = "How far may this explanation be believed?"
    watch: Callable[[str, int, int], None] | None = None


def audit(
    model: Any,
    texts: Any,
    labels: Sequence[Label] | None = None,
    *,
    explainers: Sequence[str] | None = None,
    evidence: Sequence[Sequence[Span] | None] | None = None,
    seeds: Sequence[Any] = (),
    classes: Sequence[Label] | None = None,
    plan: Plan | None = None,
) -> Report:
    """Everything that can be asked of a model and its explanation on these texts.

    `evidence` has the characters that a person marked in each text; `seeds` are models trained alike with other seeds.
    """
    subject = as_subject(model, classes=classes)
    written, questions = read_texts(texts)
    asked: Sequence[str | None] = questions or [None] * len(written)
    for name, given in (("labels", labels), ("evidence", evidence)):
        if given is not None and len(given) != len(written):
            raise UserError(f"found {len(written)} texts and {len(given)} {name}; they must be equally many")
    examples = [
        Example(text, None if labels is None else _plain(labels[i]), asked[i], _spans(evidence, i))
        for i, text in enumerate(written)
    ]
    named = {name: _explainer(name) for name in explainers or ()}
    others = [as_subject(other, classes=classes) for other in seeds]
    return audit_examples(subject, examples, Asked(named, plan or Plan()), others)


def audit_examples(
    subject: Subject, examples: Sequence[Example], asked: Asked, others: Sequence[Subject] = ()
) -> Report:
    if not examples:
        raise UserError("there are no texts to audit with")
    chosen = dict(asked.explainers) or _default(subject)
    able = {name: e for name, e in chosen.items() if not e.needs - subject.model.abilities}
    if not able:
        lacking = LACKING[min(next(iter(chosen.values())).needs - subject.model.abilities)]
        raise UserError(f"{next(iter(chosen))} cannot be audited: {lacking}; ask for another explainer")
    case = _case(subject, examples, able, asked)
    rest = tuple(_case(_alike(subject, other), examples, able, asked) for other in others)
    case = Case(**{**{name: getattr(case, name) for name in case.__dataclass_fields__}, "others": rest})
    known = {
        **asked.settings,
        "model": subject.fingerprint[:12] or subject.name,
        "seed": case.plan.seed,
        "v": __version__,
    }
    found = [finding for protocol in PROTOCOLS.values() for finding in protocol(case)]
    found += [
        Finding("comprehensiveness", explainer=name, absent=LACKING[min(e.needs - subject.model.abilities)])
        for name, e in chosen.items()
        if name not in able
    ]
    rows = tuple(_row(finding, known) for finding in found)
    main = next(iter(able))
    facts = {
        "model": f"{subject.name}, {subject.kind}",
        **subject.facts,
        "explanation": main,
        "texts": f"{len(examples):,}",
        **{name: str(value) for name, value in asked.settings.items()},
        "steadygaze": __version__,
    }
    return Report(asked.title, rows, verdicts(rows, main), facts=facts)


def _case(subject: Subject, examples: Sequence[Example], explainers: Mapping[str, Explainer], asked: Asked) -> Case:
    paired = [example.question is not None for example in examples]
    if any(paired) != subject.pair or all(paired) != subject.pair:
        kinds = ("single texts", "pairs (text, question)")
        raise UserError(f"this model reads {kinds[subject.pair]}, found {kinds[any(paired)]}")
    placed = subject.tokens.place([example.text for example in examples])
    questions = [example.question or "" for example in examples] if subject.pair else None
    read = subject.data(placed, questions)
    data = Data(read.text, read.question, _codes(subject, examples))
    width = int(read.text.lengths.max(initial=1))
    words = read.text.words

    def spread(spans: Callable[[Example], Sequence[Span] | None]) -> Tensor | None:
        """Characters -> (N,T) tokens; None where they are known of no text."""
        if all(spans(example) is None for example in examples):
            return None
        found = torch.zeros(len(examples), width, dtype=torch.bool)
        for i, example in enumerate(examples):
            start, end = read.text.starts[i : i + 2]
            places = np.flatnonzero(words[start:end])
            found[i, torch.from_numpy(places)] = torch.from_numpy(mark(placed.spans[i], spans(example) or ()))
        return found

    evidence, first = spread(lambda e: e.evidence), spread(lambda e: e.sentences and e.sentences[:1])
    watch = {} if asked.watch is None else {"watch": asked.watch}
    return Case(subject.model, data, explainers, asked.plan, evidence, first, **watch)  # type: ignore[arg-type]


def _codes(subject: Subject, examples: Sequence[Example]) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    labels = [example.label for example in examples]
    if all(label is None for label in labels):
        return None
    places = {label: i for i, label in enumerate(subject.classes)}
    if strange := next((label for label in labels if label not in places), None):
        known = ", ".join(map(repr, subject.classes))
        raise UserError(f"the texts have the label {strange!r}, which the model does not know; it knows {known}")
    return np.array([places[label] for label in labels if label is not None], np.int64)


def _alike(subject: Subject, other: Subject) -> Subject:
    if list(other.classes) != list(subject.classes) or other.tokens.vocabulary != subject.tokens.vocabulary:
        raise UserError(
            f"{other.name} was not trained alike: its labels or its vocabulary differ from {subject.name}'s"
        )
    return other


def _row(finding: Finding, known: Settings) -> Row:
    settings = {**known, **finding.settings, **({"explain": finding.explainer} if finding.explainer else {})}
    if finding.absent:
        return Row(finding.measure, float("nan"), 0, None, settings, f"not applicable, because {finding.absent}")
    if finding.value is not None:
        return Row(finding.measure, finding.value, int(settings.pop("n", 0)), finding.interval, settings, finding.note)
    assert finding.values is not None
    values = finding.values[finding.values.isfinite()]
    if not len(values):
        return Row(
            finding.measure, float("nan"), 0, None, settings, "not applicable, because it makes sense of no text"
        )
    left = len(finding.values) - len(values)
    note = finding.note or (f"{left:,} texts left out" if left else "")
    return mean_row(finding.measure, values.tolist(), settings, note=note)


def _default(subject: Subject) -> dict[str, Explainer]:
    for name in ORDER:
        if name in EXPLAINERS and not EXPLAINERS[name].needs - subject.model.abilities:
            return {name: EXPLAINERS[name]()}
    raise UserError(f"there is no explanation of {subject.name} that could be audited")


def _explainer(name: str) -> Explainer:
    if name not in EXPLAINERS:
        raise unknown("explainer", name, EXPLAINERS)
    return EXPLAINERS[name]()


def _plain(label: Any) -> Label:
    plain: Label = label.item() if isinstance(label, np.generic) else label
    return plain


def _spans(evidence: Sequence[Sequence[Span] | None] | None, i: int) -> tuple[Span, ...] | None:
    given = None if evidence is None else evidence[i]
    return None if given is None else tuple((int(start), int(end)) for start, end in given)
