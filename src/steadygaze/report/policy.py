"""Policy: what a report must hold for a gate to open, from the command line or a file.

report/policy_file.py reads and writes the file, report/gate.py checks a report.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from steadygaze import arguments
from steadygaze.errors import UserError
from steadygaze.report.report import Answer

Op = Literal["<=", ">=", "<", ">", "=="]
LIMITS: dict[str, Op] = {"at_most": "<=", "at_least": ">=", "below": "<", "above": ">", "equals": "=="}
FORM = re.compile(r"\s*([^\s\[\]<>=]+)\s*(?:\[\s*([^\[\]]+?)\s*\])?\s*(<=|>=|==|<|>)\s*(\S+)\s*")
EXAMPLE = '"jensen-shannon/3-synonyms<=0.05" or "comprehensiveness[attention]>=0.1"'


@dataclass(frozen=True, slots=True)
class Requirement:
    measure: str
    op: Op
    limit: float
    explainer: str | None = None
    """None: the explanation under audit."""
    interval: bool = False
    """Whether the whole interval must hold, and not the number alone."""
    why: str = ""

    def __str__(self) -> str:
        return f"{self.measure}{f'[{self.explainer}]' if self.explainer else ''}{self.op}{self.limit:g}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The answers that a question may have."""

    question: str
    answers: tuple[Answer, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    requirements: tuple[Requirement, ...] = ()
    verdicts: tuple[Wanted, ...] = ()


def as_policy(given: Policy | str | Path | Sequence[str]) -> Policy:
    """A policy itself, the path of a TOML file, or requirements as the command line takes them.

    >>> as_policy(["accuracy >= 0.9"]).requirements[0].limit
    0.9
    """
    if isinstance(given, Policy):
        return given
    if isinstance(given, Path) or (isinstance(given, str) and not FORM.fullmatch(given)):
        from steadygaze.report.policy_file import read_policy

        return read_policy(arguments.path("policy", given))
    rules = [given] if isinstance(given, str) else arguments.several("policy", given)
    return Policy(tuple(parse_requirement(arguments.text("policy", rule)) for rule in rules))


def parse_requirement(text: str) -> Requirement:
    """
    >>> str(parse_requirement("comprehensiveness[attention] >= 0.10"))
    'comprehensiveness[attention]>=0.1'
    """
    found = FORM.fullmatch(text)
    if found is None:
        raise UserError(
            f"a requirement is a measure, one of <= >= < > == and a number, found {text!r}: {EXAMPLE}.  "
            "A --policy file can require verdicts, under [[verdict]]"
        )
    measure, explainer, op, limit = found.groups()
    try:
        number = float(limit)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{text!r}: {limit!r} is no number: {EXAMPLE}")
    return Requirement(measure, cast(Op, op), number, explainer)
