"""Rules for verdicts: the measures that decide each one, and thresholds that were fixed before any model was audited.

    yes            every interval lies within the threshold of yes, and one of the required measures is available
    no             at least one interval lies beyond the threshold of no
    undecided      all other cases; a mean over fewer than FEWEST texts decides nothing, nor does a test that the model
                   cannot pass: see below
    not measured   no deciding measure is available

A collapse can only lead to a no: its absence is not evidence of stability.

The tests of faithfulness need a prediction that depends on the words.  The probabilities of a model that is close to
constant change little whatever is erased, so that no explanation reaches the threshold of yes.  A low score is then
not evidence against the explanation.  It is undecided if the largest drop of any erasure is below REACH times the
threshold of yes, with its whole interval.  The factor allows for sizes: the best words lower the probability by the
largest drop at some of the erased sizes only, and the score is the mean over all sizes.

Advice: what would decide an undecided verdict, and what to try after a no.  The width of an interval falls with the
square root of the number of texts.  A score decides with n (h / d)² texts: d is its distance from the threshold, and h
the part of its interval towards the threshold.  A score between both thresholds decides with no number of texts.
Only some of the texts that an audit reads have a score, or count for a class: the advised number of texts divides by
the lower end of the interval of their share.  Advice that the data cannot meet is not given; it names the number of
texts that would be needed instead.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from steadygaze.core.errors import unknown
from steadygaze.explainers.learned import METHODS
from steadygaze.models.encoders import TRANSFORMER
from steadygaze.properties.commands import AuditCommands
from steadygaze.properties.measures import check_name
from steadygaze.properties.measures.shortcut_measures import FEWEST as TEXTS_PER_CLASS
from steadygaze.results.formatting import (
    explainer_name,
    measure_noun,
    number,
    plain_label,
    scale,
    short_number,
)
from steadygaze.results.intervals import wilson_interval
from steadygaze.results.leakage_warnings import GAP, MARGIN, MITIGATION, WITH_EXEMPT_TEXTS
from steadygaze.results.policy import Policy
from steadygaze.results.row import Answer, Row, Verdict

FEWEST = 8
"""Minimum number of texts for a verdict."""
MOST = 100_000
"""Numbers of texts above this one are not advised."""
WITHIN_REACH = 3
"""More than this multiple of the texts in the data is not advised."""
UNSEEN = 1
"""A class that the model predicts for none of the audited texts counts as if it predicted it once."""
Limits = Mapping[str, tuple[float, float]]
"""Measure -> thresholds of yes and of no."""
SAME_TEXTS = "which one step of FGM shifts by"
"""In the note of PGD, if it ran on fewer texts than FGM."""
NO_SYNONYM_TABLE = "there is no synonym table"
SHUFFLED_LEAK = "position-leak/shuffled"
FEW_TEXTS_OF_A_CLASS = "the position leak needs two classes"
"""Reasons why a measure is missing; the protocols begin their sentences with them."""
BUILD_TABLE = "`steadygaze synonyms build wordnet --out synonyms.jsonl`"
OTHER_EXPLAINERS = {
    "integrated-gradients": "leave-one-out",
    "leave-one-out": "lime",
    "lime": "kernel-shap",
    "kernel-shap": "leave-one-out",
}
"""Explainer -> the one to audit next, which a black box has as well; all others: integrated-gradients."""
RATIONALE, ATTENTION = "rationale", "attention"
FEW_TEXTS = "which may not help with fewer than about 4,000 training texts"
"""Of random pretraining, as docs/results/shortcuts.md says; attention was measured on IMDB alone, which has more."""
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
    """Whether steadygaze has trained the model, so that options of `train` apply."""
    encoder: str = ""
    technique: str = ""
    """Encoder and technique of a model that steadygaze has trained; empty: unknown."""
    has_groups: bool = False
    """Whether the model has synonym groups."""
    mitigation: str = ""
    """Mitigation of a fitted explainer; empty: unknown, or not fitted."""
    has_pairs: bool = False
    """Whether the inputs are pairs of texts; only words of the first text are erased."""
    has_learned: bool = True
    """Whether the model is not known to be no better than a guess."""
    commands: AuditCommands = field(default_factory=AuditCommands)

    def read(self, measure: str, audited: int) -> int:
        """The number of audited texts that the measure reads."""
        return min(self.sample, audited) if measure in self.sampled else audited

    def audit_of(self, texts: int, measure: str, audited: int) -> str:
        """The command of an audit in which the measure reads so many texts."""
        changes = {"limit": texts} if texts > audited else {}
        changes |= {"sample": texts} if measure in self.sampled and texts > self.sample else {}
        return self.commands.audit(**changes)


UNKNOWN = AdviceContext()


def advise_after_no(measure: str, explainer: str, context: AdviceContext = UNKNOWN) -> str:
    """What to try if this measure leads to a no for this explainer, as a sentence with a command.

    >>> advise_after_no("kendall/randomized", "attention")
    'Audit another explainer of this model: `steadygaze audit MODEL --data DATA --explainer integrated-gradients`.'
    """
    commands = context.commands
    if measure == GAP and explainer in METHODS and not _has_mitigation(explainer, context):
        fit = commands.fit_explainer("--explainer", explainer, "--mitigation", MITIGATION, "--out", "DIR")
        return f"Fit the explainer again with a mitigation, {FEW_TEXTS}: {fit}."
    goal, *options = _technique(measure, explainer, context)
    if options and not _has_technique(options, context):
        return f"Train a classifier with {goal}: {commands.train(*options, '--out', 'DIR')}."
    used = f"The technique {context.technique} did not suffice: audit" if options else "Audit"
    if (other := _other_explainer(explainer, context)) is None:
        return "Compare the explainers of this audit, and use one with better scores."
    return f"{used} another explainer of this model: {commands.audit(explainers=(other,))}."


def _other_explainer(explainer: str, context: AdviceContext) -> str | None:
    """The explainer to audit next; None: all of them were audited."""
    audited = {explainer, *(context.commands.settings.get("explainers") or ())}
    following = [OTHER_EXPLAINERS.get(explainer, "integrated-gradients")]
    while following[-1] in OTHER_EXPLAINERS and OTHER_EXPLAINERS[following[-1]] not in following:
        following.append(OTHER_EXPLAINERS[following[-1]])
    return next((name for name in following if name not in audited), None)


def _has_mitigation(explainer: str, context: AdviceContext) -> bool:
    """Whether the explainer was fitted with the mitigation, or cannot be."""
    return context.mitigation == MITIGATION or MITIGATION not in getattr(METHODS[explainer], "mitigations", ())


def _has_technique(options: Sequence[str], context: AdviceContext) -> bool:
    """Whether the model was trained with these options already."""
    return list(options) == ["--technique", context.technique]


def _technique(measure: str, explainer: str, context: AdviceContext) -> tuple[str, ...]:
    """The goal and the options of `train` against this problem; no options if another explainer is better advice."""
    if explainer == RATIONALE:
        return "another rationalizer", "--technique", "fresh" if measure == GAP else "a2r"
    if explainer != ATTENTION or not context.trained:
        return ("",)
    if measure.startswith("jensen-shannon/"):
        return "stable attention", *_stable_attention(context)
    if measure in (SHUFFLED_LEAK, "default-mass/above-share"):
        return f"a technique against shortcuts, {FEW_TEXTS}", "--technique", "random-pretraining"
    return ("",)


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


def _after_constant_model(context: AdviceContext) -> str:
    """For a model whose prediction hardly depends on the words."""
    compare = f"compare the model with the most frequent label: {context.commands.evaluate()}"
    if context.trained:
        return f"{compare}; then train it for more epochs, with --balanced or with --vectors"
    return f"{compare}; if it is not better, check the order of --classes and the language of the texts"


def _after_unlearned_model(context: AdviceContext) -> str:
    """For a model that is no better than a guess: neither another explainer nor more texts help."""
    if not context.trained:
        return _sentence([_after_constant_model(context)])
    return (
        "First train a model that predicts better than a guess: more or fewer --epochs, another learning rate (--set), "
        "--balanced or --vectors."
    )


def _after_missing(reason: str, audited: int, context: AdviceContext) -> str:
    """Advice about a measure that a yes needs; `reason`: the note of its row."""
    if NO_SYNONYM_TABLE in reason:
        audit = context.commands.audit(synonyms="synonyms.jsonl")
        argument = "" if context.commands.settings else " as synonyms= or"
        return (
            f"build a synonym table, here of English words: {BUILD_TABLE} (after `pip install 'steadygaze[wordnet]'`); "
            f"then pass it{argument}: {audit}"
        )
    return _more_of_a_class(audited, context) if FEW_TEXTS_OF_A_CLASS in reason else ""


def _more_of_a_class(audited: int, context: AdviceContext) -> str:
    """The position leak needs two classes that are predicted for TEXTS_PER_CLASS texts each."""
    goal = f"at least {TEXTS_PER_CLASS} texts of each of two predicted classes"
    second = sorted((*(context.counted or context.predicted), 0, 0))[-2]
    if not context.predicted or second >= TEXTS_PER_CLASS:
        return f"audit more texts: {goal}"
    read = context.read(SHUFFLED_LEAK, audited)
    least, texts = _texts_to_read(TEXTS_PER_CLASS, second, read)
    if context.available is not None and least > context.available:
        return f"these data are too few to decide it: it needs {goal}"
    texts, about = (min(texts, context.available or texts), "about") if second else (least, "at least")
    return f"audit {about} {texts:,} texts, for {goal}: {context.audit_of(texts, SHUFFLED_LEAK, audited)}"


def _texts_to_read(needed: float, usable: int, read: int) -> tuple[int, int]:
    """Texts to read for the needed number of usable ones, if `usable` of `read` were: as a mean, and almost surely.

    >>> _texts_to_read(20, 16, 60), _texts_to_read(400, 100, 100)
    ((75, 120), (400, 400))
    """
    mean = needed * read / (usable or UNSEEN)
    share = wilson_interval(max(usable, UNSEEN), read)[0] if usable < read else 1.0
    return _rounded_up(mean), _rounded_up(max(mean, needed / share))


def deciding_texts(row: Row, good: float, bad: float) -> float:
    """The number of texts with which a score like this one decides; infinite between the thresholds."""
    sign, (low, high) = (1 if good > bad else -1), row.interval or (-math.inf, math.inf)
    reach = (row.value - low, high - row.value)[::sign]
    for inside, width in ((sign * (row.value - good), reach[0]), (sign * (bad - row.value), reach[1])):
        if inside > 0:
            return row.n * (width / inside) ** 2
    return math.inf


def advise(
    undecided: Sequence[Row],
    limits: Limits,
    audited: int,
    context: AdviceContext = UNKNOWN,
    missing: str = "",
    first: str = "",
) -> str:
    """What would decide a verdict, as a sentence.

    `undecided`: rows without an answer.  `audited` texts were read.  `missing`: the note of a missing measure that a
    yes needs.  `first`: other advice, which comes first.
    """
    parts = [first, _after_missing(missing, audited, context)]
    parts += [_more_texts(undecided, limits, audited, context)] if undecided else []
    sentence = "; ".join(filter(None, parts))
    return sentence and f"{sentence[:1].upper()}{sentence[1:]}."


def _more_texts(rows: Sequence[Row], limits: Limits, audited: int, context: AdviceContext) -> str:
    available = math.inf if context.available is None else context.available
    if any(row.n < FEWEST or row.interval is None for row in rows):
        return _at_least_fewest(min(rows, key=lambda row: row.n), audited, context)
    needed = {row.measure: deciding_texts(row, *limits[row.measure]) for row in rows}
    no = [row for row in rows if _leans_to_no(row, *limits[row.measure]) and needed[row.measure] <= MOST]
    row = min(no, key=lambda item: needed[item.measure]) if no else max(rows, key=lambda item: needed[item.measure])
    if needed[row.measure] > MOST:
        return _other_than_more_texts(row, limits, context)
    read = context.read(row.measure, audited)
    least, texts = _texts_to_read(needed[row.measure], min(row.n, read), read)
    if least > WITHIN_REACH * available:
        return f"these data are too few to decide it: it needs about {least:,} texts, and the data have {available:,}"
    advice = f"audit about {{:,}} texts instead of {read:,}"
    if least > available:
        source = "label more texts, or hold out more with train --test-share" if context.trained else "label more texts"
        return f"{advice.format(texts)}; the data have {available:,}: {source}"
    texts = int(min(texts, available))
    return f"{advice.format(texts)}: {context.audit_of(texts, row.measure, audited)}"


def _at_least_fewest(row: Row, audited: int, context: AdviceContext) -> str:
    """Advice for a score of fewer than FEWEST texts, or without an interval."""
    read, goal = context.read(row.measure, audited), f"a verdict needs at least {FEWEST}"
    if row.n >= FEWEST:
        return f"audit more texts: {goal}"
    least, texts = _texts_to_read(FEWEST, min(row.n, read), read)
    if context.available is not None and least > context.available:
        return f"these data are too few: {goal}, and the data have {context.available:,}"
    texts = min(texts, context.available or texts)
    return f"audit more texts: {goal}: {context.audit_of(texts, row.measure, audited)}"


def _other_than_more_texts(row: Row, limits: Limits, context: AdviceContext) -> str:
    """Advice for a score that no number of texts decides: what may lead to a yes."""
    (good, bad), label = limits[row.measure], plain_label(row.measure)
    other = advise_after_no(row.measure, explainer_name(row), context).removesuffix(".")
    return (
        f"more texts are unlikely to decide it, because one score lies between the thresholds of yes and no, "
        f"{short_number(good)} and {short_number(bad)}, or close to one of them: {label[:1].lower()}{label[1:]}, "
        f"{number(row.value)}; for a yes, {other[:1].lower()}{other[1:]}"
    )


def _leans_to_no(row: Row, good: float, bad: float) -> bool:
    return row.value < bad if good > bad else row.value > bad


def _rounded_up(value: float) -> int:
    """
    >>> _rounded_up(231.2), _rounded_up(9)
    (240, 9)
    """
    step: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step) * step


COLLAPSED = "collapsed"
ABSENT = "not applicable, because "
"""Notes of measures without a value begin with it."""
INTERRUPTED = "The audit was interrupted."
LARGEST_DROP = "largest-drop"
"""The measure that bounds the scores of faithfulness."""
REACH = 2
"""Multiple of the threshold of yes that the largest drop must reach for a no."""
OUT_OF_REACH = (
    "this decides nothing here, because erasing words{erased}, whichever, lowers the probability by at most {drop} as "
    "a mean over texts: too little for any explanation to pass"
)


@dataclass(frozen=True)
class Threshold:
    """The thresholds of yes and of no.  Higher values are better if `good` is above `bad`."""

    good: float
    bad: float
    sentence: str
    """Sentence with {value}, or with {size} and {more} (or less) or {better} (or worse).

    {noun}: attention, selection, weight.
    """
    needs_drop: bool = False
    """Whether a no needs a model whose prediction depends on the words."""
    note: str = ""
    """A part of the row's note with these words ends the sentence."""

    def decide(self, row: Row) -> Answer:
        if row.measure != COLLAPSED and (row.interval is None or row.n < FEWEST):
            return "undecided"
        low, high = row.interval or (row.value, row.value)
        if self.good > self.bad:
            return "yes" if low >= self.good else "no" if high <= self.bad else "undecided"
        return "yes" if high <= self.good else "no" if low >= self.bad else "undecided"

    def is_out_of_reach(self, largest_drop: Row | None) -> bool:
        """Whether no explanation of this model reaches the threshold of yes."""
        if not self.needs_drop or largest_drop is None or largest_drop.interval is None or largest_drop.n < FEWEST:
            return False
        return largest_drop.interval[1] < REACH * self.good

    def describe(self, row: Row) -> str:
        more, better = ("more", "better") if row.value >= 0 else ("less", "worse")
        value, size = (
            "less than 0.001" if 0 < score < 0.001 else number(score) for score in (row.value, abs(row.value))
        )
        noun = measure_noun(explainer_name(row))
        sentence = self.sentence.format(value=value, size=size, more=more, better=better, noun=noun)
        notes = [part for part in row.note.split("; ") if self.note and self.note in part]
        return f"{sentence} ({notes[0]})" if notes else sentence


@dataclass(frozen=True)
class VerdictRule:
    title: str
    thresholds: Mapping[str, Threshold]
    """By the name of a row."""
    required: tuple[str, ...]
    """A yes needs at least one of these rows."""

    @property
    def key(self) -> str:
        """The name in a policy: seed-consistency."""
        return self.title.lower().removeprefix("no ").replace(" ", "-")


LEAKAGE = Threshold(
    MARGIN,
    2 * MARGIN,
    "a network trained on the selections recovers the label {size} {more} often than an independent reader",
    note=WITH_EXEMPT_TEXTS,
)
VERDICT_RULES = (
    VerdictRule(
        "Stability",
        {
            COLLAPSED: Threshold(0, 1, "the {noun} does not depend on the text"),
            "jensen-shannon/noise": Threshold(0.005, 0.02, "small noise shifts the {noun} by {value}"),
            "jensen-shannon/fgm-label": Threshold(
                0.02, 0.10, "one gradient step against the predicted label (FGM) shifts the {noun} by {value}"
            ),
            "jensen-shannon/pgd-attention": Threshold(
                0.02, 0.10, "the worst small change of the embeddings shifts the {noun} by {value}", note=SAME_TEXTS
            ),
            "jensen-shannon/1-synonym": Threshold(
                0.02, 0.05, "substituting one word by a synonym shifts the {noun} by {value}"
            ),
            "jensen-shannon/3-synonyms": Threshold(
                0.05, 0.10, "substituting three words by synonyms shifts the {noun} by {value}"
            ),
        },
        ("jensen-shannon/1-synonym", "jensen-shannon/3-synonyms"),
    ),
    VerdictRule(
        "Faithfulness",
        {
            "comprehensiveness/above-random": Threshold(
                0.05,
                0.02,
                "erasing the highlighted words lowers the probability by {size} {more} than random words",
                needs_drop=True,
            ),
            "prediction-change/permuted": Threshold(
                0.02, 0.01, "permuting the weights changes the prediction by {value}", needs_drop=True
            ),
            "kendall/randomized": Threshold(
                0.3, 0.5, "the rank correlation with a model of random parameters is {value}"
            ),
            "leakage-gap": LEAKAGE,
        },
        ("comprehensiveness/above-random",),
    ),
    VerdictRule(
        "Seed consistency",
        {"jensen-shannon/seeds": Threshold(0.05, 0.15, "models trained with other seeds shift the {noun} by {value}")},
        ("jensen-shannon/seeds",),
    ),
    VerdictRule(
        "No shortcut leakage",
        {
            COLLAPSED: Threshold(0, 1, "the {noun} is uniform or depends on positions alone"),
            "position-leak/shuffled": Threshold(
                0.05,
                0.10,
                "with shuffled words, the positions of the {noun} reveal the predicted label {size} {better} than the "
                "length",
            ),
            "leakage-gap": LEAKAGE,
            "default-mass/above-share": Threshold(
                0.10, 0.30, "tokens without content get {size} {more} of the {noun} than under uniform weights"
            ),
            "first-sentence-share/above-rationale": Threshold(
                0.10,
                0.30,
                "the first sentence gets {size} {more} of the {noun} than its length or the human rationales explain",
            ),
        },
        ("position-leak/shuffled",),
    ),
    VerdictRule(
        "Plausibility",
        {
            "average-precision/above-random": Threshold(
                0.10, 0.02, "it ranks the words of human rationales {size} {better} than a random order"
            )
        },
        ("average-precision/above-random",),
    ),
)


def verdicts(rows: Sequence[Row], explainer: str, context: AdviceContext = UNKNOWN) -> tuple[Verdict, ...]:
    """`context`: for the advice."""
    by_name = {row.measure: row for row in rows if row.settings.get("explainer", explainer) == explainer}
    return tuple(_verdict(rule, by_name, explainer, context) for rule in VERDICT_RULES)


def interrupted_verdicts() -> tuple[Verdict, ...]:
    """No verdict: the measures of an interrupted audit do not suffice."""
    return tuple(Verdict(rule.title, "not measured", INTERRUPTED, key=rule.key) for rule in VERDICT_RULES)


def _verdict(rule: VerdictRule, rows: Mapping[str, Row], explainer: str, context: AdviceContext) -> Verdict:
    answers = {
        name: rule.thresholds[name].decide(rows[name]) for name in rule.thresholds if name in rows and rows[name].n
    }
    limits = {name: (threshold.good, threshold.bad) for name, threshold in rule.thresholds.items()}
    drop = rows.get(LARGEST_DROP)
    out_of_reach = [name for name in answers if answers[name] != "yes" and rule.thresholds[name].is_out_of_reach(drop)]
    answers |= dict.fromkeys(out_of_reach, "undecided")
    if not {name for name in answers if name != COLLAPSED or answers[name] == "no"}:
        notes = [rows[name].note for name in (*rule.required, *rule.thresholds) if name in rows and rows[name].note]
        reason = _sentence([note.removeprefix(ABSENT) for note in (*notes, "no deciding measure is available")][:1])
        return Verdict(rule.title, "not measured", reason, (), rule.key, limits)
    incomplete = answers.keys().isdisjoint(rule.required)
    answer: Answer = "no" if "no" in answers.values() else "undecided"
    if set(answers.values()) == {"yes"} and not incomplete:
        answer = "yes"
    # The worst answers come first; the absence of a collapse is not mentioned.
    order = sorted(answers, key=lambda name: ("no", "undecided", "yes").index(answers[name]))
    listed = [name for name in order if name != COLLAPSED or answers[name] != "yes"]
    reasons = [rule.thresholds[name].describe(rows[name]) for name in listed]
    if shift := next((name for name in listed if name.startswith("jensen-shannon/")), None):
        reasons[listed.index(shift)] += f" ({scale(shift)})"  # the first shift explains the range of all
    if drop is not None and out_of_reach:
        last = max(listed.index(name) for name in out_of_reach)
        erased = " of the first text" if context.has_pairs else ""
        reasons[last] += f"; {OUT_OF_REACH.format(erased=erased, drop=number(drop.value))}"
    note = ""
    if answer == "undecided" and incomplete:
        name = rule.required[0]
        note = rows[name].note if name in rows else ""
        label = plain_label(name)
        reasons.append(f"a yes also needs the {label[:1].lower()}{label[1:]} ({name}), which is {note or 'missing'}")
    undecided = [rows[name] for name in answers if answers[name] == answer == "undecided" and name not in out_of_reach]
    audited = sum(context.predicted) or max(row.n for row in rows.values())  # a retraining counts other texts
    is_constant = out_of_reach and not context.has_pairs  # the prediction for a pair may depend on the second text
    constant = _after_constant_model(context) if answer == "undecided" and is_constant else ""
    advice = advise(undecided, limits, audited, context, note, constant)
    if answer == "no":
        advice = advise_after_no(order[0], explainer, context)
    if answer != "yes" and not context.has_learned:
        advice = _after_unlearned_model(context)
    signatures = tuple(rows[name].signature for name in (*answers, *([LARGEST_DROP] if out_of_reach else [])))
    caveats = tuple(dict.fromkeys(caveat for name in answers if (caveat := rows[name].caveat)))
    return Verdict(rule.title, answer, _sentence(reasons), signatures, rule.key, limits, advice, caveats)


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def check_policy(*parts: Policy) -> Policy | None:
    """All requirements together; None if there are none.  Unknown names are refused before the audit."""
    requirements = tuple(requirement for part in parts for requirement in part.requirements)
    allowed = tuple(verdict for part in parts for verdict in part.verdicts)
    for requirement in requirements:
        check_name(requirement.measure)
    names = [name for rule in VERDICT_RULES for name in (rule.key, rule.title)]
    for verdict in allowed:
        if verdict.name not in names:
            raise unknown("verdict", verdict.name, names)
    return Policy(requirements, allowed) if requirements or allowed else None
