"""Verdicts: the questions an audit answers, and the numbers that decide them, fixed before anybody's model is seen.

An answer is `yes` when every number that decides it is beyond doubt on the good side (the whole interval is) and the
ones it cannot do without are there, `no` when one is beyond doubt on the bad side, and `partly` in between; a mean over
fewer than FEWEST texts is beyond no doubt.  `not asked`: there were no numbers.  That nothing has collapsed speaks for
nothing: it can only speak against.

What an audit may be required to find: refused before anything is read where no audit could.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.audit.measures.registry import check_name
from steadygaze.core.errors import unknown
from steadygaze.results.formatting import explainer_name, measure_noun, number
from steadygaze.results.leakage_warnings import MARGIN
from steadygaze.results.policy import Policy
from steadygaze.results.row import Row
from steadygaze.results.verdict import Answer, Verdict

COLLAPSED = "collapsed"
FEWEST = 8
"""Texts that a verdict needs."""


@dataclass(frozen=True)
class Bound:
    """Where yes ends and where no begins.  More is better where `good` is above `bad`."""

    good: float
    bad: float
    sentence: str
    """What the number says, in plain words, with {value}; or with its {size}, and {more} (less) or {better} (worse).

    {noun}: attention, selection, weight.
    """

    def decide(self, row: Row) -> Answer:
        if row.measure != COLLAPSED and (row.interval is None or row.n < FEWEST):
            return "partly"
        low, high = row.interval or (row.value, row.value)
        if self.good > self.bad:
            return "yes" if low >= self.good else "no" if high <= self.bad else "partly"
        return "yes" if high <= self.good else "no" if low >= self.bad else "partly"


@dataclass(frozen=True)
class Question:
    key: str
    """As a policy calls it."""
    question: str
    bounds: Mapping[str, Bound]
    """Measure -> what it must be."""
    needs: tuple[str, ...]
    """Measures of which one at least must be there for a yes."""


LEAKAGE = Bound(
    MARGIN,
    2 * MARGIN,
    "the network trained on the selections gives the label {size} {more} often than an independent reader",
)
QUESTIONS = (
    Question(
        "stability",
        "Does it hold still?",
        {
            COLLAPSED: Bound(0, 1, "the {noun} says the same whatever the text"),
            "jensen-shannon/noise": Bound(0.005, 0.02, "under a little noise the {noun} moves by {value} nats"),
            "jensen-shannon/fgm-label": Bound(
                0.02, 0.10, "under a little step of the vectors against the label the {noun} moves by {value} nats"
            ),
            "jensen-shannon/pgd-attention": Bound(
                0.02, 0.10, "under the worst little change of the vectors the {noun} moves by {value} nats"
            ),
            "jensen-shannon/1-synonym": Bound(
                0.02, 0.05, "when one word is exchanged for a synonym the {noun} moves by {value} nats"
            ),
            "jensen-shannon/3-synonyms": Bound(
                0.05, 0.10, "when three words are exchanged for synonyms the {noun} moves by {value} nats"
            ),
        },
        ("jensen-shannon/1-synonym", "jensen-shannon/3-synonyms"),
    ),
    Question(
        "faithfulness",
        "Does it matter to the prediction?",
        {
            "comprehensiveness/above-random": Bound(
                0.05, 0.02, "erasing the highlighted words costs the label {size} {more} than erasing random ones"
            ),
            "prediction-change/permuted": Bound(0.02, 0.01, "shuffling the weights moves the prediction by {value}"),
            "kendall/randomized": Bound(0.3, 0.5, "a model with random weights orders the words alike by {value} (τ)"),
            "leakage-gap": LEAKAGE,
        },
        ("comprehensiveness/above-random",),
    ),
    Question(
        "seed-consistency",
        "Is it the same after retraining?",
        {
            "jensen-shannon/seeds": Bound(0.05, 0.15, "models trained alike with another seed differ by {value} nats"),
        },
        ("jensen-shannon/seeds",),
    ),
    Question(
        "shortcut-leakage",
        "Is it more than position or a shortcut?",
        {
            COLLAPSED: Bound(0, 1, "the {noun} follows the place of a word, or is the same for all"),
            "position-leak/shuffled": Bound(
                0.05,
                0.10,
                "with the words shuffled, the place of the {noun} tells the label {size} {better} than guessing",
            ),
            "leakage-gap": LEAKAGE,
            "default-mass/above-share": Bound(
                0.10, 0.30, "tokens that say nothing get {size} {more} of the {noun} than an even share"
            ),
            "first-sentence-share/above-rationale": Bound(
                0.10,
                0.30,
                "the first sentence gets {size} {more} of the {noun} than its length or the marked words account for",
            ),
        },
        ("position-leak/shuffled",),
    ),
    Question(
        "plausibility",
        "Do people agree?",
        {
            "average-precision/above-random": Bound(
                0.10, 0.02, "it ranks the words people marked {size} {better} than chance"
            ),
        },
        ("average-precision/above-random",),
    ),
)


def verdicts(rows: Sequence[Row], explainer: str) -> tuple[Verdict, ...]:
    mine = {row.measure: row for row in rows if row.settings.get("explainer", explainer) == explainer}
    return tuple(_verdict(question, mine) for question in QUESTIONS)


def _verdict(question: Question, mine: Mapping[str, Row]) -> Verdict:
    bounds = question.bounds
    asked = [name for name in bounds if name in mine]
    judged = {name: bounds[name].decide(mine[name]) for name in asked if mine[name].n}
    limits = {name: (bound.good, bound.bad) for name, bound in bounds.items()}
    if not {name for name in judged if name != COLLAPSED or judged[name] == "no"}:
        notes = [mine[name].note for name in (*question.needs, *asked) if name in mine and mine[name].note]
        return Verdict(
            question.question, "not asked", _sentence([*notes[:1], "nobody asked"][:1]), (), question.key, limits
        )
    lacks = judged.keys().isdisjoint(question.needs)
    sure = set(judged.values()) == {"yes"} and not lacks
    answer: Answer = "no" if "no" in judged.values() else "yes" if sure else "partly"
    # What stands against it first; that nothing has collapsed need not be said.
    order = sorted(judged, key=lambda name: ("no", "partly", "yes").index(judged[name]))
    told = [_says(bounds[name], mine[name]) for name in order if name != COLLAPSED or judged[name] != "yes"]
    if answer == "partly" and lacks:
        told.append(_lacks(question.needs[0], mine))
    rows = tuple(mine[name].signature for name in judged)
    return Verdict(question.question, answer, _sentence(told), rows, question.key, limits)


def _lacks(name: str, mine: Mapping[str, Row]) -> str:
    """Without which there is no yes, however good the others are."""
    note = mine[name].note if name in mine else ""
    return f"a yes needs {name} too, which is {note or 'not there'}"


def _says(bound: Bound, row: Row) -> str:
    """A number below 0 is said with its own word: 0.010 worse, and not −0.010 better."""
    more, better = ("more", "better") if row.value >= 0 else ("less", "worse")
    value, size = _spoken(row.value), _spoken(abs(row.value))
    return bound.sentence.format(
        value=value, size=size, more=more, better=better, noun=measure_noun(explainer_name(row))
    )


def _spoken(value: float) -> str:
    return "less than 0.001" if 0 < value < 0.001 else number(value)


def _sentence(parts: Sequence[str]) -> str:
    said = "; ".join(parts)
    return f"{said[:1].upper()}{said[1:]}."


def check_policy(*parts: Policy) -> Policy | None:
    """All of them together; None where they require nothing."""
    policy = Policy(
        tuple(one for part in parts for one in part.requirements), tuple(one for part in parts for one in part.verdicts)
    )
    for required in policy.requirements:
        check_name(required.measure)
    known = [name for question in QUESTIONS for name in (question.key, question.question)]
    for wanted in policy.verdicts:
        if wanted.question not in known:
            raise unknown("question", wanted.question, known)
    return policy if policy.requirements or policy.verdicts else None
