"""How often verdicts are wrong and undecided with other thresholds, from the values and intervals of recorded audits.

A verdict is a yes up to one value of its threshold and a no from another one on, so that each recorded case gives two
numbers.  Rows of the same verdict with other thresholds keep theirs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadygaze.properties import PROPERTIES
from steadygaze.properties.property import COLLAPSED, FEWEST, FEWEST_FOR_YES, Rule, Threshold, widening
from steadygaze.results.row import Answer, Row


@dataclass(frozen=True)
class Curve:
    """A threshold that varies, with all rows that share it."""

    verdict: str
    rows: tuple[str, ...]
    values: tuple[float, ...]
    """Values of the threshold."""

    @property
    def threshold(self) -> Threshold:
        """That of the audit."""
        rule = PROPERTIES[self.verdict].rule
        assert rule is not None
        return rule.thresholds[self.rows[0]]


def _rows_of(verdict: str, start: str) -> tuple[str, ...]:
    rule = PROPERTIES[verdict].rule
    assert rule is not None
    return tuple(name for name in rule.thresholds if name.startswith(start))


SHARES = tuple(round(0.05 * step, 2) for step in range(20))
LEAKS = tuple(round(0.01 * step, 2) for step in range(21))
CURVES = {
    "faithfulness": Curve("faithfulness", (*_rows_of("faithfulness", "c"), *_rows_of("faithfulness", "s")), SHARES),
    "stability": Curve("stability", _rows_of("stability", "weight-correlation"), SHARES),
    "seed consistency": Curve("seed-consistency", _rows_of("seed-consistency", "weight-correlation"), SHARES),
    "leakage": Curve("shortcut-leakage", ("content-leak", "position-leak/unaccounted"), LEAKS),
    "leakage by value": Curve("shortcut-leakage", ("value-leak",), LEAKS),
    "label unaccounted": Curve("shortcut-leakage", ("label-unaccounted",), LEAKS),
}
"""Name -> curve."""


@dataclass(frozen=True)
class Ends:
    """A verdict is a yes if the threshold is at `yes` or easier to meet, a no if it is at `no` or harder.

    Both are multiplied by −1 if lower values are better; −∞: never a yes; ∞: never a no.
    """

    yes: float
    no: float

    def answer(self, good: float, bad: float) -> Answer:
        return "no" if bad >= self.no else "yes" if good <= self.yes else "undecided"


def ends(curve: Curve, numbers: Mapping[str, Sequence[Any]]) -> Ends | None:
    """Where a recorded case turns; None: no row of the curve was measured.  `numbers`: name -> value, ends, n."""
    rule = PROPERTIES[curve.verdict].rule
    assert rule is not None
    rows = {name: _row(name, values) for name, values in numbers.items() if name in rule.thresholds}
    if not rows.keys() & {*curve.rows}:
        return None
    tests, sign = rule.tests(rows), 1 if curve.threshold.good > curve.threshold.bad else -1
    others = {name: rule.thresholds[name].decide(row, tests) for name, row in rows.items() if name not in curve.rows}
    yes, ends_no = math.inf, {}
    for name in rows.keys() & {*curve.rows}:
        low, high = _interval(rows[name], sign)
        bounded = any(name in names and others.get(bound) == "yes" for bound, names in rule.bounds.items())
        good = sign * rows[name].value if bounded else low
        yes = min(yes, good if rows[name].n >= FEWEST_FOR_YES else -math.inf)
        value = sign * rows[name].value
        ends_no[name] = value + (high - value) * widening(tests) if rows[name].n >= FEWEST else math.inf
    together = [[name for name in group if name in ends_no] for group in rule.together]
    single = [[name] for name in ends_no if not any(name in group for group in together)]
    no = min(max(ends_no[name] for name in group) for group in (*together, *single) if group)
    if "no" in others.values():
        no = -math.inf
    elif math.isinf(curve.threshold.bad):
        no = math.inf
    return Ends(yes if _allow_yes(curve, rule, rows, others) else -math.inf, no)


def _row(name: str, values: Sequence[Any]) -> Row:
    value, low, high, n = values
    return Row(name, value, n, None if low is None else (low, high))


def _interval(row: Row, sign: int) -> tuple[float, float]:
    low, high = sorted(sign * end for end in row.interval or (-math.inf, math.inf))
    return low, high


def _allow_yes(curve: Curve, rule: Rule, rows: Mapping[str, Row], others: Mapping[str, Answer]) -> bool:
    """Whether a required row is there, and no row with another threshold prevents a yes."""
    bounds = {*curve.rows, *(name for name, answer in others.items() if answer == "yes")}
    names = {name for bound in bounds & rule.bounds.keys() for name in rule.bounds[bound]}
    prevented = [
        name
        for name, answer in others.items()
        if answer != "yes"
        and name != COLLAPSED
        and not (name in names and answer == "undecided" and rule.thresholds[name].is_good(rows[name].value))
    ]
    return not prevented and not rows.keys().isdisjoint(rule.required)


def turns(curve: Curve, records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, Ends]]:
    """Explainer, model, the answer about faithfulness, and where the verdict turns, of each case that was measured."""
    return [
        (explainer, record["model"], record["answers"][explainer]["faithfulness"], where)
        for record in records
        for explainer, numbers in record["numbers"].items()
        if (where := ends(curve, numbers)) is not None
    ]


def shares(
    curve: Curve, cases: Sequence[tuple[bool, str, Ends]], value: float, dependent: bool
) -> dict[str, tuple[int, int]]:
    """`false yes`, `false no` and `undecided` if this value were the threshold, as counts and their totals.

    cases: the right answer, the answer about faithfulness, and where the verdict turns.  `dependent`: not meaningful
    without faithfulness.  A false yes depends on the threshold of yes alone, a false no on that of no alone.
    """
    sign = 1 if curve.threshold.good > curve.threshold.bad else -1
    counts = {"false yes": [0, 0], "false no": [0, 0], "undecided": [0, 0]}
    for truth, faithful, where in cases:
        answer: str = where.answer(sign * value, sign * value)
        if dependent and faithful == "no":
            answer = "not meaningful"
        elif dependent and faithful == "undecided" and answer == "yes":
            answer = "undecided"
        wrong = counts["false no" if truth else "false yes"]
        wrong[0] += answer in ("no", "not meaningful") if truth else answer == "yes"
        wrong[1] += 1
        counts["undecided"][0] += answer == "undecided"
        counts["undecided"][1] += 1
    return {name: (count, total) for name, (count, total) in counts.items()}
