"""sg.audit: run every protocol on a model and its texts, and build the report.  The model does not change."""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.auditing.audit_progress import AuditProgress, planned_passes
from steadygaze.auditing.audit_report import CHOSEN_MEASURES, INTERRUPTED, AuditFindings
from steadygaze.auditing.prepare_case import (
    AuditRequest,
    TextDraw,
    choose_explainers,
    compose_request,
    fingerprint,
    prepare_all,
    training_difference,
)
from steadygaze.core.arguments import choice, integer, optional, sequence_of, validated
from steadygaze.core.errors import SampleWarning, UserError
from steadygaze.core.settings import build
from steadygaze.core.types import Example, Label, Removal, Task, texts_of
from steadygaze.data.rationale_spans import annotate
from steadygaze.data.text_checks import check_labels
from steadygaze.estimator.inputs import list_labels, read_inputs
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.inference import DEVICES, selects
from steadygaze.properties import PROPERTIES, rows_under
from steadygaze.properties.audit_case import (
    AuditCase,
    Finding,
    drop_texts,
    interlocking_not_applicable,
    missing_findings,
    texts_without_selection,
)
from steadygaze.properties.measures.measure import LABEL_KEPT, SUBSTITUTIONS
from steadygaze.properties.property import Check
from steadygaze.properties.protocols.default_tokens import DEFAULT_TOKEN_MEASURES, default_tokens
from steadygaze.properties.protocols.interlocking import (
    INTERLOCKING_MEASURES,
    INTERLOCKING_NEEDS_TRAIN,
    SELECTS,
    interlocking,
)
from steadygaze.properties.protocols.selection import FIRST_RATIONALE
from steadygaze.properties.protocols.stability import NO_SYNONYMS, not_comparable
from steadygaze.properties.protocols.wiegreffe_pinter import NOT_OURS, TRAINED, attention_necessity
from steadygaze.properties.retraining import check_vocabulary, read_train, trainable
from steadygaze.results.audit_config import AuditConfig, ProbeConfig, Runtime
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.report import Report, now
from steadygaze.results.row import MeasureKey
from steadygaze.training.progress import TrainingDiverged

STABILITY, FAITHFULNESS, SEEDS, SHORTCUT = "stability", "faithfulness", "seed-consistency", "shortcut-leakage"
"""Properties whose checks the audit completes: rows that need synonyms, other seeds or a retraining."""
NOT_THOROUGH = Note(NoteCode.NOT_THOROUGH)


@validated(
    labels=optional(sequence_of),
    explainers=sequence_of,
    rationales=optional(sequence_of),
    other_seeds=sequence_of,
    classes=optional(sequence_of),
    device=choice(*DEVICES),
    attention=choice("last", "rollout"),
    batch_size=integer(1),
    limit=optional(integer(0)),
)
def audit(
    model: Any,
    texts: Any,
    labels: Sequence[Label] | None = None,
    *,
    explainers: Sequence[Any] = (),
    rationales: Sequence[Any] | None = None,
    other_seeds: Sequence[Any] = (),
    synonyms: Any = None,
    classes: Sequence[Label] | None = None,
    target: Label | None = None,
    threshold: float | None = None,
    train: tuple[Any, Any] | None = None,
    validation: tuple[Any, Any] | None = None,
    limit: int | None = None,
    attention: str = AuditConfig.attention,
    device: str = Runtime.device,
    batch_size: int = Runtime.batch_size,
    radius: float = ProbeConfig.radius,
    removal: Removal = ProbeConfig.removal,
    filler: str | None = ProbeConfig.filler,
    k: int = ProbeConfig.k,
    sample: int | None = ProbeConfig.sample,
    thorough: bool = ProbeConfig.thorough,
    skewed_epochs: int = ProbeConfig.skewed_epochs,
    seed: int = ProbeConfig.seed,
) -> Report:
    """Audit a model's explanations on these texts.

    Parameters
    ----------
    model : TextClassifier, str, Path, tuple, pipeline, object or function
        Any model that `sg.load` takes, or the result of `sg.load`.
    texts : list of str, list of (text, question), or list of Example
        Texts that the model was not trained on.  The given sentences of examples are those of the audit.
    labels : list of str or int, default=None
        Labels of the texts.  Without them, measures that need labels are not applicable.
    explainers : list, default=()
        Names or explainer objects.  `verdicts` and requirements are about the first, `verdicts_by` has all.
    rationales : list, default=None
        Human rationales: character spans, phrases, 0/1 masks or marks from 0 to 1 of all words, or ERASER's marks.
    other_seeds : list of models, default=()
        Models with the same settings and other seeds; default: those of a classifier with `n_seeds`.
    synonyms : str, Path or dict, default=None
        A synonym table: a file, or a mapping of words to synonyms.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    target : str or int, default=None
        The audited output of a multi-label or regression model; its labels are 0 and 1, sets, or numbers.
    threshold : float, default=None
        Splits the values of a regression model into two classes; None: their median.
    train : (texts, labels), default=None
        Training data.  The audit then retrains a TextClassifier three times: with uniform attention, with adversarial
        attention (Wiegreffe & Pinter 2019), and with default tokens (Bai et al. 2021).  It retrains a rationalizer of
        sentences twice, to test for interlocking (Yu et al. 2021).
    validation : (texts, labels), default=None
        With `train`: the validation data of the model's training.  None: a tenth of the training texts was held out.
    limit : int, default=None
        Number of texts, drawn with the seed; 0: all.  None: all for a TextClassifier, 100 for other models.
    attention : str, default="last"
        How to aggregate the heads and layers of a Hugging Face model: "last" or "rollout".
    device : str, default="auto"
        Device of models that this call loads.
    batch_size : int, default=256
        Texts per batch.
    radius : float, default=0.1
        Perturbation of word vectors, in standard deviations.
    removal : str, default="delete"
        How words are erased: "delete", "pad" or "zero".
    filler : str, default=None
        Folder of a masked language model whose words replace erased ones; None: words of other texts.
    k : int, default=7
        Top-k words for the overlap.
    sample : int, default=None
        Texts for expensive measures; None: 100, and 50 for Hugging Face models.
    thorough : bool, default=False
        Run slow checks as well.
    skewed_epochs : int, default=10
        With `train`: epochs on first sentences alone, for the test of interlocking.
    seed : int, default=0
        Random seed of the audit.

    Returns
    -------
    Report
        `verdicts` has five verdicts, `rows` has every number, `to_html(path)` writes the page, and
        `failing(["accuracy>=0.9"])` lists the failed requirements.  With several explainers, `recommendation` names
        the one to use.

    Raises
    ------
    UserError
        If the model, the texts or a setting cannot be used.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> report = sg.audit(cheerful, ["a good film", "a dull one"], ["yes", "no"], classes=["no", "yes"])
    >>> report.find("accuracy").value
    1.0
    """
    probes = build(
        ProbeConfig,
        {
            "radius": radius,
            "removal": removal,
            "filler": filler,
            "k": k,
            "sample": sample,
            "thorough": thorough,
            "skewed_epochs": skewed_epochs,
            "seed": seed,
        },
    )
    runtime = Runtime(device=device, batch_size=batch_size)
    models = (model, *(list(other_seeds) or getattr(model, "other_seeds_", [])))
    adapters = [as_adapter(item, classes=classes, device=device, attention=attention) for item in models]
    listed = None if labels is None else list_labels(labels, adapters[0].outputs)
    examples = examples_of(texts, listed, rationales, adapters[0].task)
    output = None if target is None else str(target)
    config = AuditConfig(
        model=adapters[0].name, data="", limit=limit, target=output, threshold=threshold, **vars(probes)
    )
    request = compose_request(
        adapters, examples, config, runtime, explainers=explainers, synonyms=synonyms, train=train
    )
    request = replace(request, validation=validation)
    if request.draw is not None and request.draw.by_default:
        warnings.warn(f"this audit reads {request.draw}; limit=0 audits all texts", SampleWarning, stacklevel=3)
    return replace(run_audit(request).report(), date=now())


def run_audit(request: AuditRequest) -> AuditFindings:
    """Run all protocols.  `sg.audit` and all commands call this function."""
    if request.train is not None:
        request = _with_training_texts(request, trainable(request.adapter))
    if "data" not in request.facts:
        request = replace(request, facts={**request.facts, "data": fingerprint(request.examples)[:12]})
    explainers, unsupported = choose_explainers(request.adapter, request.explainers)
    prepared = prepare_all(request, explainers)
    chosen = checks_of(request.measures)
    checks = chosen or all_checks()
    if chosen is not None:
        prepared = replace(prepared, case=replace(prepared.case, chosen_probes=_probes_of(request.measures)))
    prepared = replace(prepared, case=_with_noise(_with_progress(prepared.case, request.draw, checks), request, checks))
    findings: dict[str, list[Finding]] = {name: [] for name in PROPERTIES}
    try:
        for name, of_property in checks.items():
            for finding in _run(prepared.case, of_property):
                findings[name].append(finding)
    except KeyboardInterrupt as interruption:
        raise AuditInterrupted(AuditFindings(prepared, findings, request, incomplete=INTERRUPTED)) from interruption
    if chosen is not None:
        return AuditFindings(prepared, findings, request, incomplete=CHOSEN_MEASURES)
    if reason := training_difference(request.adapter, request.others):
        findings[SEEDS] = list(not_comparable(findings[SEEDS], reason))
    for name, missing in _missing(prepared.case, request.adapter).items():
        findings[name] += missing
    findings[FAITHFULNESS] += [
        Finding("comprehensiveness", explainer=name, absent=note(NoteCode.EXPLAINER_UNSUPPORTED, message=reason))
        for name, reason in unsupported.items()
    ]
    notes = tuple(
        note(NoteCode.EXPLAINER_NOT_AUDITED, explainer=name, message=reason) for name, reason in unsupported.items()
    )
    audited = AuditFindings(prepared, findings, request, notes)
    try:
        return audited if request.train is None else _retrain(audited, request.train, request.validation)
    except KeyboardInterrupt as interruption:
        raise AuditInterrupted(replace(audited, incomplete=INTERRUPTED)) from interruption


Checks = Mapping[str, Sequence[Check]]
"""Property -> its checks."""


def all_checks() -> Checks:
    return {name: item.checks for name, item in PROPERTIES.items()}


def checks_of(measures: Collection[str]) -> Checks | None:
    """The checks that these measures need; None (all): no measures, or a measure of a check that names no rows."""
    known = {row for checks in all_checks().values() for check in checks for row in check.rows}
    if not measures or set(measures) - known:
        return None
    return {
        name: [check for check in checks if check.always or set(check.rows) & set(measures)]
        for name, checks in all_checks().items()
    }


def _with_training_texts(request: AuditRequest, classifier: TextClassifier) -> AuditRequest:
    """The request with checked training texts: a retraining must not fail after the other measures."""
    train = read_train(classifier, request.train)
    held_out = request.validation
    validation = None if held_out is None else read_train(classifier, held_out, "validation")
    check_vocabulary(classifier, train, validation)
    return replace(request, train=train, validation=validation)


def _probes_of(measures: frozenset[str]) -> frozenset[str]:
    """The probes of these measures: jensen-shannon/noise -> noise."""
    return frozenset(MeasureKey.parse(name).probe.removesuffix("-kept") for name in measures)


class AuditInterrupted(KeyboardInterrupt):
    """The user stopped the audit; it has the findings until then."""

    def __init__(self, findings: AuditFindings) -> None:
        super().__init__()
        self.findings = findings


def _with_progress(case: AuditCase, draw: TextDraw | None, checks: Checks) -> AuditCase:
    """The case, and those of other seeds, with the progress of the whole audit."""
    chosen = [check.run for group in checks.values() for check in group]
    on_progress = AuditProgress(case, case.runtime, draw=draw, protocols=chosen).on_progress
    others = tuple(replace(other, runtime=replace(other.runtime, on_progress=on_progress)) for other in case.others)
    return replace(case, runtime=replace(case.runtime, on_progress=on_progress), others=others)


def _with_noise(case: AuditCase, request: AuditRequest, checks: Checks) -> AuditCase:
    """The case with the noise of a black box, after the plan of its requests."""
    if not case.model.is_black_box:
        return case
    texts = texts_of(request.examples)
    passes = planned_passes(case, protocols=[check.run for group in checks.values() for check in group])
    request.adapter.plan_queries(sum(passes.values()) / len(texts), texts)
    return replace(case, noise=request.adapter.query_noise(texts))


def _run(case: AuditCase, checks: Sequence[Check]) -> Iterator[Finding]:
    unselected = cache(partial(texts_without_selection, case))
    for check in checks:
        if check.thorough and not case.config.thorough:
            yield from missing_findings(check.rows, NOT_THOROUGH)
        elif check.counts_empty:
            yield from check.run(case)
        else:
            for finding in check.run(case):
                yield drop_texts(case, finding, unselected(finding.explainer or ""))


def _missing(case: AuditCase, adapter: ModelAdapter) -> dict[str, list[Finding]]:
    """Measures that need synonyms or training texts, with the reason why they are missing."""

    def reason(models: int) -> Note:
        if selects(case.model):
            return SELECTS
        return note(NoteCode.NO_TRAINING_TEXTS, models=models) if adapter.is_classifier else NOT_OURS

    return {
        STABILITY: [
            *missing_findings(() if case.substitutions else rows_under(*SUBSTITUTIONS, *LABEL_KEPT), NO_SYNONYMS)
        ],
        FAITHFULNESS: [*missing_findings(TRAINED, reason(2))],
        SHORTCUT: [
            *missing_findings(DEFAULT_TOKEN_MEASURES, reason(1)),
            *missing_findings(
                INTERLOCKING_MEASURES, interlocking_not_applicable(case.model) or INTERLOCKING_NEEDS_TRAIN
            ),
        ],
    }


def _retrain(audited: AuditFindings, train: tuple[Any, Any], validation: tuple[Any, Any] | None) -> AuditFindings:
    """Replace the missing findings of the protocols that retrain the model."""
    prepared = audited.prepared
    classifier, case = trainable(prepared.adapter), prepared.case
    notes: list[Note] = []
    if not selects(case.model):
        report = case.runtime.on_progress
        test = texts_of(prepared.examples), case.data.label
        new = {
            FAITHFULNESS: _unless_diverged(
                TRAINED, attention_necessity(classifier, train, validation, test, on_progress=report)
            ),
            SHORTCUT: _unless_diverged(DEFAULT_TOKEN_MEASURES, default_tokens(classifier, train, validation, report)),
        }
    elif reason := interlocking_not_applicable(case.model):
        return replace(audited, notes=(*audited.notes, note(NoteCode.INTERLOCKING_NOT_TESTED, reason=reason)))
    else:
        new = {SHORTCUT: _unless_diverged(INTERLOCKING_MEASURES, _interlocking(audited, classifier, train, validation))}
        remarks = [remark for finding in new[SHORTCUT] for remark in finding.notes]
        answers = [remark for remark in remarks if remark.code == NoteCode.INTERLOCKING]
        notes = [note(NoteCode.INTERLOCKING_ANSWER, answer=item.fields["answer"], finding=item) for item in answers]
    replaced = {finding.measure for findings in new.values() for finding in findings}
    updated = {
        name: [*(old for old in audited.findings_by_property[name] if old.measure not in replaced), *findings]
        for name, findings in new.items()
    }
    return replace(
        audited,
        findings_by_property={**audited.findings_by_property, **updated},
        notes=(*audited.notes, *notes),
    )


def _unless_diverged(measures: Sequence[str], findings: Iterator[Finding]) -> list[Finding]:
    """The findings of a retraining; if it diverges, its measures are missing and the others are kept."""
    try:
        return list(findings)
    except TrainingDiverged as error:
        return list(missing_findings(measures, note(NoteCode.RETRAINING_FAILED, message=str(error).rstrip("."))))


def _interlocking(
    audited: AuditFindings, classifier: TextClassifier, train: tuple[Any, Any], validation: tuple[Any, Any] | None
) -> Iterator[Finding]:
    case, texts = audited.prepared.case, audited.prepared.examples
    codes, names = case.data.label, classifier.stored_.description.classes
    labels = [None] * len(texts) if codes is None else [names[code] for code in codes]
    examples = [Example(item.text, label, sentences=item.sentences) for item, label in zip(texts, labels, strict=True)]
    shortcut = audited.findings_by_property[SHORTCUT]
    first = next((finding.values for finding in shortcut if finding.measure == FIRST_RATIONALE), None)
    epochs, on_progress = case.config.skewed_epochs, case.runtime.on_progress
    return interlocking(classifier, train, examples, epochs, first, on_progress, validation)


def examples_of(texts: Any, labels: Any, rationales: Any, task: Task = "classification") -> list[Example]:
    """The texts with their labels and rationales, if there are any.

    The labels of a multi-label or regression model are checked later, when the audited output is known.
    """
    strings, questions, sentences = read_inputs(texts)
    missing = [None] * len(strings)
    for name, column in (("labels", labels), ("rationales", rationales)):
        if column is not None and len(column) != len(strings):
            raise UserError(f"found {len(strings)} texts and {len(column)} {name}; the numbers must be equal")
    if labels is not None and task == "classification":
        labels = check_labels(labels, minimum_classes=1)
    columns = (missing if column is None else column for column in (labels, questions, sentences, rationales))
    return [
        _annotated(Example(text, label, question, sentences=spans), cell, row)
        for row, (text, label, question, spans, cell) in enumerate(zip(strings, *columns, strict=True))
    ]


def _annotated(example: Example, cell: Any, row: int) -> Example:
    try:
        return annotate(example, cell)
    except ValueError as error:
        raise UserError(f"rationales[{row}]: {error}") from None
