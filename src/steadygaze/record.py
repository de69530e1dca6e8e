"""Row: one measured number, with everything needed to measure it again.  Standard library only."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


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
        values = {**asdict(self), "value": _finite(self.value), "signature": self.signature}
        values["interval"] = None if self.interval is None else [_finite(end) for end in self.interval]
        values["settings"] = {key: _finite(value) for key, value in self.settings.items()}
        return values


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row.to_dict(), ensure_ascii=False) + "\n" for row in rows)
