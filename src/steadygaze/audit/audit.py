"""sg.audit: how far may this explanation be believed?

Reads every text as it is, asks every protocol, turns what they found into Rows with intervals, and the Rows into
verdicts.  The model is left bit for bit as it was.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.synonym_table import synonym_table
from steadygaze.audit.audit_case import AuditCase
from steadygaze.audit.audit_config import ProbeConfig, fingerprint
from steadygaze.audit.audit_report import AuditFindings as AuditFindings
from steadygaze.audit.audit_report import AuditRequest as AuditRequest
from steadygaze.audit.finding import Finding, drop_texts, missing_findings, texts_without_selection
from steadygaze.audit.measure_names import probe_names
from steadygaze.audit.prepare_case import check_comparable, choose_explainers, prepare, training_difference
from steadygaze.audit.protocols import COUNTING, MATTERS, PROTOCOLS, RETRAINED, SHORTCUT, STILL, THOROUGH, Protocol
from steadygaze.audit.protocols.default_tokens import CODED, UNCODED, default_tokens
from steadygaze.audit.protocols.interlocking import LOCKS, SELECTS, UNLOCKED, interlocking, interlocking_not_applicable
from steadygaze.audit.protocols.seed_consistency import not_comparable
from steadygaze.audit.protocols.selection import FIRST_RATIONALE
from steadygaze.audit.protocols.stability import NO_SYNONYMS
from steadygaze.audit.protocols.wiegreffe_pinter import NOT_OURS, TRAINED, UNTRAINED, attention_necessity
from steadygaze.core.arguments import choice, instance, optional, sequence_of, validated
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example, Label, Span
from steadygaze.data.rationale_spans import from_cell
from steadygaze.data.text_checks import check_labels
from steadygaze.estimator.inputs import read_split, read_texts
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.classifier import Classifier
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.results.formatting import ICONS
from steadygaze.results.report import Report, now
from steadygaze.training.device import DEVICES

SWAPS = {"1-synonym": 1, "3-synonyms": 3}
NOT_THOROUGH = "only a thorough audit asks it: it reads a text some hundred times"


@validated(
    labels=optional(sequence_of),
    explainers=sequence_of,
    rationales=optional(sequence_of),
    seeds=sequence_of,
    classes=optional(sequence_of),
    plan=optional(instance(ProbeConfig, "a ProbeConfig")),
    device=choice(*DEVICES),
    attention=choice("last", "rollout"),
)
def audit(
    model: Any,
    texts: Any,
    labels: Sequence[Label] | None = None,
    *,
    explainers: Sequence[Any] = (),
    rationales: Sequence[Sequence[Span] | None] | None = None,
    seeds: Sequence[Any] = (),
    synonyms: Any = None,
    classes: Sequence[Label] | None = None,
    train: tuple[Any, Any] | None = None,
    plan: ProbeConfig | None = None,
    device: str = "auto",
    attention: str = "last",
) -> Report:
    """How far may this model's explanations be believed, on these texts?

    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> report = sg.audit(cheerful, ["a good film", "a dull one"], ["yes", "no"], classes=["no", "yes"])
    >>> report.find("accuracy").value
    1.0

    `report.verdicts` answers five questions in words, `report.rows` has every number, `report.to_html("audit.html")` is
    the page, and `report.failing(["accuracy>=0.9"])` says what of a policy does not hold.

    `model` is a TextClassifier, a folder or hub id, a (model, tokenizer) or a pipeline of transformers, anything with
    predict_proba, or a function texts -> probabilities; `classes` names its classes, in the order of the probabilities.
    `texts` may be pairs (text, question); `rationales` is what a person marked in each, as (start, end) of characters.
    `explainers` are names or your own, and the verdicts are about the first.  `seeds` are models trained alike with
    other seeds, `synonyms` a file or a mapping of words that may stand for each other.  With `train`, the texts and
    labels it was trained on, a TextClassifier is trained three times more: without attention, to look elsewhere
    (Wiegreffe & Pinter 2019), and where its attention could talk in code (Bai et al. 2021); one that selects sentences
    twice, where it could lock on to the first (Yu et al. 2021).  `plan` says what is done to the texts, and how
    thoroughly.  `device` is for what is loaded here, and `attention` how a Hugging Face model's
    heads and layers become one weight for each word: last, or rollout.
    """
    examples = _examples(texts, labels, rationales)
    if train is not None and not isinstance(model, TextClassifier):
        raise UserError(f"{NOT_OURS}, found {model!r:.80}: load it with steadygaze.load")
    subject, *others = (as_adapter(one, classes=classes, device=device, attention=attention) for one in (model, *seeds))
    if train is not None:
        check_train(model, train)
    found = run_protocols(
        subject, examples, AuditRequest(tuple(explainers), plan or ProbeConfig(), synonyms=synonyms), others
    )
    return replace((found if train is None else retrain_protocols(found, model, train)).report(), date=now())


def check_train(model: TextClassifier, train: tuple[Any, Any]) -> None:
    """Refuses texts with other labels than the model's."""
    given, own = set(read_split(*train).labels), list(model.stored_.description.classes)
    if given != set(own):
        raise UserError(f"the texts to train on have the labels {sorted(given, key=str)}, the model {own}")


def retrain_protocols(found: AuditFindings, model: TextClassifier, train: tuple[Any, Any]) -> AuditFindings:
    """What models more say, that were trained on the same texts."""
    if isinstance(model.stored_.model, Rationalizer):
        return _locked(found, model, train)
    examples = found.prepared.examples
    texts = [e.text if e.question is None else (e.text, e.question) for e in examples]
    more = {
        MATTERS: list(attention_necessity(model, train, None, (texts, found.prepared.case.data.label))),
        SHORTCUT: list(default_tokens(model, train)),
    }
    other = {
        name: [one for one in found.findings_by_heading[name] if one.measure not in (*TRAINED, *CODED)] for name in more
    }
    return replace(
        found, findings_by_heading={**found.findings_by_heading, **{name: [*other[name], *more[name]] for name in more}}
    )


def _locked(found: AuditFindings, model: TextClassifier, train: tuple[Any, Any]) -> AuditFindings:
    """Of a model that selects sentences: whether it would lock."""
    here, others = found.prepared, [one for one in found.findings_by_heading[SHORTCUT] if one.measure not in LOCKS]
    if interlocking_not_applicable(here.case.model):
        return found
    codes, names = here.case.data.label, model.stored_.description.classes
    labels = [None] * len(here.examples) if codes is None else [names[code] for code in codes]
    examples = [Example(one.text, label) for one, label in zip(here.examples, labels, strict=True)]
    reason = next((one.values for one in others if one.measure == FIRST_RATIONALE), None)
    asked = list(interlocking(model, train, examples, here.case.plan.skewed_epochs, reason, here.case.watch))
    notes = [f"{ICONS[one.answer]} {one.note[:1].upper()}{one.note[1:]}." for one in asked if one.answer]
    return replace(
        found,
        findings_by_heading={**found.findings_by_heading, SHORTCUT: [*others, *asked]},
        notes=(*found.notes, *notes),
    )


def run_protocols(
    subject: ModelAdapter, examples: Sequence[Example], asked: AuditRequest, others: Sequence[ModelAdapter] = ()
) -> AuditFindings:
    """The same of examples as a corpus has them."""
    if "data" not in asked.settings:
        asked = replace(asked, settings={**asked.settings, "data": fingerprint(examples)[:12]})
    able, unable = choose_explainers(subject, asked.explainers)
    plan = _planned(subject, examples, asked)
    here = prepare(subject, examples, able, plan, asked.watch)
    rest = tuple(prepare(check_comparable(subject, other), examples, able, plan, asked.watch).case for other in others)
    if any(not np.array_equal(other.data.text.ids, here.case.data.text.ids) for other in rest):
        raise UserError("a model given as another seed reads the texts as other tokens: it was not trained alike")
    here = replace(here, case=replace(here.case, others=rest))
    found = {heading: list(_asked(here.case, protocols)) for heading, protocols in PROTOCOLS.items()}
    if why := training_difference(subject, others):
        found[RETRAINED] = list(not_comparable(found[RETRAINED], why))
    lacking = [name for name in SWAPS if name not in plan.synonyms]
    found[STILL] += missing_findings(probe_names(*lacking, *(f"{name}-kept" for name in lacking)), NO_SYNONYMS)
    ours, selects = isinstance(subject.model, Classifier), isinstance(subject.model, Rationalizer)
    found[MATTERS] += missing_findings(TRAINED, SELECTS if selects else UNTRAINED if ours else NOT_OURS)
    found[SHORTCUT] += missing_findings(CODED, SELECTS if selects else UNCODED if ours else NOT_OURS)
    found[SHORTCUT] += missing_findings(LOCKS, interlocking_not_applicable(subject.model) or UNLOCKED)
    found[MATTERS] += [Finding("comprehensiveness", explainer=name, absent=why) for name, why in unable.items()]
    return AuditFindings(
        here, found, asked, tuple(f"Of {name} nothing was asked: {why}." for name, why in unable.items())
    )


def _planned(subject: ModelAdapter, examples: Sequence[Example], asked: AuditRequest) -> ProbeConfig:
    """With the words that may be exchanged, where some are known."""
    table = synonym_table(subject, asked.synonyms, [example.text for example in examples])
    swaps = {} if table is None else {name: (table, number) for name, number in SWAPS.items()}
    return replace(asked.plan, synonyms={**swaps, **asked.plan.synonyms})


def _asked(case: AuditCase, protocols: Sequence[Protocol]) -> Iterator[Finding]:
    gone = cache(partial(texts_without_selection, case))
    for protocol in protocols:
        if protocol in THOROUGH and not case.plan.thorough:
            yield from missing_findings(THOROUGH[protocol], NOT_THOROUGH)
        elif protocol in COUNTING:
            yield from protocol(case)
        else:
            yield from (drop_texts(case, found, gone(found.explainer or "")) for found in protocol(case))


def _examples(texts: Any, labels: Any, rationales: Any) -> list[Example]:
    written, questions = read_texts(texts)
    nothing = [None] * len(written)
    for name, given in (("labels", labels), ("rationales", rationales)):
        if given is not None and len(given) != len(written):
            raise UserError(f"found {len(written)} texts and {len(given)} {name}; they must be equally many")
    if labels is not None:
        labels = check_labels(labels, minimum_classes=1)
    columns = (written, *(nothing if given is None else given for given in (labels, questions, rationales)))
    return [
        Example(text, label, question, _marked(marked, text, i))
        for i, (text, label, question, marked) in enumerate(zip(*columns, strict=True))
    ]


def _marked(given: Any, text: str, row: int) -> tuple[Span, ...] | None:
    """What a person marked in a text, if it is there."""
    try:
        plain = given and [span if isinstance(span, str) else [_plain(end) for end in span] for span in given]
        return None if given is None else from_cell(list(plain), text)
    except TypeError:
        raise UserError(f"rationales[{row}]: {given!r:.60} is not a list of (start, end)") from None
    except ValueError as why:
        raise UserError(f"rationales[{row}]: {why}") from None


def _plain(label: Any) -> Label | None:
    plain: Label | None = label.item() if isinstance(label, np.generic) else label
    return plain
