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
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.audit.measures import check_name
from steadygaze.audit.verdict_advice import CONSTANT_MODEL, FEWEST, SAME_TEXTS, advise, advise_after_no
from steadygaze.core.errors import unknown
from steadygaze.results.formatting import explainer_name, measure_noun, number, plain_label, scale
from steadygaze.results.leakage_warnings import MARGIN
from steadygaze.results.policy import Policy
from steadygaze.results.row import Answer, Row, Verdict

COLLAPSED = "collapsed"
INTERRUPTED = "The audit was interrupted."
LARGEST_DROP = "largest-drop"
"""The measure that bounds the scores of faithfulness."""
REACH = 2
"""Multiple of the threshold of yes that the largest drop must reach for a no."""
OUT_OF_REACH = (
    "this decides nothing here, because erasing words, whichever, lowers the probability by at most {drop} as a mean "
    "over texts: too little for any explanation to pass"
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
                "with shuffled words, the positions of the {noun} predict the label {size} {better} than the length",
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


def verdicts(rows: Sequence[Row], explainer: str, available: int | None = None) -> tuple[Verdict, ...]:
    """`available`: the number of texts that could be audited, for the advice; None: unknown."""
    by_name = {row.measure: row for row in rows if row.settings.get("explainer", explainer) == explainer}
    return tuple(_verdict(rule, by_name, explainer, available) for rule in VERDICT_RULES)


def interrupted_verdicts() -> tuple[Verdict, ...]:
    """No verdict: the measures of an interrupted audit do not suffice."""
    return tuple(Verdict(rule.title, "not measured", INTERRUPTED, key=rule.key) for rule in VERDICT_RULES)


def _verdict(rule: VerdictRule, rows: Mapping[str, Row], explainer: str, available: int | None) -> Verdict:
    answers = {
        name: rule.thresholds[name].decide(rows[name]) for name in rule.thresholds if name in rows and rows[name].n
    }
    limits = {name: (threshold.good, threshold.bad) for name, threshold in rule.thresholds.items()}
    drop = rows.get(LARGEST_DROP)
    out_of_reach = [name for name in answers if answers[name] != "yes" and rule.thresholds[name].is_out_of_reach(drop)]
    answers |= dict.fromkeys(out_of_reach, "undecided")
    if not {name for name in answers if name != COLLAPSED or answers[name] == "no"}:
        notes = [rows[name].note for name in (*rule.required, *rule.thresholds) if name in rows and rows[name].note]
        reason = _sentence([*notes, "no deciding measure is available"][:1])
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
        reasons[last] += f"; {OUT_OF_REACH.format(drop=number(drop.value))}"
    note = ""
    if answer == "undecided" and incomplete:
        name = rule.required[0]
        note = rows[name].note if name in rows else ""
        label = plain_label(name)
        reasons.append(f"a yes also needs the {label[:1].lower()}{label[1:]} ({name}), which is {note or 'missing'}")
    undecided = [rows[name] for name in answers if answers[name] == answer == "undecided" and name not in out_of_reach]
    audited = max(row.n for row in rows.values())
    constant = CONSTANT_MODEL if answer == "undecided" and out_of_reach else ""
    advice = advise(undecided, limits, audited, available, note, constant)
    if answer == "no":
        advice = advise_after_no(order[0], explainer)
    signatures = tuple(rows[name].signature for name in (*answers, *([LARGEST_DROP] if out_of_reach else [])))
    return Verdict(rule.title, answer, _sentence(reasons), signatures, rule.key, limits, advice)


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
