"""Policy: requirements for a report, from the command line or from a TOML file.  results/report.py checks them.

[[require]]
measure = "jensen-shannon/3-synonyms"
at_most = 0.05            # or at_least, below, above, equals
explainer = "attention"   # optional; default: the first named explainer
interval = true           # optional: the whole 95 % interval must be within
why = "…"                 # optional: shown when it fails

[[verdict]]
name = "stability"        # of the first named explainer; or faithfulness, seed-consistency, shortcut-leakage, …
answer = ["yes", "undecided"]
why = "…"
"""

import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from steadygaze.core import arguments
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.untrusted_files import read_text
from steadygaze.results.row import Answer, MeasureKey

POLICY_FILE = "policy.toml"
"""Name of the policy in an audit bundle."""

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
    """None: the first named explainer that the model supports."""
    interval: bool = False
    """The whole interval must meet the limit, not only the value."""
    why: str = ""

    @property
    def key(self) -> MeasureKey:
        return MeasureKey.parse(self.measure)

    def __str__(self) -> str:
        return f"{self.measure}{f'[{self.explainer}]' if self.explainer else ''}{self.op}{self.limit:g}"


@dataclass(frozen=True, slots=True)
class VerdictRequirement:
    """The allowed answers of a verdict of the first named explainer that the model supports."""

    name: str
    """Its key or its title."""
    answers: tuple[Answer, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    requirements: tuple[Requirement, ...] = ()
    verdicts: tuple[VerdictRequirement, ...] = ()


def as_policy(source: Policy | str | Path | Sequence[str]) -> Policy:
    """Convert a policy, the path of a TOML file, or requirements of the command line.

    >>> as_policy(["accuracy >= 0.9"]).requirements[0].limit
    0.9
    """
    if isinstance(source, Policy):
        return source
    if isinstance(source, Path) or (isinstance(source, str) and not FORM.fullmatch(source)):
        return read_policy(arguments.path("policy", source))
    rules = [source] if isinstance(source, str) else arguments.sequence_of("policy", source)
    return Policy(tuple(parse_requirement(arguments.text("policy", rule)) for rule in rules))


def parse_requirement(text: str) -> Requirement:
    """
    >>> str(parse_requirement("comprehensiveness[attention] >= 0.10"))
    'comprehensiveness[attention]>=0.1'
    """
    match = FORM.fullmatch(text)
    if match is None:
        raise UserError(
            f"a requirement is a measure, one of <= >= < > == and a number, found {text!r}: {EXAMPLE}.  "
            "A --policy file can require verdicts, under [[verdict]]"
        )
    measure, explainer, op, limit = match.groups()
    try:
        number = float(limit)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{text!r}: {limit!r} is not a number: {EXAMPLE}")
    return Requirement(measure, cast(Op, op), number, explainer)


LARGEST = 1 << 20
"""Largest size of a policy file, in bytes."""
REQUIRE = ("measure", *LIMITS, "explainer", "interval", "why")
VERDICT = ("name", "answer", "why")


def read_policy(path: Path) -> Policy:
    return parse_policy(read_text(path, LARGEST), path.name)


def parse_policy(text: str, name: str = "policy.toml") -> Policy:
    """Parse the text of a TOML file; `name` is the file in errors."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number with too many digits for Python
        raise UserError(f"{name} is not valid TOML: {error}") from None
    for key in values:
        if key not in ("require", "verdict"):
            raise UserError(f"{name}: {unknown('table', key, ('require', 'verdict'))}")
    required = [
        requirement
        for place, part in _tables(values, "require", text, name)
        for requirement in _requirements(part, place)
    ]
    verdicts = [_verdict_requirement(part, place) for place, part in _tables(values, "verdict", text, name)]
    if not required and not verdicts:
        raise UserError(f"{name} requires nothing: it needs a [[require]] or a [[verdict]]")
    return Policy(tuple(required), tuple(verdicts))


def _tables(values: Mapping[str, Any], kind: str, text: str, name: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield each [[kind]] with its location for errors."""
    tables = values.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(part, dict) for part in tables):
        raise UserError(f"{name}: {kind} must be written [[{kind}]], with two brackets on either side")
    lines = [i for i, line in enumerate(text.splitlines(), 1) if re.match(rf"\s*\[\[\s*{kind}\s*\]\]", line)]
    for i, part in enumerate(tables):
        position = f"line {lines[i]}" if len(lines) == len(tables) else f"number {i + 1}"
        yield f"{name}, {position}, [[{kind}]]", part


def _requirements(part: Mapping[str, Any], place: str) -> Iterable[Requirement]:
    _check(part, place, REQUIRE, {"measure": str, "explainer": str, "interval": bool, "why": str})
    limits = [(op, part[key], key) for key, op in LIMITS.items() if key in part]
    if "measure" not in part or not limits:
        raise UserError(f"{place}: it needs a measure and one of {', '.join(LIMITS)}")
    for op, limit, key in limits:
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not abs(limit) < 1e300:
            raise UserError(f"{place}: {key} must be a number, found {limit!r:.80}")
        yield Requirement(
            part["measure"], op, float(limit), part.get("explainer"), part.get("interval", False), part.get("why", "")
        )


def _verdict_requirement(part: Mapping[str, Any], place: str) -> VerdictRequirement:
    _check(part, place, VERDICT, {"name": str, "answer": (str, list), "why": str})
    if "name" not in part or not part.get("answer"):
        raise UserError(f"{place}: it needs a name and an answer")
    answers: list[Any] = [part["answer"]] if isinstance(part["answer"], str) else part["answer"]
    for answer in answers:
        if answer not in get_args(Answer):
            raise UserError(f"{place}: {unknown('answer', answer, get_args(Answer))}")
    return VerdictRequirement(part["name"], tuple(answers), part.get("why", ""))


def _check(part: Mapping[str, Any], place: str, keys: Sequence[str], kinds: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if key not in keys:
            raise UserError(f"{place}: {unknown('key', key, keys)}")
        if key in kinds and not isinstance(value, kinds[key]):
            kind = {str: "a text", bool: "true or false"}.get(kinds[key], "a text or a list of texts")
            raise UserError(f"{place}: {key} must be {kind}, found {value!r:.80}")


def to_toml(policy: Policy) -> str:
    """Return the text of a TOML file that `parse_policy` reads as the same policy.

    >>> print(to_toml(Policy((Requirement("accuracy", ">=", 0.9),))), end="")
    [[require]]
    measure = "accuracy"
    at_least = 0.9
    """
    names = {op: name for name, op in LIMITS.items()}
    tables = []
    for rule in policy.requirements:
        values = {"measure": rule.measure, names[rule.op]: rule.limit, "explainer": rule.explainer, "why": rule.why}
        tables.append(("require", {**values, "interval": rule.interval or None}))
    for verdict in policy.verdicts:
        answers = list(verdict.answers)
        tables.append(("verdict", {"name": verdict.name, "answer": answers, "why": verdict.why}))
    lines = [
        [f"[[{kind}]]", *(f"{k} = {_toml(v)}" for k, v in values.items() if v not in (None, ""))]
        for kind, values in tables
    ]
    return "\n".join("\n".join(part) + "\n" for part in lines)


def _toml(value: Any) -> str:
    """JSON is valid TOML, except for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
