"""sg.audit: how far may this explanation be believed?

Reads every text as it is, asks every protocol, turns what they found into Rows with intervals, and the Rows into
verdicts.  The model is left bit for bit as it was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steadygaze.audit.case import Case, Plan
from steadygaze.audit.choose import choose
from steadygaze.audit.examined import Asked as Asked
from steadygaze.audit.examined import Examined as Examined
from steadygaze.audit.finding import Finding
from steadygaze.audit.prepare import prepare
from steadygaze.audit.protocol import MATTERS, PROTOCOLS, STILL, THOROUGH, Protocol
from steadygaze.audit.protocol.wiegreffe import trained
from steadygaze.errors import UserError
from steadygaze.estimator import TextClassifier
from steadygaze.inputs import read_texts
from steadygaze.report.report import Report
from steadygaze.subject import Subject, as_subject
from steadygaze.subject.synonyms import table_for
from steadygaze.types import Example, Label, Span

SWAPS = {"1-synonym": 1, "3-synonyms": 3}
NO_SYNONYMS = "no table of synonyms was given, and the model has no vectors to find some by"


def audit(
    model: Any,
    texts: Any,
    labels: Sequence[Label] | None = None,
    *,
    explainers: Sequence[Any] = (),
    evidence: Sequence[Sequence[Span] | None] | None = None,
    seeds: Sequence[Any] = (),
    synonyms: Any = None,
    classes: Sequence[Label] | None = None,
    train: tuple[Any, Any] | None = None,
    plan: Plan | None = None,
) -> Report:
    """Everything that can be asked of a model and its explanation on these texts.

    `model` is a TextClassifier, a folder, a Hugging Face classifier or any texts -> probabilities; `evidence` the
    characters that a person marked in each text; `seeds` models trained alike with other seeds; `synonyms` a file or a
    mapping of words that may stand for each other.  With `train`, the texts and labels it was trained on, a
    TextClassifier is trained twice more: without attention, and to look elsewhere (Wiegreffe & Pinter 2019).
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
    if train is not None and not isinstance(model, TextClassifier):
        raise UserError(
            f"only a TextClassifier can be trained again, found {model!r:.80}: load it with steadygaze.load"
        )
    found = examine(as_subject(model, classes=classes), examples, asked, others)
    return (found if train is None else retrain(found, model, train)).report()


def retrain(found: Examined, model: TextClassifier, train: tuple[Any, Any]) -> Examined:
    """What two models more say, that were trained on the same texts."""
    examples = found.here.examples
    texts = [e.text if e.question is None else (e.text, e.question) for e in examples]
    more = [*found.found[MATTERS], *trained(model, train, None, (texts, found.here.case.data.label))]
    return replace(found, found={**found.found, MATTERS: more})


def examine(subject: Subject, examples: Sequence[Example], asked: Asked, others: Sequence[Subject] = ()) -> Examined:
    """The same of examples as a corpus has them."""
    able, unable = choose(subject, asked.explainers)
    table = table_for(subject, asked.synonyms, [example.text for example in examples])
    swaps = {} if table is None else {name: (table, number) for name, number in SWAPS.items()}
    plan = replace(asked.plan, synonyms={**swaps, **asked.plan.synonyms})
    here = prepare(subject, examples, able, plan, asked.watch)
    rest = tuple(prepare(_alike(subject, other), examples, able, plan, asked.watch).case for other in others)
    if any(not np.array_equal(other.data.text.ids, here.case.data.text.ids) for other in rest):
        raise UserError("a model given as another seed reads the texts as other tokens: it was not trained alike")
    here = replace(here, case=replace(here.case, others=rest))
    found = {heading: list(_asked(here.case, protocols)) for heading, protocols in PROTOCOLS.items()}
    found[STILL] += [] if swaps else [Finding(f"jensen-shannon/{name}", absent=NO_SYNONYMS) for name in SWAPS]
    found[MATTERS] += [Finding("comprehensiveness", explainer=name, absent=why) for name, why in unable.items()]
    return Examined(here, found, asked)


def _asked(case: Case, protocols: Sequence[Protocol]) -> Iterator[Finding]:
    for protocol in protocols:
        if protocol in THOROUGH and not case.plan.thorough:
            yield Finding(protocol.__name__, absent="only a thorough audit asks it: it reads a text some hundred times")
        else:
            yield from protocol(case)


def _alike(subject: Subject, other: Subject) -> Subject:
    if subject.fingerprint and subject.fingerprint == other.fingerprint:
        raise UserError(f"{other.name} is the audited model itself: another seed is another training")
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
