"""Verdicts: the questions an audit answers, and the numbers that decide them, fixed before anybody's model is seen.

An answer is `yes` when every number that decides it is beyond doubt on the good side (the whole interval is), `no` when
one is beyond doubt on the bad side, and `partly` in between.  `not asked`: there were no numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steadygaze.record import Row
from steadygaze.report.report import Answer, Verdict


@dataclass(frozen=True)
class Bound:
    """What a number must be on the good side of, and what it must not be on the bad side of."""

    good: float
    bad: float
    says: str
    """What the number says, in plain words, with {value}."""
    higher: bool = False
    """Whether more is better."""

    def judge(self, row: Row) -> Answer:
        low, high = row.interval or (row.value, row.value)
        if self.higher:
            return "yes" if low >= self.good else "no" if high <= self.bad else "partly"
        return "yes" if high <= self.good else "no" if low >= self.bad else "partly"


QUESTIONS: Mapping[str, Mapping[str, Bound]] = {
    "Does it hold still?": {
        "collapsed": Bound(0, 1, "its weights say the same whatever the text"),
        "jensen-shannon/noise": Bound(0.005, 0.02, "under a little noise the weights move by {value} nats"),
        "jensen-shannon/worst-label": Bound(
            0.02, 0.10, "under the worst little change of the vectors they move by {value} nats"
        ),
        "jensen-shannon/1-synonym": Bound(
            0.02, 0.05, "when one word is exchanged for a synonym they move by {value} nats"
        ),
        "jensen-shannon/3-synonyms": Bound(0.05, 0.10, "when three are exchanged they move by {value} nats"),
    },
    "Does it matter to the prediction?": {
        "comprehensiveness/above-random": Bound(
            0.05,
            0.02,
            "erasing the highlighted words costs the label {value} more probability than erasing random ones",
            True,
        ),
        "prediction-change/permuted": Bound(0.02, 0.01, "shuffling the weights moves the prediction by {value}", True),
        "kendall/randomised": Bound(0.3, 0.5, "a model with random weights orders the words alike (τ {value})"),
    },
    "Is it the same after retraining?": {
        "jensen-shannon/seeds": Bound(0.05, 0.15, "models trained alike with another seed differ by {value} nats"),
    },
    "Is it more than position or a shortcut?": {
        "position-leak": Bound(
            0.05, 0.10, "the place of the highlighted words alone gives the label away ({value} above guessing)"
        ),
        "default-mass": Bound(0.5, 0.8, "{value} of the weight goes to words that say nothing"),
    },
    "Do people agree?": {
        "auprc/above-random": Bound(0.10, 0.02, "it ranks the words people marked {value} better than chance", True),
    },
}


def verdicts(rows: Sequence[Row], explainer: str) -> tuple[Verdict, ...]:
    return tuple(_verdict(question, bounds, rows, explainer) for question, bounds in QUESTIONS.items())


def _verdict(question: str, bounds: Mapping[str, Bound], rows: Sequence[Row], explainer: str) -> Verdict:
    mine = {row.measure: row for row in rows if row.n and row.settings.get("explain", explainer) == explainer}
    judged = {name: bounds[name].judge(mine[name]) for name in bounds if name in mine}
    if not judged:
        missing = [row.note for row in rows if row.measure in bounds and row.note]
        return Verdict(question, "not asked", missing[0] if missing else "It was not asked.")
    answer: Answer = "no" if "no" in judged.values() else "yes" if set(judged.values()) == {"yes"} else "partly"
    # The reasons: what stands against it first, what is beyond doubt last.
    order = sorted(judged, key=lambda name: ("no", "partly", "yes").index(judged[name]))
    told = [
        bounds[n].says.format(value=f"{mine[n].value:.3f}") for n in order if n != "collapsed" or judged[n] != "yes"
    ]
    why = "; ".join(told)
    return Verdict(question, answer, f"{why[:1].upper()}{why[1:]}.", tuple(mine[name].signature for name in judged))
