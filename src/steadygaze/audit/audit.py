"""sg.audit: run every protocol on a model and its texts, and build the report.  The model does not change."""

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
from steadygaze.audit.measures.registry import probe_names
from steadygaze.audit.prepare_case import check_comparable, choose_explainers, prepare, training_difference
from steadygaze.audit.protocols import COUNTING, MATTERS, PROTOCOLS, RETRAINED, SHORTCUT, STILL, THOROUGH, Protocol
from steadygaze.audit.protocols.default_tokens import DEFAULT_TOKEN_MEASURES, NO_TRAINING_TEXTS, default_tokens
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
from steadygaze.models.classifier import has_extension_points
from steadygaze.models.rationalizer import selects
from steadygaze.results.formatting import ICONS
from steadygaze.results.report import Report, now
from steadygaze.training.device import DEVICES

SYNONYM_PROBES = {"1-synonym": 1, "3-synonyms": 3}
NOT_THOROUGH = "it runs only in a thorough audit: it needs hundreds of forward passes per text"


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
    """Audit a model's explanations on these texts.

    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> report = sg.audit(cheerful, ["a good film", "a dull one"], ["yes", "no"], classes=["no", "yes"])
    >>> report.find("accuracy").value
    1.0

    Parameters
    ----------
    model : TextClassifier, folder, hub id, (model, tokenizer), pipeline, object with predict_proba, or function
    texts : texts, or pairs (text, question)
    labels : labels of the texts
    explainers : names or explainer objects; the verdicts are about the first
    rationales : human rationales of each text, as (start, end) character spans
    seeds : models with the same settings and other seeds
    synonyms : a file or a mapping of words to synonyms
    classes : class names, in the order of the probabilities
    train : training texts and labels
        The audit then retrains a TextClassifier three times: with uniform attention, with adversarial attention
        (Wiegreffe & Pinter 2019), and with default tokens (Bai et al. 2021).  It retrains a rationalizer of sentences
        twice, to test for interlocking (Yu et al. 2021).
    plan : settings of the probes
    device : the device for models that this call loads
    attention : how to aggregate the heads and layers of a Hugging Face model, "last" or "rollout"

    Returns
    -------
    Report
        `verdicts` answers five questions, `rows` has every number, `to_html(path)` writes the page, and
        `failing(["accuracy>=0.9"])` lists the failed requirements.
    """
    examples = _examples(texts, labels, rationales)
    if train is not None and not isinstance(model, TextClassifier):
        raise UserError(f"{NOT_OURS}, found {model!r:.80}: load it with steadygaze.load")
    subject, *others = (
        as_adapter(source, classes=classes, device=device, attention=attention) for source in (model, *seeds)
    )
    if train is not None:
        check_train(model, train)
    findings = run_protocols(
        subject, examples, AuditRequest(tuple(explainers), plan or ProbeConfig(), synonyms=synonyms), others
    )
    return replace((findings if train is None else retrain_protocols(findings, model, train)).report(), date=now())


def check_train(model: TextClassifier, train: tuple[Any, Any]) -> None:
    """Raise an error if the training labels are not the model's."""
    labels, own = set(read_split(*train).labels), list(model.stored_.description.classes)
    if labels != set(own):
        raise UserError(f"the training texts have the labels {sorted(labels, key=str)}, the model has {own}")


def retrain_protocols(found: AuditFindings, model: TextClassifier, train: tuple[Any, Any]) -> AuditFindings:
    """Add the findings of protocols that retrain the model."""
    if selects(model.stored_.model):
        return _add_interlocking(found, model, train)
    examples = found.prepared.examples
    texts = [e.text if e.question is None else (e.text, e.question) for e in examples]
    more = {
        MATTERS: list(attention_necessity(model, train, None, (texts, found.prepared.case.data.label))),
        SHORTCUT: list(default_tokens(model, train)),
    }
    replaced = {*TRAINED, *DEFAULT_TOKEN_MEASURES}
    updated = {
        name: [*(old for old in found.findings_by_heading[name] if old.measure not in replaced), *findings]
        for name, findings in more.items()
    }
    return replace(found, findings_by_heading={**found.findings_by_heading, **updated})


def _add_interlocking(found: AuditFindings, model: TextClassifier, train: tuple[Any, Any]) -> AuditFindings:
    prepared = found.prepared
    others = [finding for finding in found.findings_by_heading[SHORTCUT] if finding.measure not in LOCKS]
    if interlocking_not_applicable(prepared.case.model):
        return found
    codes, names = prepared.case.data.label, model.stored_.description.classes
    labels = [None] * len(prepared.examples) if codes is None else [names[code] for code in codes]
    examples = [Example(example.text, label) for example, label in zip(prepared.examples, labels, strict=True)]
    reason = next((finding.values for finding in others if finding.measure == FIRST_RATIONALE), None)
    case = prepared.case
    findings = list(interlocking(model, train, examples, case.plan.skewed_epochs, reason, case.watch))
    notes = [
        f"{ICONS[finding.answer]} {finding.note[:1].upper()}{finding.note[1:]}."
        for finding in findings
        if finding.answer
    ]
    return replace(
        found,
        findings_by_heading={**found.findings_by_heading, SHORTCUT: [*others, *findings]},
        notes=(*found.notes, *notes),
    )


def run_protocols(
    subject: ModelAdapter, examples: Sequence[Example], request: AuditRequest, others: Sequence[ModelAdapter] = ()
) -> AuditFindings:
    """Run all protocols on the examples of a corpus."""
    if "data" not in request.settings:
        request = replace(request, settings={**request.settings, "data": fingerprint(examples)[:12]})
    supported, unsupported = choose_explainers(subject, request.explainers)
    plan = _plan_with_synonyms(subject, examples, request)
    prepared = prepare(subject, examples, supported, plan, request.watch)
    other_cases = tuple(
        prepare(check_comparable(subject, other), examples, supported, plan, request.watch).case for other in others
    )
    if any(not np.array_equal(other.data.text.ids, prepared.case.data.text.ids) for other in other_cases):
        raise UserError("a model passed as another seed tokenizes the texts differently: pass a model of the same kind")
    prepared = replace(prepared, case=replace(prepared.case, others=other_cases))
    found = {heading: list(_run_protocols(prepared.case, protocols)) for heading, protocols in PROTOCOLS.items()}
    if why := training_difference(subject, others):
        found[RETRAINED] = list(not_comparable(found[RETRAINED], why))
    lacking = [name for name in SYNONYM_PROBES if name not in plan.synonyms]
    found[STILL] += missing_findings(probe_names(*lacking, *(f"{name}-kept" for name in lacking)), NO_SYNONYMS)
    ours, selected = has_extension_points(subject.model), selects(subject.model)
    found[MATTERS] += missing_findings(TRAINED, SELECTS if selected else UNTRAINED if ours else NOT_OURS)
    found[SHORTCUT] += missing_findings(
        DEFAULT_TOKEN_MEASURES, SELECTS if selected else NO_TRAINING_TEXTS if ours else NOT_OURS
    )
    found[SHORTCUT] += missing_findings(LOCKS, interlocking_not_applicable(subject.model) or UNLOCKED)
    found[MATTERS] += [Finding("comprehensiveness", explainer=name, absent=why) for name, why in unsupported.items()]
    notes = tuple(f"The explainer {name} was not audited: {why}." for name, why in unsupported.items())
    return AuditFindings(prepared, found, request, notes)


def _plan_with_synonyms(subject: ModelAdapter, examples: Sequence[Example], request: AuditRequest) -> ProbeConfig:
    table = synonym_table(subject, request.synonyms, [example.text for example in examples])
    tables = {} if table is None else {name: (table, number) for name, number in SYNONYM_PROBES.items()}
    return replace(request.plan, synonyms={**tables, **request.plan.synonyms})


def _run_protocols(case: AuditCase, protocols: Sequence[Protocol]) -> Iterator[Finding]:
    unselected = cache(partial(texts_without_selection, case))
    for protocol in protocols:
        if protocol in THOROUGH and not case.plan.thorough:
            yield from missing_findings(THOROUGH[protocol], NOT_THOROUGH)
        elif protocol in COUNTING:
            yield from protocol(case)
        else:
            for finding in protocol(case):
                yield drop_texts(case, finding, unselected(finding.explainer or ""))


def _examples(texts: Any, labels: Any, rationales: Any) -> list[Example]:
    strings, questions = read_texts(texts)
    missing = [None] * len(strings)
    for name, column in (("labels", labels), ("rationales", rationales)):
        if column is not None and len(column) != len(strings):
            raise UserError(f"found {len(strings)} texts and {len(column)} {name}; the numbers must be equal")
    if labels is not None:
        labels = check_labels(labels, minimum_classes=1)
    columns = (strings, *(missing if column is None else column for column in (labels, questions, rationales)))
    return [
        Example(text, label, question, _rationale(spans, text, i))
        for i, (text, label, question, spans) in enumerate(zip(*columns, strict=True))
    ]


def _rationale(spans: Any, text: str, row: int) -> tuple[Span, ...] | None:
    try:
        plain = spans and [span if isinstance(span, str) else [_plain(end) for end in span] for span in spans]
        return None if spans is None else from_cell(list(plain), text)
    except TypeError:
        raise UserError(f"rationales[{row}]: {spans!r:.60} is not a list of (start, end)") from None
    except ValueError as why:
        raise UserError(f"rationales[{row}]: {why}") from None


def _plain(label: Any) -> Label | None:
    plain: Label | None = label.item() if isinstance(label, np.generic) else label
    return plain
