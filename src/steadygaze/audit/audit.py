"""sg.audit: how far may this explanation be believed?

Reads every text as it is, asks every protocol, turns what they found into Rows with intervals, and the Rows into
verdicts.  The model is left bit for bit as it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steadygaze import __version__
from steadygaze.audit.case import Plan, silent
from steadygaze.audit.catalogue import MEASURES
from steadygaze.audit.choose import choose
from steadygaze.audit.finding import Finding
from steadygaze.audit.pictures import pictures
from steadygaze.audit.prepare import Prepared, prepare
from steadygaze.audit.protocol import PROTOCOLS
from steadygaze.audit.shifts import shifts
from steadygaze.audit.verdict import QUESTIONS, verdicts
from steadygaze.errors import UserError
from steadygaze.inputs import read_texts
from steadygaze.record import Row
from steadygaze.report.interval import mean_row
from steadygaze.report.report import Fact, Report
from steadygaze.subject import Subject, as_subject
from steadygaze.subject.synonyms import table_for
from steadygaze.types import Example, Label, Span

SWAPS = {"1-synonym": 1, "3-synonyms": 3}
NO_SYNONYMS = "no table of synonyms was given, and the model has no vectors to find some by"
TITLE = "How far may this explanation be believed?"
Settings = Mapping[str, str | int | float]


@dataclass(frozen=True)
class Asked:
    """What an audit is to do beyond reading the texts."""

    explainers: Sequence[str] = ()
    """The verdicts are about the first.  None: the first of `choose.ORDER` that the model has."""
    plan: Plan = field(default_factory=Plan)
    settings: Settings = field(default_factory=dict)
    """What every number depends on: corpus, split …"""
    synonyms: Any = None
    """A table of synonyms: a file or a mapping.  None: words with close vectors, where the model has vectors."""
    facts: Mapping[str, str] = field(default_factory=dict)
    watch: Callable[[str, int, int], None] = silent


def audit(
    model: Any,
    texts: Any,
    labels: Sequence[Label] | None = None,
    *,
    explainers: Sequence[str] = (),
    evidence: Sequence[Sequence[Span] | None] | None = None,
    seeds: Sequence[Any] = (),
    synonyms: Any = None,
    classes: Sequence[Label] | None = None,
    plan: Plan | None = None,
) -> Report:
    """Everything that can be asked of a model and its explanation on these texts.

    `model` is a TextClassifier, a folder, a Hugging Face classifier or any texts -> probabilities; `evidence` the
    characters that a person marked in each text; `seeds` models trained alike with other seeds; `synonyms` a file or a
    mapping of words that may stand for each other.
    """
    written, questions = read_texts(texts)
    for name, given in (("labels", labels), ("evidence", evidence)):
        if given is not None and len(given) != len(written):
            raise UserError(f"found {len(written)} texts and {len(given)} {name}; they must be equally many")
    examples = [
        Example(
            text,
            None if labels is None else _plain(labels[i]),
            None if questions is None else questions[i],
            _spans(evidence, i),
        )
        for i, text in enumerate(written)
    ]
    asked = Asked(tuple(explainers), plan or Plan(), synonyms=synonyms)
    others = [as_subject(other, classes=classes) for other in seeds]
    return examine(as_subject(model, classes=classes), examples, asked, others).report()


@dataclass(frozen=True)
class Examined:
    """What was found, text by text."""

    here: Prepared
    found: Sequence[Finding]
    asked: Asked

    @property
    def explainer(self) -> str:
        """The explanation that the verdicts are about."""
        return next(iter(self.here.case.explainers))

    def report(self) -> Report:
        return _report(self.here, self.found, self.asked)


def examine(subject: Subject, examples: Sequence[Example], asked: Asked, others: Sequence[Subject] = ()) -> Examined:
    """The same of examples as a corpus has them."""
    able, unable = choose(subject, asked.explainers)
    table = table_for(subject, asked.synonyms, [example.text for example in examples])
    swaps = {} if table is None else {name: (table, number) for name, number in SWAPS.items()}
    plan = replace(asked.plan, synonyms=swaps)
    here = prepare(subject, examples, able, plan, asked.watch)
    rest = tuple(prepare(_alike(subject, other), examples, able, plan, asked.watch).case for other in others)
    here = replace(here, case=replace(here.case, others=rest))
    found = [finding for protocol in PROTOCOLS.values() for finding in protocol(here.case)]
    found += [Finding("comprehensiveness", explainer=name, absent=why) for name, why in unable.items()]
    found += [] if swaps else [Finding(f"jensen-shannon/{name}", absent=NO_SYNONYMS) for name in SWAPS]
    return Examined(here, found, asked)


def _report(here: Prepared, found: Sequence[Finding], asked: Asked) -> Report:
    subject, main = here.subject, next(iter(here.case.explainers))
    known = {**asked.settings, "model": subject.fingerprint[:12] or subject.name, "seed": here.case.plan.seed}
    rows = tuple(_row(finding, {**known, "v": __version__}) for finding in found)
    facts = {
        "model": f"{subject.name}, {subject.kind}",
        **subject.facts,
        "explanation": main,
        "texts": f"{len(here.examples):,}",
        **{name: str(value) for name, value in asked.settings.items()},
        **asked.facts,
        "steadygaze": __version__,
    }
    return Report(
        TITLE,
        rows,
        verdicts(rows, main),
        shifts(here, main, found),
        pictures(here.case, main, found),
        facts=facts,
        meanings={name: Fact(m.about, *m.bounds, m.better, m.cite) for name, m in MEASURES.items()},
        questions={name: question.asks for question in QUESTIONS for name in question.bounds},
    )


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


def _alike(subject: Subject, other: Subject) -> Subject:
    if not subject.alike(other):
        raise UserError(
            f"{other.name} was not trained alike: its labels or its vocabulary differ from {subject.name}'s"
        )
    return other


def _plain(label: Any) -> Label:
    plain: Label = label.item() if isinstance(label, np.generic) else label
    return plain


def _spans(evidence: Sequence[Sequence[Span] | None] | None, i: int) -> tuple[Span, ...] | None:
    given = None if evidence is None else evidence[i]
    return None if given is None else tuple((int(start), int(end)) for start, end in given)
