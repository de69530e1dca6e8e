"""The gate: what of a policy a report does not hold, in plain sentences.

What is not there does not pass: a number that is absent or not applicable fails, and says why.
"""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from steadygaze.errors import unknown
from steadygaze.record import Row
from steadygaze.report.policy import Op, Policy, Requirement, Wanted
from steadygaze.report.report import Report, Verdict
from steadygaze.report.words import short, whose

HOLDS: dict[Op, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
SAID: dict[Op, str] = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than", "==": "exactly"}


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that was required and does not hold."""

    required: str
    """As the policy has it: jensen-shannon/noise<=0.02, or a question."""
    sentence: str
    signature: str = ""
    """Of the number that fails, where there is one."""

    def __str__(self) -> str:
        return self.sentence


def check(report: Report, policy: Policy) -> list[Failure]:
    """Everything that does not hold.  A measure or a question that nobody knows is the user's mistake: UserError."""
    failed = [failure for one in policy.requirements for failure in _measured(report, one)]
    return failed + [failure for one in policy.verdicts for failure in _answered(report, one)]


def _measured(report: Report, required: Requirement) -> Iterator[Failure]:
    named = {row.measure for row in report.rows}
    if required.measure not in named and required.measure.partition("/")[0] not in report.meanings:
        raise unknown("measure", required.measure, named | report.meanings.keys())
    rows = report.all(required.measure, required.explainer)
    if not rows:
        yield Failure(str(required), _because(_nowhere(report, required), required.why))
    for row in rows:
        if (fault := _fault(row, required)) is not None:
            yield Failure(str(required), _because(fault, required.why), row.signature)


def _nowhere(report: Report, required: Requirement) -> str:
    of = required.explainer or report.facts.get("explanation", "this explanation")
    others = [whose(row) for row in report.rows if row.measure == required.measure]
    if others:
        return f"{required.measure} was not measured of {of}, only of {', '.join(dict.fromkeys(others))}"
    family = required.measure.partition("/")[0]
    alike = dict.fromkeys(row.measure for row in report.rows if row.measure.partition("/")[0] == family)
    hint = f"; there are {', '.join(alike)}" if alike else ""
    return f"{required.measure} was required and was not measured{hint}"


def _fault(row: Row, required: Requirement) -> str | None:
    """What is wrong with a number, or None."""
    of = f" of {row.settings['explain']}" if "explain" in row.settings else ""
    asked = f"{SAID[required.op]} {short(required.limit)} was required"
    if math.isnan(row.value):
        return f"{row.measure}{of}: {asked}, and it is {row.note or 'not defined'}"
    holds, found = HOLDS[required.op], f"{row.measure}{of} is {_exact(row.value, required.limit)}"
    if not required.interval:
        return None if holds(row.value, required.limit) else f"{found}; {asked}"
    if row.interval is None:
        return f"{found} and has no interval; {asked} of the whole interval"
    if all(holds(end, required.limit) for end in (row.value, *row.interval)):
        return None
    ends = " to ".join(_exact(end, required.limit) for end in row.interval)
    return f"{found}, its 95 % interval {ends}; {asked} of the whole interval"


def _answered(report: Report, wanted: Wanted) -> Iterator[Failure]:
    verdict = _verdict(report, wanted.question)
    if verdict.answer not in wanted.answers:
        asked = " or ".join(repr(answer) for answer in wanted.answers)
        said = f"{verdict.question} The answer is {verdict.answer!r}; {asked} was required ({verdict.why.rstrip('.')})"
        yield Failure(verdict.question, _because(said, wanted.why))


def _verdict(report: Report, question: str) -> Verdict:
    for verdict in report.verdicts:
        if question in (verdict.question, verdict.key):
            return verdict
    raise unknown(
        "question", question, [v.question for v in report.verdicts] + [v.key for v in report.verdicts if v.key]
    )


def _because(sentence: str, why: str) -> str:
    return f"{sentence}: {why}" if why else f"{sentence}."


def _exact(value: float, limit: float) -> str:
    """With as many figures as it takes to see on which side of the limit it lies.

    >>> _exact(0.0500004, 0.05), _exact(0.061234, 0.05)
    ('0.0500004', '0.0612')
    """
    said = (format(value, f".{figures}g") for figures in range(3, 18))
    return next((one for one in said if float(one) != limit or value == limit), repr(value)).replace("-", "−")
