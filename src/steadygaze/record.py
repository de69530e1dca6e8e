"""Row: one measured number, with everything needed to measure it again.  Standard library only."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from steadygaze.errors import UserError


@dataclass(frozen=True, slots=True)
class Row:
    """One number that leaves the house."""

    measure: str
    value: float
    n: int
    """How many examples it is a mean over."""
    interval: tuple[float, float] | None = None
    """95 % bootstrap interval of the mean; None for a number that is not a mean."""
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    """What it depends on: corpus, split, seed, version …"""
    note: str = ""

    @property
    def signature(self) -> str:
        """`measure|key:value|…|n:N`: two numbers may be compared when these agree.

        >>> Row("accuracy", 0.5, 10, settings={"split": "test", "corpus": "sst2"}).signature
        'accuracy|corpus:sst2|split:test|n:10'
        """
        parts = [f"{key}:{value}" for key, value in sorted(self.settings.items())]
        return "|".join([self.measure, *parts, f"n:{self.n}"])

    def __str__(self) -> str:
        bounds = "" if self.interval is None else f" [{self.interval[0]:.3f}, {self.interval[1]:.3f}]"
        return f"{self.signature} = {self.value:.3f}{bounds}"

    def to_dict(self) -> dict[str, Any]:
        values = {**asdict(self), "value": plain(self.value), "signature": self.signature}
        values["interval"] = None if self.interval is None else [plain(end) for end in self.interval]
        values["settings"] = {key: _word(value) for key, value in self.settings.items()}
        return values

    @classmethod
    def from_dict(cls, values: Any) -> "Row":
        """What `to_dict` gave.  A row whose signature does not fit the rest of it is refused."""
        if not isinstance(values, Mapping) or not isinstance(values.get("measure"), str):
            raise UserError(f"a row has a measure, a value and n; found {values!r:.80}")
        name = f"row {values['measure']!r:.80}"
        if wrong := {*cls.__slots__, "signature"} ^ values.keys():
            raise UserError(f"{name}: the key {min(wrong)!r} is {'strange' if min(wrong) in values else 'missing'}")
        if not (isinstance(values["n"], int) and isinstance(values["note"], str)):
            raise UserError(f"{name}: n must be a whole number and note a text")
        if not _settings(values["settings"]):
            raise UserError(f"{name}: settings must be words and numbers by name, found {values['settings']!r:.80}")
        row = cls(
            values["measure"],
            _number(values["value"], name),
            values["n"],
            _interval(values["interval"], name),
            dict(values["settings"]),
            values["note"],
        )
        if values["signature"] != row.signature:
            raise UserError(f"{name}: its signature is {values['signature']!r:.200}, and should be {row.signature!r}")
        return row


def plain(value: Any) -> Any:
    """JSON has neither NaN, which becomes null, nor infinity, which becomes a word."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else str(value)


def _word(value: Any) -> Any:
    """A setting that is not finite is a word ever after: the signature stays the same."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any, name: str) -> float:
    if value in (None, "inf", "-inf"):
        return math.nan if value is None else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{name}: found {value!r:.80} where a number should be")
    return value


def _interval(value: Any, name: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise UserError(f"{name}: an interval has two ends, found {value!r:.80}")
    return _number(value[0], name), _number(value[1], name)


def _settings(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(known, str | int | float) for key, known in value.items()
    )


def to_jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row.to_dict(), ensure_ascii=False) + "\n" for row in rows)
