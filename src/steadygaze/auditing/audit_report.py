"""AuditFindings -> Report: the rows, verdicts, notes and examples."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.auditing.noise_intervals import with_query_noise
from steadygaze.auditing.plot_points import plot_points
from steadygaze.auditing.prepare_case import AuditRequest, PreparedCase, Settings
from steadygaze.auditing.report_texts import evaluation_and_explanations, largest_shifts
from steadygaze.auditing.substitute_counts import substitute_counts
from steadygaze.core import __version__
from steadygaze.core.maths.collapse import DISTINCT
from steadygaze.core.maths.macro_f1 import confusion_counts
from steadygaze.core.types import texts_of
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.token_alignment import Coverage, coverage
from steadygaze.properties import PROPERTIES, conditions, facts, measure_of, property_facts
from steadygaze.properties.audit_case import (
    Finding,
    other_explainers,
    selecting_explainers,
)
from steadygaze.properties.commands import AuditCommands
from steadygaze.properties.property import COLLAPSED
from steadygaze.properties.verdict_rules import (
    SHUFFLED_LEAK,
    AdviceContext,
    interrupted_verdicts,
    verdicts,
)
from steadygaze.results.evaluation import (
    Evaluation,
    accuracy_below_baseline,
    exchanged_classes,
    written_labels,
)
from steadygaze.results.explanation import Explanations
from steadygaze.results.formatting import count_text
from steadygaze.results.health import HEALTHY, Health, HealthProblem, ProblemKind, constant_prediction
from steadygaze.results.leakage_warnings import READER, by_measure, selection_warnings
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.recommendation import recommend
from steadygaze.results.report import Report
from steadygaze.results.row import Row, Verdict, mean_row, ratio_row, within
from steadygaze.results.seed_intervals import mean_intervals

TITLE = "Explanation audit"
INTERRUPTED, CHOSEN_MEASURES = Note(NoteCode.INTERRUPTED), Note(NoteCode.CHOSEN_MEASURES)
MAPPED = 5
"""Labels listed with their classes in a note."""
LEAST_REACH = 1e-3
"""Least distance between shuffled weights and the best known ones, such as a tenth of a percentage point."""


@dataclass(frozen=True)
class AuditFindings:
    prepared: PreparedCase
    findings_by_property: Mapping[str, Sequence[Finding]]
    request: AuditRequest
    notes: tuple[Note, ...] = ()
    incomplete: Note | None = None
    """Why measures are missing; None: none is."""

    @property
    def findings(self) -> list[Finding]:
        return [finding for group in self.findings_by_property.values() for finding in group]

    @property
    def sections(self) -> dict[str, str]:
        """Measure -> the title of the property whose check computed it."""
        groups = self.findings_by_property.items()
        return {finding.measure: PROPERTIES[name].title for name, group in groups for finding in group}

    @property
    def explainer(self) -> str:
        """The explainer that the verdicts rate."""
        return next(iter(self.prepared.case.explainers))

    def report(self) -> Report:
        return build_report(self)


def build_report(audited: AuditFindings) -> Report:
    prepared, findings = audited.prepared, audited.findings
    adapter, main = prepared.adapter, audited.explainer
    tokens = coverage(adapter.tokens, prepared.placed.ragged)
    training_texts = adapter.training_overlap(texts_of(prepared.examples))
    common_settings = {
        **audited.request.facts,
        "model": adapter.fingerprint[:12] or adapter.name,
        **(
            {"predictions": _predictions_digest(prepared)} if not audited.incomplete and not adapter.fingerprint else {}
        ),
        "seed": prepared.case.config.seed,
    }
    rows = with_query_noise(_rows(audited, common_settings))
    health = _health(audited, rows)
    answers = _verdicts_by(audited, rows, health)
    report = Report(
        TITLE,
        rows,
        answers[main],
        facts=_audit_facts(audited, tokens, training_texts),
        measures=facts(),
        properties=property_facts(),
    )
    report = replace(report, probes=conditions(), sections=audited.sections)
    report = replace(report, health=health + _health_of_other_seeds(audited.request.others))
    if audited.incomplete:
        notes = (audited.incomplete, *audited.request.notes)
        return replace(report, title=f"{TITLE} (incomplete)", verdicts=interrupted_verdicts(), notes=notes)
    overlap = note(NoteCode.TRAINING_TEXTS, training=training_texts, texts=len(prepared.examples))
    notes = (
        *([overlap] if training_texts else []),
        *_second_text(audited),
        *_below_baseline(prepared),
        *substitute_counts(prepared.case),
        *_leakage(rows, selecting_explainers(prepared.case)),
        *(note(NoteCode.COVERAGE, message=str(warning), **tokens.counts) for warning in tokens.warnings()),
        *audited.notes,
        *audited.request.notes,
    )
    evaluation, explanations = evaluation_and_explanations(prepared, main, rows)
    return replace(
        _with_other_explainers(report, audited, answers),
        shifts=largest_shifts(prepared, main, findings),
        plots=plot_points(prepared.case, main, findings),
        notes=notes,
        evaluation=evaluation and _with_health(evaluation, health),
        explanations=Explanations(replace(explanation, health=health) for explanation in explanations),
    )


def _audit_facts(audited: AuditFindings, tokens: Coverage, training_texts: int | None) -> dict[str, str]:
    """What was audited, as the page shows it."""
    prepared, adapter, noise = audited.prepared, audited.prepared.adapter, audited.prepared.case.noise
    return {
        "model": adapter.name,
        "model type": adapter.kind,
        **adapter.facts,
        **(tokens.facts if adapter.fingerprint else {}),
        **({} if noise is None else {"query noise": noise.sentence}),
        "explanation": audited.explainer,
        "texts": str(audited.request.draw or count_text(len(prepared.examples), "text")),
        **(
            {}
            if training_texts is None
            else {"training texts": _training_texts(training_texts, len(prepared.examples))}
        ),
        **{name: str(value) for name, value in audited.request.facts.items()},
        "steadygaze": __version__,
    }


def _verdicts_by(audited: AuditFindings, rows: Sequence[Row], health: Health) -> dict[str, tuple[Verdict, ...]]:
    """The verdicts of the first explainer, and of all others but the baseline."""
    names = dict.fromkeys((audited.explainer, *other_explainers(audited.prepared.case)))
    contexts = {name: replace(_advice_context(audited, name), has_learned=health.has_learned) for name in names}
    return {name: verdicts(rows, name, context) for name, context in contexts.items()}


def _with_other_explainers(
    report: Report, audited: AuditFindings, answers: Mapping[str, tuple[Verdict, ...]]
) -> Report:
    """The report with the verdicts of the other explainers, and a recommendation if there is a choice."""
    others = {name: items for name, items in answers.items() if name != audited.explainer}
    candidates = {name: answers[name] for name in other_explainers(audited.prepared.case)}
    return replace(report, other_verdicts=others, recommendation=recommend(candidates))


def _second_text(audited: AuditFindings) -> list[Note]:
    """A note that the words of the second text of a pair are not rated."""
    if audited.prepared.case.data.question is None:
        return []
    columns = list(audited.request.settings.get("text") or ())
    return [note(NoteCode.SECOND_TEXT, columns=columns if len(columns) == 2 else None)]


def _advice_context(audited: AuditFindings, explainer: str) -> AdviceContext:
    request, case = audited.request, audited.prepared.case
    counts = case.probs.argmax(-1).bincount(minlength=case.probs.shape[-1]).tolist()
    available = None if request.draw is None else request.draw.total
    commands = AuditCommands(request.settings)
    adapter = audited.prepared.adapter
    fitted = getattr(case.explainers[explainer], "config", None)  # of a selector that was fitted to the model
    mitigation = getattr(fitted, "mitigation", "")
    own = [finding for finding in audited.findings if finding.explainer == explainer]
    context = AdviceContext(
        available,
        tuple(counts),
        next((_counted(finding.absent) for finding in own if finding.measure == SHUFFLED_LEAK), ()),
        case.sample_size,
        frozenset(finding.measure for finding in own if case.is_sampled(explainer, finding.measure)),
        adapter.is_classifier,
        mitigation=mitigation,
        commands=commands,
        explainers=tuple(case.explainers),
        has_pairs=case.data.question is not None,
    )
    if adapter.saved is None:
        return context
    trained = adapter.saved.description
    return replace(
        context, encoder=trained.encoder, technique=trained.technique, has_groups=trained.synonym_groups is not None
    )


def _counted(absent: Note | None) -> tuple[int, ...]:
    """The number of texts of the most frequent classes, if the position leak is missing because they are too few."""
    if absent is None or absent.code != NoteCode.FEW_TEXTS_OF_A_CLASS:
        return ()
    return tuple(count for _, count in absent.fields["classes"])


def _training_texts(number: int, total: int) -> str:
    """
    >>> _training_texts(0, 80), _training_texts(1, 80), _training_texts(3, 4)
    ('none of the 80 audited texts', '1 of the 80 audited texts', '3 of the 4 audited texts')
    """
    return f"{f'{number:,}' if number else 'none'} of the {count_text(total, 'audited text')}"


def _predictions_digest(prepared: PreparedCase) -> str:
    """Identify a black box, which may share its name with others, by its predictions on these texts.

    Probabilities are cut to steps of 0.01.  The offset keeps common values, such as 0.5, far from the edge of a step.
    """
    return digest_values(np.floor(prepared.case.probs.numpy() * 100 + 0.318).astype(np.int64))[:12]


def _rows(audited: AuditFindings, common_settings: Settings) -> Iterator[Row]:
    facts = audited.prepared.adapter.facts
    attention = {"attention": facts["attention"]} if "attention" in facts else {}
    for finding in audited.findings:
        own = attention if finding.explainer == "attention" else {}
        yield _row(finding, {**common_settings, **own, "v": __version__})


def _row(finding: Finding, common_settings: Settings) -> Row:
    row = _score(finding, common_settings)
    return replace(row, caveat=finding.caveat) if row.n else row


def _score(finding: Finding, common_settings: Settings) -> Row:
    settings = {
        **common_settings,
        **finding.settings,
        **({"explainer": finding.explainer} if finding.explainer else {}),
    }
    if finding.absent is not None:
        return Row(finding.measure, math.nan, 0, None, settings, absent=finding.absent)
    if finding.value is not None:
        n = int(settings.pop("n", finding.n))
        return Row(finding.measure, finding.value, n, finding.interval, settings, _notes(finding.notes, finding.chance))
    assert finding.values is not None
    values = finding.values[finding.values.isfinite()]
    if not len(values):
        absent = note(NoteCode.UNDEFINED, notes=finding.notes)
        return Row(finding.measure, math.nan, 0, None, settings, absent=absent)
    left = len(finding.values) - len(values)
    not_sampled = (note(NoteCode.NOT_SAMPLED, texts=len(values), others=left),) if left else ()
    chance = None if finding.chance is None else finding.chance[finding.values.isfinite()]
    notes = _notes(finding.notes or not_sampled, chance)
    if finding.floor is not None and finding.best is not None:
        return _between(finding, settings, notes)
    of = measure_of(finding.measure)
    row = mean_row(finding.measure, values.tolist(), settings, notes=notes, proportion=of.proportion, bounds=of.bounds)
    if finding.of_models is None or row.interval is None:
        return row
    interval = mean_intervals({"": finding.of_models[:, finding.values.isfinite()].numpy()})[""]
    return replace(row, interval=interval and within(interval, of.bounds))


def _between(finding: Finding, settings: Settings, notes: tuple[Note, ...]) -> Row:
    """A score between its floor and the best known values."""
    assert finding.values is not None
    assert finding.floor is not None
    assert finding.best is not None
    own, floor, best = (
        values[finding.values.isfinite()].double().numpy() for values in (finding.values, finding.floor, finding.best)
    )
    ends = note(NoteCode.BETWEEN, own=float(own.mean()), floor=float(floor.mean()), best=float(best.mean()))
    if (best - floor).mean() < LEAST_REACH:
        return Row(finding.measure, math.nan, 0, None, settings, absent=replace(ends, code=NoteCode.NOTHING_MATTERS))
    if finding.exact:
        notes = (note(NoteCode.EXACT_ENDS, exact=finding.exact, texts=len(own)), *notes)
    gain, reach = (own - floor).tolist(), (best - floor).tolist()
    bounds = measure_of(finding.measure).bounds
    return ratio_row(finding.measure, gain, reach, settings, notes=(ends, *notes), bounds=bounds)


def _notes(notes: tuple[Note, ...], chance: Tensor | None) -> tuple[Note, ...]:
    """The notes with the mean of the expected values of a random explanation, if there are any."""
    return notes if chance is None else (*notes, note(NoteCode.CHANCE_LEVEL, value=float(chance.mean())))


def _health(audited: AuditFindings, rows: Sequence[Row]) -> Health:
    """Known-bad states of the model and of fitted explainers, and those that these texts show."""
    case, adapter, main = audited.prepared.case, audited.prepared.adapter, audited.explainer
    labels = None if case.data.label is None else case.data.label.tolist()
    fitted = (item.health for item in audited.request.explainers if isinstance(item, TextExplainer))
    health = sum(fitted, adapter.health)
    health += HEALTHY if case.noise is None else case.noise.health
    health += constant_prediction(case.probs.argmax(-1).tolist(), labels, adapter.classes)
    for row in rows:
        collapsed = row.measure == COLLAPSED and row.value > 0 and row.n >= DISTINCT  # too few texts say little
        if collapsed and row.settings.get("explainer") == main:
            health += _collapse(main, row.note)
    return health


def _health_of_other_seeds(models: Sequence[ModelAdapter]) -> Health:
    """Known-bad states of the models that seed consistency compares with."""
    states = (model.health.of(f"Other seed {number}, {model.name},") for number, model in enumerate(models, 1))
    return sum(states, HEALTHY)


def _with_health(evaluation: Evaluation, health: Health) -> Evaluation:
    """The evaluation and the explanations of its wrong predictions, with the health of the model."""
    errors = (
        replace(error, explanation=error.explanation and replace(error.explanation, health=health))
        for error in evaluation.errors
    )
    return replace(evaluation, health=health, errors=tuple(errors))


def _collapse(explainer: str, reason: str) -> Health:
    """Health of an explainer whose weights do not depend on the text; attention and rationale are the model's own."""
    kinds = {"attention": ProblemKind.COLLAPSED, "rationale": ProblemKind.UNINFORMATIVE}
    if explainer in kinds:
        return Health((HealthProblem(kinds[explainer], detail=reason),))
    return Health((HealthProblem(ProblemKind.COLLAPSED_EXPLANATION, f"The explanation by {explainer}", detail=reason),))


def _below_baseline(prepared: PreparedCase) -> tuple[Note, ...]:
    """A warning if the model is worse than the most frequent label: the labels may be mapped to wrong classes."""
    codes = prepared.case.data.label
    if codes is None:
        return ()
    labels, classes = [str(example.label) for example in prepared.examples], prepared.adapter.classes
    confusion = confusion_counts(codes, prepared.case.probs.argmax(-1).numpy(), len(classes))
    if (scores := accuracy_below_baseline(confusion)) is None:
        return ()
    accuracy, baseline = scores
    pairs = sorted(set(zip(labels, codes.tolist(), strict=True)))
    written = written_labels(labels, codes.tolist(), classes)
    renamable = prepared.adapter.classifier is None and "output" not in prepared.adapter.facts
    exchanged = exchanged_classes(confusion, written) if renamable else None
    names, new_accuracy = (None, None) if exchanged is None else exchanged
    mapping = [(label, str(classes[code])) for label, code in pairs]
    is_named = all(label == name for label, name in mapping)
    return (
        note(
            NoteCode.BELOW_BASELINE,
            accuracy=accuracy,
            baseline=baseline,
            exchanged=names,
            exchanged_accuracy=new_accuracy,
            mapping=[] if is_named else mapping[:MAPPED],
            more=len(mapping) > MAPPED,
        ),
    )


def _leakage(rows: Sequence[Row], explainers: Iterable[str]) -> Iterator[Note]:
    """A warning for each explainer whose selection leaks the label, or was not tested for leakage."""
    for name in explainers:
        own = [row for row in rows if row.n and row.settings.get("explainer") == name]
        is_rationale = name == "rationale"
        yield from selection_warnings(own, None if is_rationale else name)
        if is_rationale and READER not in by_measure(own):
            yield Note(NoteCode.LEAKAGE_NOT_TESTED)
