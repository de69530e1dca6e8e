"""Rules for verdicts: the measures that decide each one, and thresholds that were fixed before any model was audited.

    yes              every interval lies within the threshold of yes, of FEWEST_FOR_YES texts or more, and one of the
                     required measures is available
    no               at least one interval lies beyond the threshold of no, widened by the number of tests; FEWEST texts
    undecided        all other cases
    not meaningful   a property that this one depends on is a no: an explanation that does not show what the model uses
                     may well be stable.  If that property is undecided, so is this one instead of a yes
    not measured     no deciding measure is available

A collapse can only lead to a no: its absence is not evidence of stability.

Two tests of the same kind, such as removing words and replacing them, give a no only together.  A model whose
prediction hardly depends on the words has no such scores.

Advice: what would decide an undecided verdict, and what to try after a no.  The width of an interval falls with the
square root of the number of texts.  A score decides with n (h / d)² texts: d is its distance from the threshold, and h
the part of its interval towards the threshold.  A score between both thresholds decides with no number of texts.
Only some of the texts that an audit reads have a score, or count for a class.  The advised number of texts divides by
the lower end of the interval of their share.  Advice that the data cannot meet is not given; it names the number of
texts that would be needed instead.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from steadygaze.explainers.learned import METHODS
from steadygaze.models.encoders import TRANSFORMER
from steadygaze.properties import PROPERTIES, measure_of
from steadygaze.properties.commands import AuditCommands
from steadygaze.properties.measures.shortcut_measures import FEWEST as TEXTS_PER_CLASS
from steadygaze.properties.property import (
    COLLAPSED,
    FEWEST,
    FEWEST_FOR_YES,
    Advice,
    AdviceKind,
    Property,
    Rule,
    widening,
)
from steadygaze.results.formatting import explainer_name
from steadygaze.results.intervals import wilson_interval
from steadygaze.results.leakage_warnings import MITIGATION
from steadygaze.results.note import Note, NoteCode, note
from steadygaze.results.row import Answer, Row, Verdict

MOST = 100_000
"""Numbers of texts above this one are not advised."""
WITHIN_REACH = 3
"""More than this multiple of the texts in the data is not advised."""
UNSEEN = 1
"""A class that the model predicts for none of the audited texts counts as if it predicted it once."""
Limits = Mapping[str, tuple[float, float]]
"""Measure -> thresholds of yes and of no."""
SHUFFLED_LEAK = "position-leak/shuffled"
BUILD_TABLE = ("steadygaze", "synonyms", "build", "wordnet", "--out", "synonyms.jsonl")
OTHER_EXPLAINERS = {
    "integrated-gradients": "leave-one-out",
    "leave-one-out": "lime",
    "lime": "kernel-shap",
    "kernel-shap": "leave-one-out",
}
"""Explainer -> the one to audit next, which a black box has as well; all others: integrated-gradients."""
RATIONALE, ATTENTION = "rationale", "attention"
LONG_STUDENT = (
    "swaps=4", "target_temperature=0.5", "teacher=word-at", "teachers=2", "teacher_epochs=0.5", "teacher_rate=4",
)  # fmt: skip
"""Settings of `consensus` beside the synonym table; see docs/results/synonym-groups.md."""


@dataclass(frozen=True)
class AdviceContext:
    """The audited model and data, as far as they are known."""

    available: int | None = None
    """Number of texts in the data; None: unknown."""
    predicted: tuple[int, ...] = ()
    """Number of audited texts for each predicted class; empty: unknown."""
    counted: tuple[int, ...] = ()
    """The same as the position leak counts them: distinct texts with shuffled words; empty: it has a value."""
    sample: int = 0
    """The most texts that expensive measures read."""
    sampled: frozenset[str] = frozenset()
    """The measures that read a sample of the texts."""
    trained: bool = True
    """True if steadygaze has trained the model, so that options of `train` apply."""
    encoder: str = ""
    technique: str = ""
    """Encoder and technique of a model that steadygaze has trained; empty: unknown."""
    has_groups: bool = False
    """True if the model has synonym groups."""
    mitigation: str = ""
    """Mitigation of a fitted explainer; empty: unknown, or not fitted."""
    has_pairs: bool = False
    """True if the inputs are pairs of texts; only words of the first text are erased."""
    has_learned: bool = True
    """False for a model that is known to only guess."""
    commands: AuditCommands = field(default_factory=AuditCommands)
    explainers: tuple[str, ...] = ()
    """The audited explainers."""

    def read(self, measure: str, audited: int) -> int:
        """The number of audited texts that the measure reads."""
        return min(self.sample, audited) if measure in self.sampled else audited

    def audit_of(self, texts: int, measure: str, audited: int) -> tuple[str, ...]:
        """The command of an audit in which the measure reads so many texts."""
        changes = {"limit": texts} if texts > audited else {}
        changes |= {"sample": texts} if measure in self.sampled and texts > self.sample else {}
        return self.commands.audit(**changes)


UNKNOWN = AdviceContext()


def advise_after_no(measure: str, explainer: str, context: AdviceContext = UNKNOWN) -> Advice:
    """The advice if this measure leads to a no for this explainer.

    >>> advise_after_no("kendall/randomized", "attention").command[-2:]
    ('--explainer', 'integrated-gradients')
    """
    commands, advice = context.commands, advice_of(measure)
    if advice.kind == AdviceKind.MITIGATION and explainer in METHODS and not _has_mitigation(explainer, context):
        fit = commands.fit_explainer("--explainer", explainer, "--mitigation", MITIGATION, "--out", "DIR")
        return Advice(AdviceKind.MITIGATION, command=fit)
    training = _training(advice, explainer, context)
    if training.options and not _has_technique(training.options, context):
        return replace(training, command=commands.train(*training.options, "--out", "DIR"))
    if (other := _other_explainer(explainer, context)) is None:
        return Advice(AdviceKind.COMPARE_EXPLAINERS)
    numbers = {"technique": context.technique} if training.options else {}
    return Advice(numbers=numbers, command=commands.audit(explainers=(other,)))


def _other_explainer(explainer: str, context: AdviceContext) -> str | None:
    """The explainer to audit next; None: all of them were audited."""
    audited = {explainer, *context.explainers, *(context.commands.settings.get("explainers") or ())}
    following = [OTHER_EXPLAINERS.get(explainer, "integrated-gradients")]
    while following[-1] in OTHER_EXPLAINERS and OTHER_EXPLAINERS[following[-1]] not in following:
        following.append(OTHER_EXPLAINERS[following[-1]])
    return next((name for name in following if name not in audited), None)


def _has_mitigation(explainer: str, context: AdviceContext) -> bool:
    """True if the explainer was fitted with the mitigation, or cannot be."""
    return context.mitigation == MITIGATION or MITIGATION not in getattr(METHODS[explainer], "mitigations", ())


def _has_technique(options: Sequence[str], context: AdviceContext) -> bool:
    """True if the model was trained with these options already."""
    return list(options) == ["--technique", context.technique]


def advice_of(measure: str) -> Advice:
    """The advice of the threshold of this row."""
    rules = [item.rule for item in PROPERTIES.values() if item.rule]
    return next((rule.thresholds[measure].advice for rule in rules if measure in rule.thresholds), Advice())


def _training(advice: Advice, explainer: str, context: AdviceContext) -> Advice:
    """The training against this problem; no options if another explainer is better advice."""
    if explainer == RATIONALE:
        technique = "fresh" if advice.kind == AdviceKind.MITIGATION else "a2r"
        return Advice(AdviceKind.OTHER_RATIONALIZER, options=("--technique", technique))
    if explainer != ATTENTION or not context.trained:
        return Advice()
    if advice.kind == AdviceKind.STABLE_ATTENTION:
        return replace(advice, options=_stable_attention(context))
    return advice if advice.kind == AdviceKind.TRAIN else Advice()


def _stable_attention(context: AdviceContext) -> tuple[str, ...]:
    """Options of `train`, as docs/results/synonym-groups.md recommends; none if the model has what it recommends last.

    `word-at` with synonym groups comes first.  The long student of `consensus` comes next, and first for a transformer:
    there, words that `word-at` weights highest lose a third of their effect on the prediction.
    """
    settings, transformer = context.commands.settings, context.encoder.startswith(TRANSFORMER)
    table = str(settings.get("synonyms") or "TABLE")
    if context.technique == "consensus" and context.has_groups:
        return ()
    chosen = ["--encoder", context.encoder] if context.encoder not in ("", "bilstm") else []
    if transformer or (context.technique == "word-at" and context.has_groups):
        chosen += ["--technique", "consensus", "--synonym-groups", table]
        chosen += [word for value in (f"synonyms={table}", *LONG_STUDENT) for word in ("--set", value)]
    else:
        chosen += ["--technique", "word-at"]
        has_no_table = settings and table == "TABLE" and context.technique != "word-at"
        chosen += [] if has_no_table else ["--synonym-groups", table]
    return tuple(chosen)


def _after_constant_model(context: AdviceContext) -> Advice:
    """For a model whose prediction hardly depends on the words."""
    numbers = {"pairs": context.has_pairs, "trained": context.trained}
    return Advice(AdviceKind.COMPARE_WITH_CONSTANT, numbers=numbers, command=context.commands.evaluate())


def _after_unlearned_model(context: AdviceContext) -> Advice:
    """Advice for a model that only guesses: neither another explainer nor more texts help."""
    return Advice(AdviceKind.IMPROVE_MODEL) if context.trained else _after_constant_model(context)


def _after_missing(reason: Note | None, audited: int, context: AdviceContext) -> tuple[Advice, ...]:
    """Advice about a measure that a yes needs; `reason`: why it is absent."""
    if reason is None:
        return ()
    if reason.code == NoteCode.NO_SYNONYM_TABLE:
        numbers = {"known": bool(context.commands.settings)}
        audit = context.commands.audit(synonyms="synonyms.jsonl")
        return (
            Advice(AdviceKind.BUILD_SYNONYM_TABLE, command=BUILD_TABLE),
            Advice(AdviceKind.PASS_SYNONYM_TABLE, numbers=numbers, command=audit),
        )
    if reason.code == NoteCode.NOTHING_MATTERS:
        return (_after_constant_model(context),)
    return (_more_of_a_class(audited, context),) if reason.code == NoteCode.FEW_TEXTS_OF_A_CLASS else ()


def _more_of_a_class(audited: int, context: AdviceContext) -> Advice:
    """The position leak needs two classes that are predicted for TEXTS_PER_CLASS texts each."""
    numbers = {"least": TEXTS_PER_CLASS, "texts": None}
    second = sorted((*(context.counted or context.predicted), 0, 0))[-2]
    if not context.predicted or second >= TEXTS_PER_CLASS:
        return Advice(AdviceKind.MORE_OF_A_CLASS, numbers=numbers)
    read = context.read(SHUFFLED_LEAK, audited)
    least, texts = _texts_to_read(TEXTS_PER_CLASS, second, read)
    if context.available is not None and least > context.available:
        return Advice(AdviceKind.TOO_FEW_OF_A_CLASS, numbers={"least": TEXTS_PER_CLASS})
    texts, about = (min(texts, context.available or texts), "about") if second else (least, "at least")
    command = context.audit_of(texts, SHUFFLED_LEAK, audited)
    return Advice(AdviceKind.MORE_OF_A_CLASS, numbers={**numbers, "texts": texts, "about": about}, command=command)


def _texts_to_read(needed: float, usable: int, read: int) -> tuple[int, int]:
    """Texts to read for the needed number of usable ones, if `usable` of `read` were: as a mean, and almost surely.

    >>> _texts_to_read(20, 16, 60), _texts_to_read(400, 100, 100)
    ((75, 120), (400, 400))
    """
    mean = needed * read / (usable or UNSEEN)
    share = wilson_interval(max(usable, UNSEEN), read)[0] if usable < read else 1.0
    return _rounded_up(mean), _rounded_up(max(mean, needed / share))


def deciding_texts(row: Row, good: float, bad: float, tests: int = 1, fewest: int = FEWEST_FOR_YES) -> float:
    """The number of texts with which a score like this one decides; infinite between the thresholds."""
    sign, (low, high) = (1 if good > bad else -1), row.interval or (-math.inf, math.inf)
    to_yes, to_no = (row.value - low, high - row.value)[::sign]
    if (inside := sign * (row.value - good)) > 0:
        return max(fewest, row.n * (to_yes / inside) ** 2)
    inside = sign * (bad - row.value)
    return row.n * (widening(tests) * to_no / inside) ** 2 if inside > 0 else math.inf


def advise(
    undecided: Sequence[Row],
    limits: Limits,
    audited: int,
    context: AdviceContext = UNKNOWN,
    missing: Note | None = None,
    tests: int = 1,
) -> tuple[Advice, ...]:
    """What would decide a verdict.

    `undecided`: rows without an answer.  `audited` texts were read.  `missing`: why a measure that a yes needs is
    absent.
    """
    more = _more_texts(undecided, limits, audited, context, tests) if undecided else []
    return (*_after_missing(missing, audited, context), *more)


def _more_texts(rows: Sequence[Row], limits: Limits, audited: int, context: AdviceContext, tests: int) -> list[Advice]:
    available = math.inf if context.available is None else context.available
    if any(row.n < FEWEST or row.interval is None for row in rows):
        return [_at_least_fewest(min(rows, key=lambda row: row.n), audited, context)]
    needed = {row.measure: deciding_texts(row, *limits[row.measure], tests) for row in rows}
    no = [row for row in rows if _leans_to_no(row, *limits[row.measure]) and needed[row.measure] <= MOST]
    row = min(no, key=lambda item: needed[item.measure]) if no else max(rows, key=lambda item: needed[item.measure])
    if needed[row.measure] > MOST:
        return _other_than_more_texts(row, limits, context)
    read = context.read(row.measure, audited)
    least, texts = _texts_to_read(needed[row.measure], min(row.n, read), read)
    if least > WITHIN_REACH * available:
        return [Advice(AdviceKind.TOO_FEW_TO_DECIDE, numbers={"texts": least, "available": available})]
    if least > available:
        numbers = {"texts": texts, "read": read, "available": available, "trained": context.trained}
        return [Advice(AdviceKind.LABEL_MORE_TEXTS, numbers=numbers)]
    texts = int(min(texts, available))
    command = context.audit_of(texts, row.measure, audited)
    return [Advice(AdviceKind.MORE_TEXTS, numbers={"texts": texts, "read": read}, command=command)]


def _at_least_fewest(row: Row, audited: int, context: AdviceContext) -> Advice:
    """Advice for a score of fewer than FEWEST texts, or without an interval."""
    read = context.read(row.measure, audited)
    if row.n >= FEWEST:
        return Advice(AdviceKind.AUDIT_FEWEST, numbers={"least": FEWEST})
    least, texts = _texts_to_read(FEWEST, min(row.n, read), read)
    if context.available is not None and least > context.available:
        return Advice(AdviceKind.TOO_FEW_TEXTS, numbers={"least": FEWEST, "available": context.available})
    command = context.audit_of(min(texts, context.available or texts), row.measure, audited)
    return Advice(AdviceKind.AUDIT_FEWEST, numbers={"least": FEWEST}, command=command)


def _other_than_more_texts(row: Row, limits: Limits, context: AdviceContext) -> list[Advice]:
    """Advice for a score that no number of texts decides: what may lead to a yes."""
    (good, bad), label = limits[row.measure], measure_of(row.measure).label(row.measure)
    never = None if math.isinf(bad) else bad
    numbers = {"measure": row.measure, "label": label, "value": row.value, "good": good, "bad": never}
    other = advise_after_no(row.measure, explainer_name(row), context)
    return [
        Advice(AdviceKind.NOT_MORE_TEXTS, numbers=numbers),
        replace(other, numbers={**other.numbers, "for_yes": True}),
    ]


def _leans_to_no(row: Row, good: float, bad: float) -> bool:
    return row.value < bad if good > bad else row.value > bad


def _rounded_up(value: float) -> int:
    """
    >>> _rounded_up(231.2), _rounded_up(9)
    (240, 9)
    """
    step: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step) * step


def verdicts(rows: Sequence[Row], explainer: str, context: AdviceContext = UNKNOWN) -> tuple[Verdict, ...]:
    """`context`: for the advice."""
    by_name = {row.measure: row for row in rows if row.settings.get("explainer", explainer) == explainer}
    rules = {name: item.rule for name, item in PROPERTIES.items() if item.rule}
    all_verdicts = {name: _verdict(PROPERTIES[name], rule, by_name, explainer, context) for name, rule in rules.items()}
    return tuple(_dependent(verdict, rules[name].depends_on, all_verdicts) for name, verdict in all_verdicts.items())


def _dependent(verdict: Verdict, names: Sequence[str], others: Mapping[str, Verdict]) -> Verdict:
    """The verdict; not meaningful if one that it depends on is a no, and no yes if that is undecided."""
    answers: dict[Answer, Verdict] = {others[name].answer: others[name] for name in names if name in others}
    if "no" in answers and verdict.answer != "not measured":
        reason = note(NoteCode.DEPENDS_ON, title=answers["no"].title, answer="no")
        return replace(verdict, answer="not meaningful", reasons=(reason, *verdict.reasons), advice=())
    if "undecided" in answers and verdict.answer == "yes":
        reason = note(NoteCode.DEPENDS_ON, title=answers["undecided"].title, answer="undecided")
        first = Advice(AdviceKind.DECIDE_FIRST, numbers={"title": answers["undecided"].title})
        advice = (first, *answers["undecided"].advice)
        return replace(verdict, answer="undecided", reasons=(reason, *verdict.reasons), advice=advice)
    return verdict


def interrupted_verdicts() -> tuple[Verdict, ...]:
    """No verdict: the measures of an interrupted audit do not suffice."""
    reasons = (Note(NoteCode.AUDIT_INTERRUPTED),)
    return tuple(
        Verdict(item.title, "not measured", reasons, key=item.name) for item in PROPERTIES.values() if item.rule
    )


def _verdict(item: Property, rule: Rule, rows: Mapping[str, Row], explainer: str, context: AdviceContext) -> Verdict:
    measured = [name for name in rule.thresholds if name in rows and rows[name].n]
    answers = {name: rule.thresholds[name].decide(rows[name], rule.tests(measured)) for name in measured}
    limits = rule.limits
    answers |= dict.fromkeys(_alone(rule, answers), "undecided")
    answers |= dict.fromkeys(_bounded(rule, answers, rows), "yes")
    audited = sum(context.predicted) or max((row.n for row in rows.values()), default=0)  # retraining: other texts
    if not {name for name in answers if name != COLLAPSED or answers[name] == "no"}:
        absences = [rows[name].absent for name in (*rule.required, *rule.thresholds) if name in rows]
        first = next(filter(None, absences), Note(NoteCode.NO_DECIDING_MEASURE))
        return Verdict(
            item.title, "not measured", (first,), (), item.name, limits, _after_missing(first, audited, context)
        )
    incomplete = answers.keys().isdisjoint(rule.required)
    answer: Answer = "no" if "no" in answers.values() else "undecided"
    if set(answers.values()) == {"yes"} and not incomplete:
        answer = "yes"
    reasons = _reasons(rule, rows, answers)
    absent: Note | None = None
    if answer == "undecided" and incomplete:
        name = rule.required[0]
        absent = rows[name].absent if name in rows else None
        label = measure_of(name).label(name)
        reasons.append(note(NoteCode.YES_NEEDS, measure=name, label=label, absent=absent))
    undecided = [rows[name] for name in answers if answers[name] == answer == "undecided"]
    advice = advise(undecided, limits, audited, context, absent, rule.tests(measured))
    if answer == "no":
        advice = (advise_after_no(next(name for name in answers if answers[name] == "no"), explainer, context),)
    if answer != "yes" and not context.has_learned:
        advice = (_after_unlearned_model(context),)
    signatures = tuple(rows[name].signature for name in answers)
    caveats = tuple(dict.fromkeys(caveat for name in answers if (caveat := rows[name].caveat)))
    return Verdict(item.title, answer, tuple(reasons), signatures, item.name, limits, advice, caveats)


def _alone(rule: Rule, answers: Mapping[str, Answer]) -> list[str]:
    """Rows whose no does not count, because another row of the same kind is not a no."""
    groups = ([name for name in group if name in answers] for group in rule.together)
    return [
        name for group in groups if {answers[n] for n in group} != {"no"} for name in group if answers[name] == "no"
    ]


def _bounded(rule: Rule, answers: Mapping[str, Answer], rows: Mapping[str, Row]) -> list[str]:
    """Undecided rows whose value is on the side of yes, and whose bound is a yes."""
    names = [name for bound, names in rule.bounds.items() if answers.get(bound) == "yes" for name in names]
    return [
        name
        for name in names
        if answers.get(name) == "undecided"
        and rows[name].n >= FEWEST_FOR_YES
        and rule.thresholds[name].is_good(rows[name].value)
    ]


def _reasons(rule: Rule, rows: Mapping[str, Row], answers: Mapping[str, Answer]) -> list[Note]:
    """The scores behind an answer, the worst first; the absence of a collapse is not mentioned."""
    order = sorted(answers, key=lambda name: ("no", "undecided", "yes").index(answers[name]))
    listed = [name for name in order if name != COLLAPSED or answers[name] != "yes"]
    return [rule.thresholds[name].describe(rows[name]) for name in listed]
